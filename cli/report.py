"""`numaproof report`: compares two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from numaproof.cli.outputs import OUTPUT_FILE
from numaproof.protocol import codec

if TYPE_CHECKING:
    from numaproof.reports.summary import Summary

_RUN = click.Path(exists=True, path_type=Path)


@click.command()
@click.argument("before", metavar="DIR|FILE", type=_RUN)
@click.argument("after", metavar="DIR|FILE", type=_RUN)
@click.option(
    "--out",
    "outputs",
    type=OUTPUT_FILE,
    metavar="FILE",
    multiple=True,
    help="Also write the comparison: as a page if FILE ends in .html, otherwise as Markdown."
    " Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def report(*, before: Path, after: Path, outputs: tuple[Path, ...], as_json: bool) -> int:
    """Compare two runs: what newly fails, what is fixed and what is slower.

    The arguments are the earlier and the later run: folders written by check, fuzz, diff or
    replay, or their events.jsonl. Case runs are compared by case and machine, what fuzzing found by
    its signature. The exit code is 1 if something newly fails, and otherwise 3 if the later run is
    incomplete.

    \b
    Examples:
      numaproof report before/ numaproof-report/check
      numaproof report main/events.jsonl numaproof-report/check --out comparison.md
      numaproof report before/ after/ --out comparison.html
    """
    from numaproof.reports import run_comparison
    from numaproof.reports.comparison_page import comparison_html
    from numaproof.reports.untrusted_text import visible
    from numaproof.workdir.output_files import write_file

    try:
        comparison = run_comparison.compare(
            _summary(before), _summary(after), (str(before), str(after))
        )
    except run_comparison.RunsDifferError as error:
        raise click.UsageError(f"{before} and {after}: {error}") from None
    for out in outputs:
        is_page = out.suffix == ".html"
        write = comparison_html if is_page else run_comparison.comparison_markdown
        write_file(out, visible(write(comparison)))
    if as_json:
        click.echo(codec.encode(comparison))
    else:
        click.echo(run_comparison.comparison_text(comparison), nl=False)
    return comparison["exit_code"]


def _summary(run: Path) -> Summary:
    """Returns the summary of a folder or a file of events."""
    from numaproof.reports.files import EVENTS, read_events
    from numaproof.reports.summary import summarize

    return summarize(read_events(run / EVENTS if run.is_dir() else run))
