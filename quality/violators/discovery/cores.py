"""Violators of the requirements of discovery: caches, nodes and counts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference.cadvisor import caches, discovery
from numaproof.reference.cadvisor.cpus import OnlineCPUs
from numaproof.reference.cadvisor.sysfs import CPUS, NODES, DiscoveryError, SysTree
from quality.seeding import Changes, SubjectBugs
from quality.violators.discovery.nodes import (
    cores_changed,
    discovered,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.protocol.machine import MachineInfo, Node
    from numaproof.reference.cadvisor.caches import NodeCaches, SharedCache
    from numaproof.reference.cadvisor.cpus import CoreThreads

seeds = SubjectBugs("discovery")


# Caches


def _has_caches(tree: SysTree, cpu: int) -> bool:
    return "cache" in tree.names(f"{CPUS}/cpu{cpu}")


@seeds("DISCOVERY-008")
def cpu_without_caches_is_left_out(changes: Changes) -> None:
    """A plausible author takes a CPU without a cache folder for one that is offline."""

    def change(tree: SysTree, cores: list[CoreThreads]) -> list[CoreThreads]:
        kept = [
            core._replace(cpus=tuple(cpu for cpu in core.cpus if _has_caches(tree, cpu)))
            for core in cores
        ]
        return [core for core in kept if core.cpus]

    cores_changed(changes, change)


def _caches_of_cpu(changes: Changes, missing: Callable[[SysTree, int], None]) -> None:
    """Calls `missing` for a CPU whose caches cannot be read."""

    def caches_of_cpu(original: Any, tree: SysTree, cpu: int) -> Any:
        found = original(tree, cpu)
        if found is None:
            missing(tree, cpu)
        return found

    changes.around(caches, "caches_of_cpu", caches_of_cpu)


@seeds("DISCOVERY-008")
def cpu_without_caches_ends_discovery(changes: Changes) -> None:
    """A plausible author wants caches of every CPU."""

    def missing(tree: SysTree, cpu: int) -> None:
        if not _has_caches(tree, cpu):
            raise DiscoveryError(f"open {CPUS}/cpu{cpu}/cache: no such file or directory")

    _caches_of_cpu(changes, missing)


@seeds("DISCOVERY-009")
def cache_without_an_id_ends_discovery(changes: Changes) -> None:
    """A plausible author wants the id of every cache."""

    def missing(tree: SysTree, cpu: int) -> None:
        if _has_caches(tree, cpu):
            raise DiscoveryError(f"open {CPUS}/cpu{cpu}/cache/index0/id: no such file or directory")

    _caches_of_cpu(changes, missing)


class _WithIds(SysTree):
    """A tree in which caches without an id cannot be seen."""

    def __init__(self, tree: SysTree) -> None:
        self._tree = tree

    def read(self, path: str) -> str:
        return self._tree.read(path)

    def names(self, path: str) -> list[str]:
        return [
            name
            for name in self._tree.names(path)
            if not name.startswith("index") or text_of(self._tree, f"{path}/{name}/id")
        ]


@seeds("DISCOVERY-009")
def cache_without_an_id_is_passed_over(changes: Changes) -> None:
    """A plausible author goes on with the next cache."""
    changes.around(
        caches, "caches_of_cpu", lambda original, tree, cpu: original(_WithIds(tree), cpu)
    )


@seeds("DISCOVERY-009")
def cache_without_an_id_ends_its_core(changes: Changes) -> None:
    """A plausible author goes on with the next core."""
    changes.around(
        caches,
        "read_until_unreadable",
        lambda original, tree, cores: [original(tree, [core])[0] for core in cores],
    )


def _sharing(changes: Changes, count: Callable[[SharedCache, int, int], int]) -> None:
    """Lets `count` say how many CPUs share a cache: given it, and the CPUs of core and node."""

    def read(original: Any, tree: SysTree, cores: Sequence[CoreThreads]) -> Any:
        return [
            [
                found._replace(sharers=count(found, len(core.cpus), len(core.cpus) * len(cores)))
                for found in shared
            ]
            for core, shared in zip(cores, original(tree, cores), strict=True)
        ]

    changes.around(caches, "read_until_unreadable", read)


@seeds("DISCOVERY-010")
def every_high_cache_is_an_uncore_cache(changes: Changes) -> None:
    """A plausible author calls every cache above level 2 uncore."""
    _sharing(changes, lambda found, core, node: -1 if found.cache.level > 2 else found.sharers)  # noqa: PLR2004


@seeds("DISCOVERY-010")
def cache_wider_than_a_node_is_the_nodes(changes: Changes) -> None:
    """A plausible author asks whether all CPUs of the node share the cache."""
    _sharing(
        changes,
        lambda found, core, node: (
            min(found.sharers, node) if found.cache.level > 2 else found.sharers  # noqa: PLR2004
        ),
    )


@seeds("DISCOVERY-010")
def caches_above_level_3_are_left_out(changes: Changes) -> None:
    """A plausible author knows three levels."""

    def read(original: Any, *args: Any) -> Any:
        return [
            [found for found in shared if found.cache.level <= 3]  # noqa: PLR2004
            for shared in original(*args)
        ]

    changes.around(caches, "read_until_unreadable", read)


@seeds("DISCOVERY-011")
def cache_of_several_cores_is_each_cores(changes: Changes) -> None:
    """A plausible author gives a core every low cache that it uses, shared with others or not."""
    _sharing(
        changes,
        lambda found, core, node: (
            min(found.sharers, core) if found.cache.level <= 2 else found.sharers  # noqa: PLR2004
        ),
    )


@seeds("DISCOVERY-011")
def level_2_cache_of_several_cores_is_an_uncore_cache(changes: Changes) -> None:
    """A plausible author calls every cache uncore that several cores share."""

    def caches_of(original: Any, tree: SysTree, cores: Sequence[CoreThreads]) -> NodeCaches:
        found: NodeCaches = original(tree, cores)
        shared = caches.read_until_unreadable(tree, cores)
        uncore = tuple(
            tuple(
                dict.fromkeys(
                    [
                        *own,
                        *(
                            one.cache
                            for one in low
                            if one.cache.level == 2 and one.sharers > len(core.cpus)  # noqa: PLR2004
                        ),
                    ]
                )
            )
            for own, low, core in zip(found.uncore, shared, cores, strict=True)
        )
        return found._replace(uncore=uncore)

    changes.around(discovery, "caches_of", caches_of)


# Nodes


def _package_ids(changes: Changes, number: Callable[[int], int | None]) -> None:
    """Lets `number` say which node the package with an id becomes, where there are no nodes."""
    changes.around(
        discovery,
        "topology_id",
        lambda original, *args: None if (found := original(*args)) is None else number(found),
    )


@seeds("DISCOVERY-012")
def package_minus_1_becomes_node_0(changes: Changes) -> None:
    """A plausible author lets no node have a negative id."""
    _package_ids(changes, lambda package: max(0, package))


@seeds("DISCOVERY-012")
def package_minus_1_is_no_node(changes: Changes) -> None:
    """A plausible author takes package -1 for an unknown one."""
    _package_ids(changes, lambda package: package if package >= 0 else None)


@seeds("DISCOVERY-012")
def packages_are_all_in_node_0(changes: Changes) -> None:
    """A plausible author makes one node of a machine without node folders."""
    _package_ids(changes, lambda package: min(package, 0))


def _nodes(changes: Changes, change: Callable[[list[Node]], Sequence[Node]]) -> None:
    """Lets a machine with node folders have the nodes that `change` makes of them."""

    def machine(tree: SysTree, found: MachineInfo) -> MachineInfo:
        if not tree.numbered(NODES, "node"):
            return found
        nodes = tuple(change(list(found.topology or ())))
        return msgspec.structs.replace(found, topology=nodes or None)

    discovered(changes, machine)


@seeds("DISCOVERY-021")
def node_without_cpus_is_left_out(changes: Changes) -> None:
    """A plausible author keeps the nodes that pods can run on."""
    _nodes(changes, lambda nodes: [node for node in nodes if node.cores])


@seeds("DISCOVERY-021")
def node_without_cpus_has_no_memory(changes: Changes) -> None:
    """A plausible author reads the memory of a node once he has found its CPUs."""
    _nodes(
        changes,
        lambda nodes: [
            node if node.cores else msgspec.structs.replace(node, memory=0) for node in nodes
        ],
    )


@seeds("DISCOVERY-022")
def nodes_are_counted_from_0(changes: Changes) -> None:
    """A plausible author takes a node's position for its id."""
    _nodes(
        changes,
        lambda nodes: [
            msgspec.structs.replace(node, node_id=place) for place, node in enumerate(nodes)
        ],
    )


