"""Mutants of machine discovery."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference import implementation, operations, startup
from numaproof.reference.cadvisor import caches, cpus, discovery, memory
from numaproof.reference.cadvisor.cpus import CoreThreads, OnlineCPUs
from numaproof.reference.cadvisor.sysfs import (
    CPUS,
    NODES,
    DiscoveryError,
    SysTree,
    UnreadablePathError,
)
from numaproof.reference.cpu import topology as cpu_topology
from numaproof.reference.cpu.topology import CPUTopology, TopologyError
from quality.bugs.discovery import without_uncore_caches
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.machine import Core, MachineInfo, Node

seeds = SubjectBugs("discovery")


# Nodes


def change_topology(changes: Changes, derive: Callable[..., CPUTopology]) -> None:
    """Lets `derive` replace the CPU topology, given the original function and the machine."""
    for owner in (cpu_topology, operations):
        changes.around(owner, "derive", derive)


@shape(implementation, "discover")
def change_machine(change: Change, rule: Any, root: Any) -> Any:
    """Lets `change` replace the discovered machine, given its tree."""
    return change(SysTree(root), rule())


def text_of(tree: SysTree, path: str) -> str:
    """Returns a file's content, or nothing if it can't be read."""
    with suppress(UnreadablePathError):
        return tree.read_trimmed(path)
    return ""


def _form_cores(threads: dict[Any, tuple[int, int, list[int]]]) -> list[CoreThreads]:
    return [CoreThreads(core, package, tuple(own)) for core, package, own in threads.values()]


# MachineInfo


@seeds("DISCOVERY-001").by(change_topology)
def cpus_of_nodes_without_memory_are_unknown(rule: Any, machine: MachineInfo) -> CPUTopology:
    """Ignores NUMA nodes without memory."""
    nodes = tuple(node for node in machine.topology or () if node.memory)
    topology: CPUTopology = rule(
        msgspec.structs.replace(machine, topology=nodes) if nodes else machine
    )
    return topology


@seeds("DISCOVERY-001").by(change_topology)
def cpus_are_counted_by_their_cores(rule: Any, machine: MachineInfo) -> CPUTopology:
    """Computes the number of CPUs from the first core's threads."""
    topology: CPUTopology = rule(machine)
    cores = [core for node in machine.topology or () for core in node.cores or ()]
    threads = len(cores[0].thread_ids or ()) if cores else 0
    return replace(topology, cpu_count=len(cores) * threads)


@seeds("DISCOVERY-003").by(change_machine)
def cores_reach_from_node_to_node(_: SysTree, machine: MachineInfo) -> MachineInfo:
    """Groups CPUs into cores across NUMA nodes."""
    whole: dict[tuple[int, int], list[int]] = {}
    for node in machine.topology or ():
        for core in node.cores or ():
            place = (core.core_id, core.socket_id)
            whole.setdefault(place, []).extend(core.thread_ids or ())
    nodes = []
    for node in machine.topology or ():
        cores = tuple(
            msgspec.structs.replace(core, thread_ids=tuple(threads))
            for core in node.cores or ()
            if (threads := whole.pop((core.core_id, core.socket_id), None))
        )
        nodes.append(msgspec.structs.replace(node, cores=node.cores and cores))
    return msgspec.structs.replace(machine, topology=tuple(nodes) or None)


@seeds("DISCOVERY-027").after(discovery, "cores_of")
def cores_of_different_dies_are_different(cores: Any, tree: SysTree) -> list[CoreThreads]:
    """Distinguishes cores by die."""
    threads: dict[Any, tuple[int, int, list[int]]] = {}
    for core in cores:
        for cpu in core.cpus:
            die = text_of(tree, f"{CPUS}/cpu{cpu}/topology/die_id")
            place = (core.core_id, core.package_id, die)
            threads.setdefault(place, (core.core_id, core.package_id, []))[2].append(cpu)
    return _form_cores(threads)


def _known_by(changes: Changes, number: Callable[[Core], int]) -> None:
    """Identifies cores by `number` instead of their lowest CPU."""

    def derive(rule: Any, machine: MachineInfo) -> CPUTopology:
        topology: CPUTopology = rule(machine)
        cores: dict[int, int] = {}
        for node in machine.topology or ():
            for core in node.cores or ():
                mask = sum(1 << cpu for cpu in core.thread_ids or ())
                cores[number(core)] = cores.get(number(core), 0) | mask
        cores = dict(sorted(cores.items()))

        def within(groups: dict[int, int]) -> dict[int, dict[int, int]]:
            return {
                place: {core: mask for core, mask in cores.items() if mask & own}
                for place, own in groups.items()
            }

        return replace(
            topology,
            cores=cores,
            cores_by_socket=within(topology.sockets),
            cores_by_node=within(topology.nodes),
        )

    change_topology(changes, derive)


