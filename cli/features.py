"""`numaproof features`: lists what an implementation can claim."""

from __future__ import annotations

import sys

import click

from numaproof.protocol import codec


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def features(*, as_json: bool) -> None:
    """List the features that an implementation can claim.

    Also shows how many cases need each feature. Core features are those that every cluster uses.
    numaproof never tests a feature that an implementation doesn't claim.

    \b
    Example:
      numaproof features
    """
    from rich import box
    from rich.table import Table

    from numaproof.conformance.selection import needs
    from numaproof.reports.console import ShownConsole, as_plain, encodable

    rows = needs.rows()
    if as_json:
        click.echo(codec.encode([row._asdict() for row in rows]))
        return
    columns = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("Feature", "Support", "Meaning", "Claimed by"):
        # A truncated or wrapped name couldn't be copied.
        columns.add_column(name, no_wrap=name == "Feature", overflow="fold")
    columns.add_column("Cases", justify="right")
    for row in rows:
        columns.add_row(row.name, row.support, row.meaning, row.claimed_by, f"{row.cases:,}")
    console = ShownConsole()
    if console.is_terminal:
        console.print(columns)
    else:
        click.echo(encodable(as_plain(columns), sys.stdout))