@seeds("DISCOVERY-022")
def missing_node_ids_get_empty_nodes(changes: Changes) -> None:
    """A plausible author makes an empty node of each id that is missing."""

    def filled(nodes: list[Node]) -> list[Node]:
        known = {node.node_id: node for node in nodes}
        empty = msgspec.structs.replace(
            nodes[0], memory=0, hugepages=None, distances=None, cores=None, caches=None
        )
        return [
            known.get(number) or msgspec.structs.replace(empty, node_id=number)
            for number in range(max(known) + 1)
        ]

    _nodes(changes, lambda nodes: filled(nodes) if nodes else nodes)


# Counts


def _num_cores(changes: Changes, *, nodes: bool, count: Callable[[SysTree, Any], int]) -> None:
    """Lets machines with node folders, or those without, count their CPUs as `count` does."""

    def change(tree: SysTree, machine: MachineInfo) -> MachineInfo:
        if not machine.num_cores or bool(tree.numbered(NODES, "node")) != nodes:
            return machine
        return msgspec.structs.replace(machine, num_cores=count(tree, machine))

    discovered(changes, change)


def _threads(machine: MachineInfo) -> list[int]:
    return [
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    ]


@seeds("DISCOVERY-014")
def offline_cpus_of_nodes_are_counted(changes: Changes) -> None:
    """A plausible author counts the folders of CPUs, nodes or not."""
    _num_cores(changes, nodes=True, count=lambda tree, machine: len(tree.numbered(CPUS, "cpu")))