@seeds("DISCOVERY-004").of(_known_by, lambda core: core.socket_id * (1 << 16) + core.core_id)
def cpu_manager_knows_cores_by_socket_and_core_id() -> None:
    """Identifies cores by socket and core id."""


@seeds("DISCOVERY-004").of(_known_by, lambda core: min(core.thread_ids or (core.core_id,), key=str))
def cpu_manager_knows_cores_by_their_first_listed_cpu() -> None:
    """Identifies cores by the CPU whose name sorts first, such as 10 before 2."""


# Online CPUs


class _AllOnline(OnlineCPUs):
    def __contains__(self, cpu: int) -> bool:
        return True


@seeds("DISCOVERY-005").around(discovery, "cores_of")
def offline_cpus_with_a_topology_are_found(rule: Any, tree: Any) -> Any:
    """Includes offline CPUs that have a topology."""
    return rule(online=_AllOnline(tree))


@seeds("DISCOVERY-007").after(cpus, "topology_id")
def cpu_without_a_package_is_in_package_0(
    topology_id: Any, tree: SysTree, path: str, name: str
) -> Any:
    """Assigns CPUs without a package to package 0."""
    return 0 if topology_id is None and name == "physical_package_id" else topology_id


@seeds("DISCOVERY-007").around(discovery, "cores_of")
def cpu_without_a_core_id_hides_those_after_it(
    rule: Any, tree: SysTree, paths: list[str], online: OnlineCPUs
) -> Any:
    """Stops at the first CPU without a core id."""
    kept = []
    for path in paths:
        cpu = cpus.number_in(path.rpartition("/")[2])
        if cpu is not None and cpu in online and not text_of(tree, f"{path}/topology/core_id"):
            break
        kept.append(path)
    return rule(paths=kept)


# Caches


def _has_caches(tree: SysTree, cpu: int) -> bool:
    return "cache" in tree.names(f"{CPUS}/cpu{cpu}")


@seeds("DISCOVERY-008").after(discovery, "cores_of")
def cpu_without_caches_is_left_out(cores: list[CoreThreads], tree: SysTree) -> list[CoreThreads]:
    """Ignores CPUs without caches."""
    kept = [
        core._replace(cpus=tuple(cpu for cpu in core.cpus if _has_caches(tree, cpu)))
        for core in cores
    ]
    return [core for core in kept if core.cpus]


@shape(caches, "caches_of_cpu", Changes.after)
def _caches_of_cpu(missing: Change, cpu_caches: Any, tree: SysTree, cpu: int) -> Any:
    """Calls `missing` for CPUs whose caches can't be read."""
    if cpu_caches is None:
        missing(tree, cpu)
    return cpu_caches


@seeds("DISCOVERY-008").by(_caches_of_cpu)
def cpu_without_caches_ends_discovery(tree: SysTree, cpu: int) -> None:
    """Fails if a CPU has no caches."""
    if not _has_caches(tree, cpu):
        raise DiscoveryError(f"open {CPUS}/cpu{cpu}/cache: no such file or directory")


class _WithIds(SysTree):
    """A tree from which the caches that have no id are missing."""

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


@seeds("DISCOVERY-009").around(caches, "caches_of_cpu")
def cache_without_an_id_is_passed_over(rule: Any, tree: Any) -> Any:
    """Skips caches without an id."""
    return rule(tree=_WithIds(tree))


@seeds("DISCOVERY-009").around(caches, "read_until_unreadable")
def cache_without_an_id_ends_its_core(rule: Any, cores: Any) -> Any:
    """Stops reading a core's caches at one without an id, but continues with the next core."""
    return [rule(cores=[core])[0] for core in cores]


@seeds("DISCOVERY-010").around(caches, "read_until_unreadable")
def caches_above_level_3_are_left_out(rule: Any) -> Any:
    """Ignores caches above level 3."""
    return [
        [found for found in shared if found.cache.level <= 3]  # noqa: PLR2004
        for shared in rule()
    ]


# Nodes


