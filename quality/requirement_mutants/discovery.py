"""Violators of machine discovery."""

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
    """Lets `derive`, given the rule and a machine, say what the CPU Manager knows of it."""
    for owner in (cpu_topology, operations):
        changes.around(owner, "derive", derive)


@shape(implementation, "discover")
def change_machine(change: Change, rule: Any, root: Any) -> Any:
    """Lets discovery give what `change` makes of a tree and its machine."""
    return change(SysTree(root), rule())


def text_of(tree: SysTree, path: str) -> str:
    """What a file says; nothing where it cannot be read."""
    with suppress(UnreadablePathError):
        return tree.read_trimmed(path)
    return ""


def _form_cores(threads: dict[Any, tuple[int, int, list[int]]]) -> list[CoreThreads]:
    return [CoreThreads(core, package, tuple(own)) for core, package, own in threads.values()]


# The machine information


@seeds("DISCOVERY-001").by(change_topology)
def cpus_of_nodes_without_memory_are_unknown(rule: Any, machine: MachineInfo) -> CPUTopology:
    """Takes a node without memory for none."""
    nodes = tuple(node for node in machine.topology or () if node.memory)
    topology: CPUTopology = rule(
        msgspec.structs.replace(machine, topology=nodes) if nodes else machine
    )
    return topology


@seeds("DISCOVERY-001").by(change_topology)
def cpus_are_counted_by_their_cores(rule: Any, machine: MachineInfo) -> CPUTopology:
    """Multiplies cores by the threads of the first one."""
    topology: CPUTopology = rule(machine)
    cores = [core for node in machine.topology or () for core in node.cores or ()]
    threads = len(cores[0].thread_ids or ()) if cores else 0
    return replace(topology, cpu_count=len(cores) * threads)


@seeds("DISCOVERY-002").after(discovery, "cores_of")
def cores_are_thread_siblings(cores: list[CoreThreads], tree: SysTree) -> list[CoreThreads]:
    """Forms cores by the lists of thread siblings."""
    threads: dict[Any, tuple[int, int, list[int]]] = {}
    for core in cores:
        for cpu in core.cpus:
            siblings = text_of(tree, f"{CPUS}/cpu{cpu}/topology/thread_siblings_list")
            place = siblings or (core.core_id, core.package_id)
            threads.setdefault(place, (core.core_id, core.package_id, []))[2].append(cpu)
    return _form_cores(threads)


@seeds("DISCOVERY-003").by(change_machine)
def cores_reach_from_node_to_node(_: SysTree, machine: MachineInfo) -> MachineInfo:
    """Forms the cores of a package before looking at its nodes."""
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


@seeds("DISCOVERY-003").after(discovery, "cores_of")
def cores_of_different_dies_are_different(cores: Any, tree: SysTree) -> list[CoreThreads]:
    """Adds the die, where the kernel has one, to what makes a core."""
    threads: dict[Any, tuple[int, int, list[int]]] = {}
    for core in cores:
        for cpu in core.cpus:
            die = text_of(tree, f"{CPUS}/cpu{cpu}/topology/die_id")
            place = (core.core_id, core.package_id, die)
            threads.setdefault(place, (core.core_id, core.package_id, []))[2].append(cpu)
    return _form_cores(threads)


def _known_by(changes: Changes, number: Callable[[Core], int]) -> None:
    """Lets the CPU Manager tell cores by another number than their lowest CPU."""

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
    """Takes core ids for unique within a socket, whatever its nodes."""


@seeds("DISCOVERY-004").of(_known_by, lambda core: min(core.thread_ids or (core.core_id,), key=str))
def cpu_manager_knows_cores_by_their_first_listed_cpu() -> None:
    """Takes the first of a core's CPUs, which cAdvisor lists as cpu10, cpu2."""


# Which CPUs there are


class _AllOnline(OnlineCPUs):
    """Every CPU is online."""

    def __contains__(self, cpu: int) -> bool:
        """Whatever the number."""
        return True


@seeds("DISCOVERY-005").around(discovery, "cores_of")
def offline_cpus_with_a_topology_are_found(rule: Any, tree: Any) -> Any:
    """Assumes that an offline CPU has no topology."""
    return rule(online=_AllOnline(tree))


@seeds("DISCOVERY-007").after(cpus, "topology_id")
def cpu_without_a_package_is_in_package_0(
    topology_id: Any, tree: SysTree, path: str, name: str
) -> Any:
    """Puts every CPU of unknown package in the first one."""
    return 0 if topology_id is None and name == "physical_package_id" else topology_id


