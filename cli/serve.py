"""`numaproof reference`: the reference implementation behind the protocol."""

from __future__ import annotations

import sys

import click

from numaproof.cli.targets import own_baseline_option


@click.command()
@own_baseline_option
def reference(*, baseline: str) -> None:
    """Answer the protocol on standard input and output with the reference implementation.

    \b
    Example:
      numaproof check --implementation "numaproof reference"
    """
    from numaproof.reference.server import serve

    serve(sys.stdin.buffer, sys.stdout.buffer, documented=baseline == "documented")
