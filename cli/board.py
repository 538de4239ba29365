"""`numaproof board`: builds a static website from the reports of many runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import click

from numaproof.cli.outputs import out_option
from numaproof.protocol import codec


@click.command()
@click.argument(
    "paths", metavar="DIR...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@out_option("board", ("index.html",), "the site")
@click.option(
    "--out-data",
    "data",
    type=click.Path(path_type=Path),
    metavar="FILE.json|DIR",
    help="Also write the site's data as compact JSON, from which this command can rebuild the site"
    " without the reports.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def board(*, paths: tuple[Path, ...], out: Path, data: Path | None, as_json: bool) -> None:
    """Build a website from the reports of many runs.

    DIR is a folder written by check, fuzz, exhaust, diff or campaign, a folder of these, or board
    data. If there are runs of several versions of an implementation, its page shows the history.

    \b
    Examples:
      numaproof board numaproof-report/check --out site
      numaproof board reports/ --out site --out-data board-data
      numaproof board board-data numaproof-report/check --out site
    """
    from numaproof.conformance.cases import loading, naming, writing
    from numaproof.conformance.requirements import load_registry
    from numaproof.inputs.plurals import plural
    from numaproof.reference.deviations.defects import DEFECTS
    from numaproof.reports.board.context import CaseTitle, NamedDefect, RunContext
    from numaproof.reports.board.reading import read, refuse_others, write_data
    from numaproof.reports.board.site import board_of, write_site
    from numaproof.workdir.output_files import require_writable, require_writable_folder

    if data is not None:
        refuse_others(data)
        require = require_writable if data.suffix == ".json" else require_writable_folder
        require(data)
    cases = {name: case for case in loading.bundled_cases() for name in naming.names(case)}

    @cache
    def case_text(name: str) -> str:
        return f"cases:\n{writing.item(cases[name])}" if name in cases else ""

    registry = load_registry()
    context = RunContext(
        tuple(one.event() for one in registry.requirements),
        case_text,
        registry.reported_documents(),
        tuple(
            CaseTitle(case.id, case.title, case.level, case.requirements, case.defect)
            for case in loading.bundled_cases()
        ),
        tuple(
            NamedDefect(one.name, one.what, one.sentence, one.releases, one.issue)
            for one in DEFECTS
        ),
    )
    reading = read(paths, context)
    made = board_of(reading)
    for run in reading.superseded_runs:
        click.echo(
            f"numaproof: skipped an incomplete run of {run.author.name} {run.author.version},"
            f" because a complete one exists: {run.gaps[0]}",
            err=True,
        )
    write_site(made, out)
    if data is not None:
        write_data(reading, data)
    if as_json:
        click.echo(codec.encode(made.plain()))
    else:
        runs = plural(len(reading.runs), "run")
        several = plural(len(made.implementations), "implementation")
        click.echo(f"{runs} of {several}: {out / 'index.html'}")
