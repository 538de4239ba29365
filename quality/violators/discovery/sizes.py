"""Violators of the requirements of discovery: memory, distances, and what a start makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference import startup
from numaproof.reference.cadvisor import discovery, memory
from numaproof.reference.cadvisor.sysfs import (
    NODES,
    DiscoveryError,
    SysTree,
    UnreadablePathError,
)
from numaproof.reference.cpu import topology as cpu_topology
from numaproof.reference.cpu.topology import CPUTopology, TopologyError
from quality.seeding import Changes, SubjectBugs
from quality.violators.discovery.nodes import derived, discovered, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.machine import HugePages, MachineInfo, Node

seeds = SubjectBugs("discovery")


@seeds("DISCOVERY-018")
def node_without_meminfo_has_all_memory(changes: Changes) -> None:
    """A plausible author lets the machine's memory stand in."""

    def node_memory(original: Any, tree: SysTree, node: str) -> Any:
        if text_of(tree, f"{node}/meminfo"):
            return original(tree, node)
        return memory.machine_memory(tree)

    changes.around(discovery, "node_memory", node_memory)


@seeds("DISCOVERY-018")
def node_without_meminfo_ends_discovery(changes: Changes) -> None:
    """A plausible author wants the file of every node."""

    def node_memory(original: Any, tree: SysTree, node: str) -> Any:
        if "meminfo" not in tree.names(node):
            raise DiscoveryError(f"open {node}/meminfo: no such file or directory")
        return original(tree, node)

    changes.around(discovery, "node_memory", node_memory)


def _pools(changes: Changes, change: Callable[[SysTree, str, tuple[HugePages, ...]], Any]) -> None:
    """Lets a folder have the huge pages that `change` makes of those in it."""

    def huge_pages(original: Any, tree: SysTree, folder: str) -> Any:
        return change(tree, folder, original(tree, folder) or ()) or None

    changes.around(discovery, "huge_pages", huge_pages)


@seeds("DISCOVERY-019")
def pools_without_pages_are_left_out(changes: Changes) -> None:
    """A plausible author lists the pools that have pages."""
    _pools(changes, lambda tree, folder, pools: tuple(pool for pool in pools if pool.num_pages))


@seeds("DISCOVERY-019")
def node_without_pools_has_those_of_the_machine(changes: Changes) -> None:
    """A plausible author puts the machine's sizes, with no pages, where a node has no folder."""

    def change(tree: SysTree, folder: str, pools: tuple[HugePages, ...]) -> tuple[HugePages, ...]:
        if pools or not folder.startswith(NODES):
            return pools
        whole = memory.huge_pages(tree, "/sys/kernel/mm/hugepages") or ()
        return tuple(msgspec.structs.replace(pool, num_pages=0) for pool in whole)

    _pools(changes, change)


@seeds("DISCOVERY-019")
def machine_without_pools_is_refused(changes: Changes) -> None:
    """A plausible author wants the folder on every kernel."""

    def huge_pages(original: Any, tree: SysTree, folder: str) -> Any:
        if not folder.startswith(NODES):
            tree.names(folder)
        return original(tree, folder)

    changes.around(discovery, "huge_pages", huge_pages)


def _nodes_with(changes: Changes, change: Callable[[SysTree, MachineInfo, Node], Node]) -> None:
    discovered(
        changes,
        lambda tree, machine: msgspec.structs.replace(
            machine,
            topology=machine.topology
            and tuple(change(tree, machine, node) for node in machine.topology),
        ),
    )


@seeds("DISCOVERY-020")
def missing_distances_are_made_up(changes: Changes) -> None:
    """A plausible author lets every other node be as far as is usual."""

    def change(tree: SysTree, machine: MachineInfo, node: Node) -> Node:
        if node.distances is not None or not tree.numbered(NODES, "node"):
            return node
        row = tuple(10 if one is node else 20 for one in machine.topology or ())
        return msgspec.structs.replace(node, distances=row)

    _nodes_with(changes, change)


# Trees without packages, and without files of /proc


@seeds("DISCOVERY-013")
def cpus_without_packages_are_in_node_0(changes: Changes) -> None:
    """A plausible author makes node 0 of what belongs to no package."""
    changes.around(
        discovery,
        "topology_id",
        lambda original, *args: 0 if (found := original(*args)) is None else found,
    )


