"""Containers as in a node's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol.messages import Container, Hint
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable


def running(
    cpus: str, exclusive: str | None = None, numa: Iterable[int] | None = None
) -> Container:
    """A container on these CPUs, exclusive by default; `numa` is its affinity."""
    own = cpus if exclusive is None else exclusive
    hint = Hint(None if numa is None else NUMASet(numa), preferred=True)
    return Container(CPUSet.parse(cpus), CPUSet.parse(own), (), hint)
