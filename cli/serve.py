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

    # The dialogue is no text for people: it goes out as it is.
    with open(1, "wb", closefd=False) as answers:
        serve(sys.stdin.buffer, answers, documented=documented)
