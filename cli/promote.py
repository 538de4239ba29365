"""`numaproof promote`: turns a finding into one of the user's own cases."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from numaproof.cli import targets
from numaproof.cli.choice import Choice
from numaproof.cli.machine_names import named_machines
from numaproof.cli.outputs import OUTPUT_FILE, require_no_input
from numaproof.cli.selecting import complete_requirement
from numaproof.inputs.plurals import plural
from numaproof.inputs.shell_words import quote_words
from numaproof.protocol.releases import NEWEST

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.protocol.events import BaselineChoice
    from numaproof.protocol.messages import Level

_OWN = Path("numaproof-cases.yaml")
_CHECKOUT = Path("conformance/suite")
_LONGEST = 400


def _defects() -> Choice:
    """Returns the names of the kubelet's defects, loaded on demand."""
    from numaproof.reference.deviations.defects import DEFECTS

    return Choice([one.name for one in DEFECTS])


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--id", "case_id", metavar="ID", help="Permanent id for the new case.")
@click.option(
    "--title",
    help="What must happen, as a sentence (default: the statement of the first requirement).",
)
@click.option(
    "--requirement",
    "requirements",
    multiple=True,
    metavar="ID",
    help="Requirement that the case checks, such as CPU-STATIC-001 (default: the requirements in"
    " the finding). Repeatable.",
    shell_complete=complete_requirement,
)
@click.option(
    "--out",
    "into",
    type=OUTPUT_FILE,
    help=f"Case file to add to (default: {_OWN}; in a checkout, {_CHECKOUT}/promoted.yaml).",
)
@targets.program_option(
    "Program that fails the case. The case then expects only what is needed to show the failure."
)
@targets.timeout_option
@targets.release_choice(
    help="Release whose answers the case expects (default: the newest that the program claims)."
)
@targets.level_option("Level of the case (default: the lowest at which it fails).")
@targets.baseline_option
@click.option(
    "--defect",
    metavar="NAME",
    callback=lambda ctx, param, value: value and _defects().convert(value, param, ctx),
    shell_complete=lambda ctx, param, incomplete: _defects().shell_complete(ctx, param, incomplete),
    help="Named defect that makes the kubelet fail the case; see docs/findings.md.",
)
@click.option(
    "--go",
    "go_file",
    type=OUTPUT_FILE,
    help="Write the case to this file as a Go test for the kubelet's own packages instead. FILE can"
    " be any case file; --id chooses one of several cases.",
)
def promote(
    *,
    file: Path,
    case_id: str | None,
    title: str | None,
    requirements: tuple[str, ...],
    into: Path | None,
    implementation: str | None,
    timeout: float,
    kubernetes: str | None,
    level: Level | None,
    defect: str | None,
    baseline: BaselineChoice | None,
    go_file: Path | None,
) -> int:
    """Turn a finding into a case of your own, or a case into a Go test.

    FILE is a case file from OUT/findings, written by `numaproof fuzz`, `diff` or `campaign`. The
    new case expects the reference's answers and is appended to a case file.

    \b
    Examples:
      numaproof promote numaproof-report/fuzz/findings/fuzz-0f3c9a12.yaml --id remove-frees-all
      numaproof promote finding.yaml --id topo-one-node --requirement TOPO-POLICY-004 \\
        --implementation "./my-driver" --out my-cases.yaml
      numaproof promote my-cases.yaml --id remove-frees-all --go remove_frees_all_test.go
    """
    if go_file:
        return _write_go_test(file, case_id, kubernetes or NEWEST, go_file)
    if case_id is None:
        raise click.UsageError("Missing option '--id'.")
    from numaproof.conformance import promotion
    from numaproof.conformance.cases.loading import locate_errors
    from numaproof.conformance.execution.truncation import reported_finding
    from numaproof.conformance.requirements import load_registry
    from numaproof.protocol.events import sentence_of
    from numaproof.reports.wording import short_lines
    from numaproof.workdir.output_files import update_file

    finding = _finding(file)
    target = into or (_CHECKOUT / "promoted.yaml" if _CHECKOUT.is_dir() else _OWN)
    taken = _names_in_use(target)
    try:
        with (
            targets.report_failure(),
            locate_errors([file]),
            targets.open_target(implementation, timeout, kubernetes, None, baseline) as opened,
        ):
            made = promotion.promote(
                finding,
                promotion.PromotionOptions(
                    case_id, title, requirements, opened.kubernetes, level, defect
                ),
                load_registry(),
                taken,
                opened if implementation else None,
            )
    except promotion.PromotionError as error:
        raise promotion.PromotionError(f"{file}: {error}") from None
    case = made.case

    def text() -> str:
        if case.id in _names_in_use(target):
            raise promotion.PromotionError(
                f"{target}: another command just added {case.id}; choose another --id"
            )
        return promotion.append_case(_text(target), case, str(target))

    update_file(target, text)
    click.echo(f"{target}: {case.id}, level {case.level}, {', '.join(case.requirements)}")
    if made.failure:
        fails = f"{opened.hello.name} fails it: {made.failure.outcome}: "
        shown = reported_finding(made.failure.finding, fails)
        sentence = sentence_of(f"{fails}{made.failure.message}", shown)
        click.echo("\n".join(short_lines(sentence, _LONGEST)))
    own = () if _is_bundled(target) else ("--cases", str(target))
    released = ("--kubernetes", opened.kubernetes) if kubernetes or case.kubernetes else ()
    words = ("numaproof", "check", "--select", case.id, *own, *released)
    click.echo(f"now run: {quote_words(words)}")
    if implementation:
        click.echo(f"and:     {quote_words((*words, '--implementation', implementation))}")
    return 0


