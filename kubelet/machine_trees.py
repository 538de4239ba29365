"""Trees of machines that a request describes instead of naming a tree."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from numaproof import fakesys
from numaproof.conformance.trees import NoTreeError, tree_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numaproof.conformance.trees import InMemoryTree
    from numaproof.protocol.machine import MachineInfo

_BY_CACHE = "prefer-align-cpus-by-uncorecache"


class DescribedMachines:
    """Writes the trees of machines, each once.

    Args:
        folder: the folder for the trees.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[tuple[MachineInfo, bool], Path] = {}

    def path(self, machine: MachineInfo, config: Mapping[str, Any]) -> Path:
        """The folder of a tree in which a kubelet finds a machine.

        A described machine may be one that discovery never returns. What no manager looks at may
        then differ in the tree: the ids of cores, and without the option that needs them, caches.

        Raises:
            NoTreeError: there is no such tree.
        """
        options = config.get("cpuManagerPolicyOptions")
        needs_caches = isinstance(options, dict) and _BY_CACHE in options
        key = (machine, needs_caches)
        if key not in self._paths:
            tree = _tree(_without_empty_lists(machine), needs_caches=needs_caches)
            path = self._folder / str(len(self._paths))
            fakesys.write_directory(tree.tree, path)
            self._paths[key] = path
        return self._paths[key]


def _tree(machine: MachineInfo, *, needs_caches: bool) -> InMemoryTree:
    similar = [machine, _with_core_ids(machine)]
    if not needs_caches:
        similar += [_without_caches(one) for one in similar]
    *others, last = similar
    for one in others:
        with suppress(NoTreeError):
            return tree_of(one)
    return tree_of(last)


def _without_empty_lists(machine: MachineInfo) -> MachineInfo:
    """The machine with None for every empty list, as discovery has it."""
    nodes = tuple(
        replace(
            node,
            hugepages=node.hugepages or None,
            distances=node.distances or None,
            caches=node.caches or None,
            cores=node.cores
            and tuple(
                replace(core, caches=core.caches or None, uncore_caches=core.uncore_caches or None)
                for core in node.cores
            ),
        )
        for node in machine.topology or ()
    )
    return replace(machine, hugepages=machine.hugepages or None, topology=nodes or None)


def _with_core_ids(machine: MachineInfo) -> MachineInfo:
    """The machine with a different id for each core, so that discovery counts all of them."""
    ids = count()
    nodes = tuple(
        replace(
            node,
            cores=node.cores and tuple(replace(core, core_id=next(ids)) for core in node.cores),
        )
        for node in machine.topology or ()
    )
    return replace(machine, topology=nodes or None)


def _without_caches(machine: MachineInfo) -> MachineInfo:
    nodes = tuple(
        replace(
            node,
            caches=None,
            cores=node.cores
            and tuple(replace(core, caches=None, uncore_caches=None) for core in node.cores),
        )
        for node in machine.topology or ()
    )
    return replace(machine, topology=nodes or None)