@seeds("DISCOVERY-012").around(discovery, "topology_id")
def package_minus_1_becomes_node_0(rule: Any) -> Any:
    """Assigns CPUs of package -1 to node 0."""
    return None if (found := rule()) is None else max(0, found)


# Counts


def _num_cores(changes: Changes, *, nodes: bool, count: Callable[[SysTree, Any], int]) -> None:
    """Lets `count` compute the number of CPUs on machines with (or without) node directories."""

    def change(tree: SysTree, machine: MachineInfo) -> MachineInfo:
        if not machine.num_cores or bool(tree.numbered_names(NODES, "node")) != nodes:
            return machine
        return msgspec.structs.replace(machine, num_cores=count(tree, machine))

    change_machine(changes, change)


@seeds("DISCOVERY-014")
def online_cpus_without_a_core_are_counted(changes: Changes) -> None:
    """Counts online CPUs that belong to no core."""

    def count(tree: SysTree, _: MachineInfo) -> int:
        return sum(int(name[3:]) in OnlineCPUs(tree) for name in tree.numbered_names(CPUS, "cpu"))

    _num_cores(changes, nodes=True, count=count)


def _ids(cpuinfo: str, name: str) -> list[str]:
    return re.findall(rf"^{name}\s*:\s*([0-9]+)$", cpuinfo, re.MULTILINE)


@shape(discovery, "count_cores_and_sockets")
def _counts(count: Change, rule: Any, cpuinfo: Any, tree: Any) -> Any:
    """Lets `count` replace the numbers of cores and sockets, given cpuinfo and the tree."""
    return count(cpuinfo, tree, *rule())


@seeds("DISCOVERY-015").by(_counts)
def core_ids_alone_are_counted_in_sysfs(cpuinfo: Any, tree: Any, cores: Any, sockets: Any) -> Any:
    """Counts core ids in sysfs without regard to their package."""
    if _ids(cpuinfo, "core id"):
        return cores, sockets
    names = tree.numbered_names(CPUS, "cpu")
    found = {text_of(tree, f"{CPUS}/{name}/topology/core_id") for name in names}
    return len(found - {""}) or cores, sockets


@seeds("DISCOVERY-016").by(_counts)
def machine_without_physical_ids_has_one_socket(
    cpuinfo: str, tree: SysTree, cores: int, sockets: int
) -> Any:
    """Counts one socket if /proc/cpuinfo has no physical ids."""
    return (cores, sockets if _ids(cpuinfo, "physical id") else 1)


@seeds("DISCOVERY-016").by(_counts)
def sockets_are_counted_up_to_the_highest_id(cpuinfo: Any, _: Any, cores: Any, sockets: Any) -> Any:
    """Uses the highest physical id as the number of sockets."""
    numbers = [int(number) for number in _ids(cpuinfo, "physical id")]
    return cores, max(numbers) + 1 if numbers else sockets


# Sizes


@seeds("DISCOVERY-018").around(discovery, "node_memory")
def node_without_meminfo_has_all_memory(rule: Any, tree: SysTree, node: str) -> Any:
    """Assigns all memory to nodes without meminfo."""
    if text_of(tree, f"{node}/meminfo"):
        return rule()
    return memory.machine_memory(tree)


@seeds("DISCOVERY-018").around(discovery, "node_memory")
def node_without_meminfo_ends_discovery(rule: Any, tree: SysTree, node: str) -> Any:
    """Fails if a node has no meminfo."""
    if "meminfo" not in tree.names(node):
        raise DiscoveryError(f"open {node}/meminfo: no such file or directory")
    return rule()


@shape(discovery, "huge_pages")
def _pools(change: Change, rule: Any, tree: SysTree, folder: str) -> Any:
    """Lets `change` replace the huge pages in a directory."""
    return change(tree, folder, rule() or ()) or None


@seeds("DISCOVERY-019").by(_pools)
def pools_without_pages_are_left_out(tree: Any, folder: Any, pools: Any) -> Any:
    """Ignores page sizes that have no pages."""
    return tuple(pool for pool in pools if pool.num_pages)


@seeds("DISCOVERY-019").by(_pools)
def node_without_pools_has_those_of_the_machine(tree: Any, folder: Any, pools: Any) -> Any:
    """Adds the machine's page sizes to nodes without a directory for huge pages."""
    if pools or not folder.startswith(NODES):
        return pools
    whole = memory.huge_pages(tree, "/sys/kernel/mm/hugepages") or ()
    return tuple(msgspec.structs.replace(pool, num_pages=0) for pool in whole)


