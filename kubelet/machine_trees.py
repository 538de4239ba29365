"""Trees of machines that a request describes instead of naming a tree."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from numaproof import fakesys
from numaproof.conformance.trees import NoTreeError, as_discovered, tree_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numaproof.conformance.trees import InMemoryTree
    from numaproof.protocol.machine import HugePages, MachineInfo

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
        then differ in the tree: the ids and the order of cores, the order of page sizes, and
        without the option that needs them, caches.

        Raises:
            NoTreeError: there is no such tree.
        """
        options = config.get("cpuManagerPolicyOptions")
        needs_caches = isinstance(options, dict) and _BY_CACHE in options
        key = (machine, needs_caches)
        if key not in self._paths:
            tree = _tree(machine, needs_caches=needs_caches)
            path = self._folder / str(len(self._paths))
            fakesys.write_directory(tree.tree, path)
            self._paths[key] = path
        return self._paths[key]


def _tree(machine: MachineInfo, *, needs_caches: bool) -> InMemoryTree:
    similar = [machine, _with_core_ids(machine)]
    if not needs_caches:
        similar += [_without_caches(one) for one in similar]
    for one in similar:
        found = as_discovered(one)
        if found is not None and _in_order(found) == _in_order(one):
            return tree_of(found)
    raise NoTreeError("no tree makes a kubelet discover it")


def _in_order(machine: MachineInfo) -> MachineInfo:
    """The machine with cores, threads and page sizes in order, and None for every empty list."""
    nodes = tuple(
        replace(
            node,
            hugepages=_pages(node.hugepages),
            distances=node.distances or None,
            caches=node.caches or None,
            cores=tuple(
                replace(
                    core,
                    thread_ids=tuple(sorted(core.thread_ids or ())),
                    caches=core.caches or None,
                    uncore_caches=core.uncore_caches or None,
                )
                for core in sorted(node.cores or (), key=lambda core: min(core.thread_ids or (0,)))
            ),
        )
        for node in machine.topology or ()
    )
    return replace(machine, hugepages=_pages(machine.hugepages), topology=nodes)


def _pages(pools: tuple[HugePages, ...] | None) -> tuple[HugePages, ...]:
    return tuple(sorted(pools or (), key=lambda pool: pool.page_size))


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
