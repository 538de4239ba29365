"""`numaproof reference`: the reference implementation behind the protocol."""

from __future__ import annotations

import sys

import click


@click.command()
@click.option("--documented", is_flag=True, help="Follow the documents, without known defects.")
def reference(*, documented: bool) -> None:
    """Answer the protocol on standard input and output with the reference implementation.

    \b
    Example:
      numaproof check --implementation "numaproof reference"
    """
    from numaproof.reference.server import serve

    serve(sys.stdin.buffer, sys.stdout.buffer, documented=documented)