@seeds("DISCOVERY-013")
def cpus_without_packages_are_not_counted(changes: Changes) -> None:
    """A plausible author counts the CPUs of the nodes that he found, of which there are none."""
    discovered(
        changes,
        lambda tree, machine: (
            machine if machine.topology else msgspec.structs.replace(machine, num_cores=0)
        ),
    )


def _without(changes: Changes, path: str, instead: str) -> None:
    """Reads `instead` where there is no file at `path`."""

    def read(original: Any, tree: SysTree, asked: str) -> Any:
        try:
            return original(tree, asked)
        except UnreadablePathError:
            if asked != path:
                raise
            return instead

    changes.around(SysTree, "read", read)


@seeds("DISCOVERY-024")
def tree_without_cpuinfo_is_discovered(changes: Changes) -> None:
    """A plausible author does without /proc/cpuinfo, as all it tells is in sysfs as well."""
    _without(changes, "/proc/cpuinfo", "")


@seeds("DISCOVERY-024")
def tree_without_meminfo_has_no_memory(changes: Changes) -> None:
    """A plausible author lets the machine have no memory, as a node without meminfo has none."""
    _without(changes, "/proc/meminfo", "MemTotal: 0 kB")


# Machines without CPUs, and starts with a root


@seeds("DISCOVERY-023")
def machine_without_cpus_has_one(changes: Changes) -> None:
    """A plausible author counts at least one CPU, as programs do that ask for their number."""

    def derive(original: Any, machine: MachineInfo) -> CPUTopology:
        try:
            topology: CPUTopology = original(machine)
        except TopologyError:
            if machine.num_cores:
                raise
            return CPUTopology(1, 1, 1, 1, {0: 1}, {0: 1}, {0: 1}, {0: 1}, {0: {0: 1}}, {0: {0: 1}})
        return topology

    derived(changes, derive)


@seeds("DISCOVERY-023")
def static_policy_starts_with_nothing_to_hand_out(changes: Changes) -> None:
    """A plausible author refuses pods, not the start, where there are no CPUs."""
    static: list[bool] = []

    def start(original: Any, args: Any, *rest: Any) -> Any:
        static.append(args.config.get("cpuManagerPolicy") == "static")
        try:
            return original(args, *rest)
        finally:
            static.pop()

    def derive(original: Any, machine: MachineInfo) -> CPUTopology:
        try:
            topology: CPUTopology = original(machine)
        except TopologyError:
            if machine.num_cores or not any(static):
                raise
            return cpu_topology.NO_CPUS
        return topology

    def make_static(
        original: Any, topology: CPUTopology, options: Any, count: int, named: int, rules: Any
    ) -> Any:
        if not topology.cpus:
            return rules.bare(topology, options)
        return original(topology, options, count, named, rules)

    changes.around(startup, "start", start)
    changes.around(cpu_topology, "derive", derive)
    changes.around(startup, "make_static", make_static)


def _started_with(changes: Changes, change: Callable[[MachineInfo], MachineInfo]) -> None:
    """Lets a start with a root manage what `change` makes of the machine that it discovers."""

    def start(original: Any, args: Any, release: Any, discover: Any) -> Any:
        return original(args, release, lambda root, version: change(discover(root, version)))

    changes.around(startup, "start", start)


@seeds("DISCOVERY-026")
def start_leaves_out_nodes_without_cpus(changes: Changes) -> None:
    """A plausible author manages the nodes that have CPUs."""
    _started_with(
        changes,
        lambda machine: msgspec.structs.replace(
            machine, topology=tuple(node for node in machine.topology or () if node.cores) or None
        ),
    )


@seeds("DISCOVERY-026")
def start_discovers_no_caches(changes: Changes) -> None:
    """A plausible author reads at start only what the first policies needed."""

    def without(machine: MachineInfo) -> MachineInfo:
        nodes = tuple(
            msgspec.structs.replace(
                node,
                cores=node.cores
                and tuple(msgspec.structs.replace(core, uncore_caches=None) for core in node.cores),
            )
            for node in machine.topology or ()
        )
        return msgspec.structs.replace(machine, topology=nodes or None)

    _started_with(changes, without)
