"""`numaproof reference`: serves the reference implementation over the protocol."""

from __future__ import annotations

import sys

import click

from numaproof.cli.targets import own_baseline_option


@click.command()
@own_baseline_option
def reference(*, baseline: str) -> None:
    """Serve the reference implementation on standard input and output.

    \b
    Example:
      numaproof check --implementation "numaproof reference"
    """
    from numaproof.reference.implementation import Reference
    from numaproof.reference.server import serve

    own = Reference(follows_docs=baseline == "documented")
    serve(sys.stdin.buffer, sys.stdout.buffer, own)