@seeds("DISCOVERY-014")
def only_online_cpus_are_counted_without_nodes(changes: Changes) -> None:
    """A plausible author counts the CPUs that he found, nodes or not."""
    _num_cores(changes, nodes=False, count=lambda tree, machine: len(_threads(machine)))


@seeds("DISCOVERY-014")
def online_cpus_without_a_core_are_counted(changes: Changes) -> None:
    """A plausible author counts the CPUs that are online, whether they have a core or not."""

    def count(tree: SysTree, _: MachineInfo) -> int:
        return sum(int(name[3:]) in OnlineCPUs(tree) for name in tree.numbered(CPUS, "cpu"))

    _num_cores(changes, nodes=True, count=count)


def _ids(cpuinfo: str, name: str) -> list[str]:
    return re.findall(rf"^{name}\s*:\s*([0-9]+)$", cpuinfo, re.MULTILINE)


def _counts(changes: Changes, count: Callable[[str, SysTree, int, int], tuple[int, int]]) -> None:
    """Lets `count` count cores and sockets: given cpuinfo, the tree, and the right numbers."""
    changes.around(
        discovery,
        "count_cores_and_sockets",
        lambda original, cpuinfo, tree, online: count(
            cpuinfo, tree, *original(cpuinfo, tree, online)
        ),
    )


@seeds("DISCOVERY-015")
def physical_cores_of_all_sockets_are_counted(changes: Changes) -> None:
    """A plausible author counts pairs of socket and core in /proc/cpuinfo."""

    def count(cpuinfo: str, _: SysTree, cores: int, sockets: int) -> tuple[int, int]:
        pairs = set(zip(_ids(cpuinfo, "physical id"), _ids(cpuinfo, "core id"), strict=False))
        return len(pairs) or cores, sockets

    _counts(changes, count)


@seeds("DISCOVERY-015")
def core_ids_alone_are_counted_in_sysfs(changes: Changes) -> None:
    """A plausible author counts core ids in sysfs as he does in /proc/cpuinfo."""

    def count(cpuinfo: str, tree: SysTree, cores: int, sockets: int) -> tuple[int, int]:
        if _ids(cpuinfo, "core id"):
            return cores, sockets
        names = tree.numbered(CPUS, "cpu")
        found = {text_of(tree, f"{CPUS}/{name}/topology/core_id") for name in names}
        return len(found - {""}) or cores, sockets

    _counts(changes, count)


@seeds("DISCOVERY-016")
def machine_without_physical_ids_has_one_socket(changes: Changes) -> None:
    """A plausible author counts one socket where /proc/cpuinfo tells none."""
    _counts(
        changes,
        lambda cpuinfo, tree, cores, sockets: (
            cores,
            sockets if _ids(cpuinfo, "physical id") else 1,
        ),
    )


@seeds("DISCOVERY-016")
def sockets_are_counted_up_to_the_highest_id(changes: Changes) -> None:
    """A plausible author takes physical ids for consecutive."""

    def count(cpuinfo: str, _: SysTree, cores: int, sockets: int) -> tuple[int, int]:
        numbers = [int(number) for number in _ids(cpuinfo, "physical id")]
        return cores, max(numbers) + 1 if numbers else sockets

    _counts(changes, count)
