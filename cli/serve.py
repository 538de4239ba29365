"""`numaproof reference`: the reference implementation behind the protocol."""

from __future__ import annotations

import sys

import click

from numaproof.reference.server import serve


@click.command()
@click.option("--documented", is_flag=True, help="Keep every documented rule: no kubelet defects.")
def reference(*, documented: bool) -> None:
    """Speak the protocol on standard input and output, as the reference.

    \b
    Example:
      numaproof check --implementation "numaproof reference"
    """
    serve(sys.stdin.buffer, sys.stdout.buffer, documented=documented)