@seeds("DISCOVERY-007").around(discovery, "cores_of")
def cpu_without_a_core_id_hides_those_after_it(
    rule: Any, tree: SysTree, paths: list[str], online: OnlineCPUs
) -> Any:
    """Leaves the loop instead of going on with the next CPU."""
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
    """Takes a CPU without a cache folder for one that is offline."""
    kept = [
        core._replace(cpus=tuple(cpu for cpu in core.cpus if _has_caches(tree, cpu)))
        for core in cores
    ]
    return [core for core in kept if core.cpus]


@shape(caches, "caches_of_cpu", Changes.after)
def _caches_of_cpu(missing: Change, cpu_caches: Any, tree: SysTree, cpu: int) -> Any:
    """Calls `missing` for a CPU whose caches cannot be read."""
    if cpu_caches is None:
        missing(tree, cpu)
    return cpu_caches


@seeds("DISCOVERY-008").by(_caches_of_cpu)
def cpu_without_caches_ends_discovery(tree: SysTree, cpu: int) -> None:
    """Requires caches of every CPU."""
    if not _has_caches(tree, cpu):
        raise DiscoveryError(f"open {CPUS}/cpu{cpu}/cache: no such file or directory")


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


@seeds("DISCOVERY-009").around(caches, "caches_of_cpu")
def cache_without_an_id_is_passed_over(rule: Any, tree: Any) -> Any:
    """Goes on with the next cache."""
    return rule(tree=_WithIds(tree))


@seeds("DISCOVERY-009").around(caches, "read_until_unreadable")
def cache_without_an_id_ends_its_core(rule: Any, cores: Any) -> Any:
    """Goes on with the next core."""
    return [rule(cores=[core])[0] for core in cores]


@seeds("DISCOVERY-010").around(caches, "read_until_unreadable")
def caches_above_level_3_are_left_out(rule: Any) -> Any:
    """Handles three levels of caches only."""
    return [
        [found for found in shared if found.cache.level <= 3]  # noqa: PLR2004
        for shared in rule()
    ]


# Nodes


@seeds("DISCOVERY-012").around(discovery, "topology_id")
def package_minus_1_becomes_node_0(rule: Any) -> Any:
    """Lets no node have a negative id."""
    return None if (found := rule()) is None else max(0, found)


# Counts


def _num_cores(changes: Changes, *, nodes: bool, count: Callable[[SysTree, Any], int]) -> None:
    """Lets machines with node folders, or those without, count their CPUs as `count` does."""

    def change(tree: SysTree, machine: MachineInfo) -> MachineInfo:
        if not machine.num_cores or bool(tree.numbered_names(NODES, "node")) != nodes:
            return machine
        return msgspec.structs.replace(machine, num_cores=count(tree, machine))

    change_machine(changes, change)


@seeds("DISCOVERY-014")
def online_cpus_without_a_core_are_counted(changes: Changes) -> None:
    """Counts the CPUs that are online, whether they have a core or not."""

    def count(tree: SysTree, _: MachineInfo) -> int:
        return sum(int(name[3:]) in OnlineCPUs(tree) for name in tree.numbered_names(CPUS, "cpu"))

    _num_cores(changes, nodes=True, count=count)


def _ids(cpuinfo: str, name: str) -> list[str]:
    return re.findall(rf"^{name}\s*:\s*([0-9]+)$", cpuinfo, re.MULTILINE)


@shape(discovery, "count_cores_and_sockets")
def _counts(count: Change, rule: Any, cpuinfo: Any, tree: Any) -> Any:
    """Lets `count` count cores and sockets: given cpuinfo, the tree, and the right numbers."""
    return count(cpuinfo, tree, *rule())


@seeds("DISCOVERY-015").by(_counts)
def core_ids_alone_are_counted_in_sysfs(cpuinfo: Any, tree: Any, cores: Any, sockets: Any) -> Any:
    """Counts core ids in sysfs as in /proc/cpuinfo."""
    if _ids(cpuinfo, "core id"):
        return cores, sockets
    names = tree.numbered_names(CPUS, "cpu")
    found = {text_of(tree, f"{CPUS}/{name}/topology/core_id") for name in names}
    return len(found - {""}) or cores, sockets


@seeds("DISCOVERY-016").by(_counts)
def machine_without_physical_ids_has_one_socket(
    cpuinfo: str, tree: SysTree, cores: int, sockets: int
) -> Any:
    """Counts one socket where /proc/cpuinfo tells none."""
    return (cores, sockets if _ids(cpuinfo, "physical id") else 1)


@seeds("DISCOVERY-016").by(_counts)
def sockets_are_counted_up_to_the_highest_id(cpuinfo: Any, _: Any, cores: Any, sockets: Any) -> Any:
    """Takes physical ids for consecutive."""
    numbers = [int(number) for number in _ids(cpuinfo, "physical id")]
    return cores, max(numbers) + 1 if numbers else sockets


# Sizes