@seeds("DISCOVERY-019").around(discovery, "huge_pages")
def machine_without_pools_is_refused(rule: Any, tree: SysTree, folder: str) -> Any:
    """Fails if the machine has no directory for huge pages."""
    if not folder.startswith(NODES):
        tree.names(folder)
    return rule()


def _nodes_with(changes: Changes, change: Callable[[SysTree, MachineInfo, Node], Node]) -> None:
    change_machine(
        changes,
        lambda tree, machine: msgspec.structs.replace(
            machine,
            topology=machine.topology
            and tuple(change(tree, machine, node) for node in machine.topology),
        ),
    )


@seeds("DISCOVERY-020").by(_nodes_with)
def missing_distances_are_made_up(tree: SysTree, machine: MachineInfo, node: Node) -> Node:
    """Invents missing distances: 10 to the node itself, 20 to others."""
    if node.distances is not None or not tree.numbered_names(NODES, "node"):
        return node
    row = tuple(10 if one is node else 20 for one in machine.topology or ())
    return msgspec.structs.replace(node, distances=row)


# Trees without packages, and without files in /proc


@seeds("DISCOVERY-013").around(discovery, "topology_id")
def cpus_without_packages_are_in_node_0(rule: Any) -> Any:
    """Assigns CPUs without a package to node 0."""
    return 0 if (found := rule()) is None else found


@seeds("DISCOVERY-013").by(change_machine)
def cpus_without_packages_are_not_counted(tree: Any, machine: Any) -> Any:
    """Doesn't count CPUs without a package."""
    return machine if machine.topology else msgspec.structs.replace(machine, num_cores=0)


@shape(SysTree, "read")
def _without(missing: str, instead: str, rule: Any, path: str) -> Any:
    """Returns `instead` if the file `missing` doesn't exist."""
    try:
        return rule()
    except UnreadablePathError:
        if path != missing:
            raise
        return instead


@seeds("DISCOVERY-024").of(_without, "/proc/cpuinfo", "")
def tree_without_cpuinfo_is_discovered() -> None:
    """Treats a missing /proc/cpuinfo as empty."""


@seeds("DISCOVERY-024").of(_without, "/proc/meminfo", "MemTotal: 0 kB")
def tree_without_meminfo_has_no_memory() -> None:
    """Treats a missing /proc/meminfo as no memory."""


# Machines without CPUs, and starting with a root


@seeds("DISCOVERY-023").by(change_topology)
def machine_without_cpus_has_one(rule: Any, machine: MachineInfo) -> CPUTopology:
    """Assumes one CPU if there are none."""
    try:
        topology: CPUTopology = rule(machine)
    except TopologyError:
        if machine.num_cores:
            raise
        return CPUTopology(1, 1, 1, 1, {0: 1}, {0: 1}, {0: 1}, {0: 1}, {0: {0: 1}}, {0: {0: 1}})
    return topology


@seeds("DISCOVERY-023")
def static_policy_starts_with_nothing_to_hand_out(changes: Changes) -> None:
    """Starts the static policy on machines without CPUs."""
    starts = changes.record_argument(startup, "start", "args", inside=True)

    def derive(rule: Any, machine: MachineInfo) -> CPUTopology:
        try:
            topology: CPUTopology = rule()
        except TopologyError:
            policies = {args.config.get("cpuManagerPolicy") for args in starts}
            if machine.num_cores or "static" not in policies:
                raise
            return cpu_topology.NO_CPUS
        return topology

    def make_static(rule: Any, topology: CPUTopology, options: Any, rules: Any) -> Any:
        if not topology.cpus:
            return rules.without_reservation(topology, options)
        return rule()

    changes.around(cpu_topology, "derive", derive)
    changes.around(startup, "make_static", make_static)


@shape(startup, "start")
def _started_with(change: Change, rule: Any, discover: Any) -> Any:
    """Lets `change` replace the machine discovered at startup."""
    return rule(discover=lambda root, version: change(discover(root, version)))


@seeds("DISCOVERY-026").by(_started_with)
def start_leaves_out_nodes_without_cpus(machine: MachineInfo) -> Any:
    """Ignores nodes without CPUs at startup."""
    return msgspec.structs.replace(
        machine, topology=tuple(node for node in machine.topology or () if node.cores) or None
    )


@seeds("DISCOVERY-026").of(_started_with, without_uncore_caches)
def start_discovers_no_caches() -> None:
    """Ignores caches at startup."""