def _write_go_test(file: Path, case_id: str | None, kubernetes: str, go_file: Path) -> int:
    from numaproof.conformance.cases import loading
    from numaproof.conformance.go_tests.checks import NotExpressibleError
    from numaproof.conformance.go_tests.generation import first_machine, go_test
    from numaproof.workdir.output_files import write_file
    from numaproof.workdir.scratch import scratch_folder

    cases = loading.read_file(file)
    chosen = [case for case in cases if case_id in (None, case.id)]
    require_no_input([go_file], [file])
    if len(chosen) != 1:
        names = ", ".join(case.id for case in cases)
        raise click.UsageError(f"{file}: choose a case with --id: {names}")
    with loading.locate_errors([file]), scratch_folder() as trees:
        try:
            machine = first_machine(chosen[0], named_machines((), trees), kubernetes)
            made = go_test(chosen[0], machine, kubernetes)
        except NotExpressibleError as error:
            raise loading.CaseError(chosen[0].id, 0, f"no Go test can show it: {error}") from None
    write_file(go_file, made.text)
    click.echo(f"{go_file}: {made.function}, for Kubernetes {kubernetes}")
    click.echo(f"now copy it to {made.package} in a checkout of that release, and run there:")
    click.echo(f"go test ./{made.package} -run {made.function}")
    return 0


def _finding(file: Path) -> Case:
    from numaproof.conformance.cases import loading
    from numaproof.conformance.promotion import PromotionError

    cases = loading.read_file(file)
    if len(cases) != 1:
        raise PromotionError(
            f"{file}: {plural(len(cases), 'case')} (expected 1); remove the others"
        )
    return cases[0]


def _names_in_use(file: Path) -> list[str]:
    """Returns the ids and aliases of all bundled cases and of the cases in a file."""
    from numaproof.conformance.cases import loading

    text = _text(file)
    own = loading.parse(text, str(file)) if text else ()
    return [name for case in (*loading.bundled_cases(), *own) for name in (case.id, *case.aliases)]


def _text(file: Path) -> str:
    from numaproof.inputs import door

    if not file.exists():
        return ""
    return door.read_text(file, most=door.DOCUMENT_BYTES)


def _is_bundled(file: Path) -> bool:
    root = resources.files("numaproof.conformance") / "suite"
    return Path(str(root)).resolve() in file.resolve().parents
