"""The command that puts a kubelet binary behind the protocol.

Options and reports name the binary (``--kubelet PATH``), everything else the command.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODULE = (sys.executable, "-m", "numaproof.kubelet")


def command(
    path: str, arguments: Sequence[str] = (), release: str | None = None
) -> tuple[str, ...]:
    """Returns the command for a kubelet.

    Args:
        path: the kubelet.
        arguments: further arguments of the kubelet.
        release: the release to check it as; None for its own.
    """
    as_release = ("--release", release) if release else ()
    return (*_MODULE, *as_release, path, *(("--", *arguments) if arguments else ()))


def options(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the options that choose a kubelet; empty for the command of another program."""
    if tuple(words[: len(_MODULE)]) != _MODULE:
        return ()
    rest = list(words[len(_MODULE) :])
    if rest[0] == "--release":
        del rest[:2]
    path, arguments = rest[0], rest[2:]
    return ("--kubelet", path, *(word for one in arguments for word in ("--kubelet-arg", one)))
