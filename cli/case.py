"""`numaproof case`: lists and shows cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from numaproof.cli import selecting
from numaproof.cli.commands import SentenceGroup
from numaproof.cli.machine_names import MACHINE, named_machines
from numaproof.cli.selecting import own_cases_option, selection
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.reports.json_output import CaseRow

_LISTED = 5
"""How many suitable machines to name if a case does not run on the given one."""


def case_of(name: str, cases: Sequence[Case], before: str = "") -> Case:
    """Returns the case with this id or alias.

    Raises:
        click.UsageError: there is no such case. The message begins with `before`.
    """
    from numaproof.conformance.cases import naming

    for case in cases:
        if name in naming.names(case):
            return case
    near = naming.did_you_mean(name, (one for case in cases for one in naming.names(case)))
    fix = near or "; see `numaproof case list`"
    if "*" in name:
        fix = "; expected an id, not a glob"
    raise click.UsageError(f"{before}no case has the id {name!r}{fix}")


_own_option = own_cases_option("Include your own cases: a file or a folder of files. Repeatable.")


@click.group("case", cls=SentenceGroup)
def case_group() -> None:
    """List and show cases.

    \b
    Example:
      numaproof case list "static-*"
    """


@case_group.command("list")
@click.argument(
    "patterns", metavar="[PATTERN]...", nargs=-1, shell_complete=selecting.complete_pattern
)
@selecting.exclude_option
@_own_option
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_cases(
    patterns: tuple[str, ...], exclude: tuple[str, ...], own: tuple[Path, ...], *, as_json: bool
) -> None:
    """List all cases, or those that match any PATTERN (as for `check --select`).

    \b
    Examples:
      numaproof case list "topo-merge-*" --json
      numaproof case list "CPU-OPT-*" area:memory --exclude "*-refused-*"
    """
    from rich.text import Text

    from numaproof.reports.console import show

    cases = selecting.all_cases(own)
    if patterns or exclude:
        cases = selection(patterns, exclude, cases, option="").of(cases)
    if as_json:
        click.echo(codec.encode([_row(case) for case in cases]))
        return
    width = max((len(case.id) for case in cases), default=0)
    show(Text.assemble((f"{case.id:<{width}}", "bold"), "  ", case.title) for case in cases)


def _row(case: Case) -> CaseRow:
    return {
        "id": case.id,
        "title": case.title,
        "requirements": list(case.requirements),
        "level": case.level,
        "kubernetes": case.kubernetes,
        "aliases": list(case.aliases),
    }


@case_group.command("show")
@click.argument("name", metavar="ID", shell_complete=selecting.complete_case)
@click.option("--machine", **MACHINE, help="Fill in expressions for this machine.")
@_own_option
def show_case(name: str, machine: str | None, own: tuple[Path, ...]) -> None:
    """Print a case as a file for `numaproof replay`.

    The defaults of the case's table are merged in. With --machine, expressions such as ${cpus - 2}
    are replaced by their values, and the printed case runs only on that machine.

    \b
    Examples:
      numaproof case show static-gives-what-the-limit-says
      numaproof case show static-gives-what-the-limit-says --machine laptop-4c8t > case.yaml
    """
    from numaproof.conformance.cases import loading, writing

    case = case_of(name, selecting.all_cases(own))
    if machine:
        with loading.locate_errors(own):
            case = _fill_in(case, machine)
    click.echo(f"cases:\n{writing.item(case)}", nl=False)


def _fill_in(case: Case, machine: str) -> Case:
    from numaproof.conformance.execution import machines, runner
    from numaproof.workdir.scratch import scratch_folder

    with scratch_folder() as scratch:
        if case.machine is not None:
            raise click.UsageError(f"{case.id} has its own machine; remove --machine")
        (chosen, *others) = named_machines((machine,), scratch)
        if others:
            raise click.BadParameter(
                f"{machine!r} matches {1 + len(others)} machines; expected exactly one",
                param_hint="--machine",
            )
        if not machines.matches(chosen, case):
            possible = [one.name for one in machines.select(named_machines((), scratch), case)]
            more = f" and {len(possible) - _LISTED} more" if len(possible) > _LISTED else ""
            raise click.UsageError(
                f"{case.id} does not run on {chosen.name}; it runs on"
                f" {', '.join(possible[:_LISTED])}{more}"
            )
        return runner.fill_in(case, chosen, scratch / "state")