@seeds("DISCOVERY-018").around(discovery, "node_memory")
def node_without_meminfo_has_all_memory(rule: Any, tree: SysTree, node: str) -> Any:
    """Lets the machine's memory stand in."""
    if text_of(tree, f"{node}/meminfo"):
        return rule()
    return memory.machine_memory(tree)


@seeds("DISCOVERY-018").around(discovery, "node_memory")
def node_without_meminfo_ends_discovery(rule: Any, tree: SysTree, node: str) -> Any:
    """Requires the file of every node."""
    if "meminfo" not in tree.names(node):
        raise DiscoveryError(f"open {node}/meminfo: no such file or directory")
    return rule()


@shape(discovery, "huge_pages")
def _pools(change: Change, rule: Any, tree: SysTree, folder: str) -> Any:
    """Lets a folder have the huge pages that `change` makes of those in it."""
    return change(tree, folder, rule() or ()) or None


@seeds("DISCOVERY-019").by(_pools)
def pools_without_pages_are_left_out(tree: Any, folder: Any, pools: Any) -> Any:
    """Lists the pools that have pages."""
    return tuple(pool for pool in pools if pool.num_pages)


@seeds("DISCOVERY-019").by(_pools)
def node_without_pools_has_those_of_the_machine(tree: Any, folder: Any, pools: Any) -> Any:
    """Puts the machine's sizes, with no pages, where a node has no folder."""
    if pools or not folder.startswith(NODES):
        return pools
    whole = memory.huge_pages(tree, "/sys/kernel/mm/hugepages") or ()
    return tuple(msgspec.structs.replace(pool, num_pages=0) for pool in whole)


@seeds("DISCOVERY-019").around(discovery, "huge_pages")
def machine_without_pools_is_refused(rule: Any, tree: SysTree, folder: str) -> Any:
    """Requires the folder on every kernel."""
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
    """Lets every other node be as far as is usual."""
    if node.distances is not None or not tree.numbered_names(NODES, "node"):
        return node
    row = tuple(10 if one is node else 20 for one in machine.topology or ())
    return msgspec.structs.replace(node, distances=row)


# Trees without packages, and without files of /proc


@seeds("DISCOVERY-013").around(discovery, "topology_id")
def cpus_without_packages_are_in_node_0(rule: Any) -> Any:
    """Makes node 0 of what belongs to no package."""
    return 0 if (found := rule()) is None else found


@seeds("DISCOVERY-013").by(change_machine)
def cpus_without_packages_are_not_counted(tree: Any, machine: Any) -> Any:
    """Counts the CPUs of the nodes that were found, of which there are none."""
    return machine if machine.topology else msgspec.structs.replace(machine, num_cores=0)


@shape(SysTree, "read")
def _without(missing: str, instead: str, rule: Any, path: str) -> Any:
    """Reads `instead` where there is no file at the path `missing`."""
    try:
        return rule()
    except UnreadablePathError:
        if path != missing:
            raise
        return instead


@seeds("DISCOVERY-024").of(_without, "/proc/cpuinfo", "")
def tree_without_cpuinfo_is_discovered() -> None:
    """Does without /proc/cpuinfo, as all it tells is in sysfs as well."""


@seeds("DISCOVERY-024").of(_without, "/proc/meminfo", "MemTotal: 0 kB")
def tree_without_meminfo_has_no_memory() -> None:
    """Lets the machine have no memory, as a node without meminfo has none."""


# Machines without CPUs, and starts with a root


@seeds("DISCOVERY-023").by(change_topology)
def machine_without_cpus_has_one(rule: Any, machine: MachineInfo) -> CPUTopology:
    """Counts at least one CPU, as programs do that ask for their number."""
    try:
        topology: CPUTopology = rule(machine)
    except TopologyError:
        if machine.num_cores:
            raise
        return CPUTopology(1, 1, 1, 1, {0: 1}, {0: 1}, {0: 1}, {0: 1}, {0: {0: 1}}, {0: {0: 1}})
    return topology


@seeds("DISCOVERY-023")
def static_policy_starts_with_nothing_to_hand_out(changes: Changes) -> None:
    """Refuses pods, not the start, where there are no CPUs."""
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
    """Lets a start with a root manage what `change` makes of the machine that it discovers."""
    return rule(discover=lambda root, version: change(discover(root, version)))


@seeds("DISCOVERY-026").by(_started_with)
def start_leaves_out_nodes_without_cpus(machine: MachineInfo) -> Any:
    """Manages the nodes that have CPUs."""
    return msgspec.structs.replace(
        machine, topology=tuple(node for node in machine.topology or () if node.cores) or None
    )


@seeds("DISCOVERY-026").of(_started_with, without_uncore_caches)
def start_discovers_no_caches() -> None:
    """Reads at start only what the first policies needed."""
