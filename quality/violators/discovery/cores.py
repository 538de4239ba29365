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
    from collections.abc import Callable

    from numaproof.protocol.machine import MachineInfo
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


@seeds("DISCOVERY-010")
def caches_above_level_3_are_left_out(changes: Changes) -> None:
    """A plausible author knows three levels."""

    def read(original: Any, *args: Any) -> Any:
        return [
            [found for found in shared if found.cache.level <= 3]  # noqa: PLR2004
            for shared in original(*args)
        ]

    changes.around(caches, "read_until_unreadable", read)


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


# Counts


def _num_cores(changes: Changes, *, nodes: bool, count: Callable[[SysTree, Any], int]) -> None:
    """Lets machines with node folders, or those without, count their CPUs as `count` does."""

    def change(tree: SysTree, machine: MachineInfo) -> MachineInfo:
        if not machine.num_cores or bool(tree.numbered(NODES, "node")) != nodes:
            return machine
        return msgspec.structs.replace(machine, num_cores=count(tree, machine))

    discovered(changes, change)


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
