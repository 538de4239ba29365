"""Nodes on which pods are tried: copies, without files, and the shapes by which pods are equal."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.simulation.explaining import snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.reference.manager import StateFile
    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.pod import Pod


def shape(pod: Pod) -> str:
    """Returns what decides about a pod's admission: all that a node knows of it, except its uid."""
    return repr(replace(pod, uid=""))


class _LatestState:
    """A checkpoint file that keeps the latest state instead of writing it."""

    def __init__(self, file: StateFile[Any]) -> None:
        self.file = file
        self.name = file.name
        self.states: tuple[Any, ...] = ()

    def read(self) -> bytes | None:
        return self.file.read()

    def write(self, state: Any) -> None:
        self.states = (state,)


@contextmanager
def saved_once(node: StartedNode) -> Iterator[None]:
    """Writes the node's checkpoints only at the end of the block, not after each admission."""
    files = [_LatestState(manager.file) for manager in node.providers]
    for manager, file in zip(node.providers, files, strict=True):
        manager.file = file
    try:
        yield
    finally:
        for manager, file in zip(node.providers, files, strict=True):
            manager.file = file.file
            for state in file.states:
                file.file.write(state)


def trial_node(node: StartedNode) -> StartedNode:
    """Returns a copy of the node that doesn't affect the original and writes no checkpoints."""
    twin = snapshot(node)
    for manager in twin.providers:
        manager.file = _LatestState(manager.file)
    return twin
