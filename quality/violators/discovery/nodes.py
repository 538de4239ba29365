"""Violators of the requirements of discovery: which CPUs there are, and what cores they form."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.reference import implementation, operations
from numaproof.reference.cadvisor import cpus, discovery
from numaproof.reference.cadvisor.cpus import CoreThreads, OnlineCPUs
from numaproof.reference.cadvisor.sysfs import CPUS, SysTree, UnreadablePathError
from numaproof.reference.cpu import topology as cpu_topology
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.machine import Core, MachineInfo
    from numaproof.reference.cpu.topology import CPUTopology

seeds = SubjectBugs("discovery")


def derived(changes: Changes, derive: Callable[..., CPUTopology]) -> None:
    """Lets `derive`, given the original and a machine, say what the CPU Manager knows of it."""
    for owner in (cpu_topology, operations):
        changes.around(owner, "derive", derive)


def discovered(changes: Changes, change: Callable[[SysTree, MachineInfo], MachineInfo]) -> None:
    """Lets discovery give what `change` makes of a tree and its machine."""
    changes.around(
        implementation,
        "discover",
        lambda original, root, *rest: change(SysTree(root), original(root, *rest)),
    )


def cores_changed(
    changes: Changes, change: Callable[[SysTree, list[CoreThreads]], list[CoreThreads]]
) -> None:
    """Lets the CPUs of a node form the cores that `change` makes of them."""
    changes.around(
        discovery,
        "cores_of",
        lambda original, tree, paths, online: change(tree, original(tree, paths, online)),
    )


def text_of(tree: SysTree, path: str) -> str:
    """What a file says; nothing where it cannot be read."""
    with suppress(UnreadablePathError):
        return tree.read_trimmed(path)
    return ""


def _formed(threads: dict[Any, tuple[int, int, list[int]]]) -> list[CoreThreads]:
    return [CoreThreads(core, package, tuple(own)) for core, package, own in threads.values()]


# The machine information


@seeds("DISCOVERY-001")
def cpus_of_nodes_without_memory_are_unknown(changes: Changes) -> None:
    """A plausible author takes a node without memory for none."""

    def derive(original: Any, machine: MachineInfo) -> CPUTopology:
        nodes = tuple(node for node in machine.topology or () if node.memory)
        topology: CPUTopology = original(
            msgspec.structs.replace(machine, topology=nodes) if nodes else machine
        )
        return topology

    derived(changes, derive)


@seeds("DISCOVERY-001")
def cpus_are_counted_by_their_cores(changes: Changes) -> None:
    """A plausible author multiplies cores by the threads of the first one."""

    def derive(original: Any, machine: MachineInfo) -> CPUTopology:
        topology: CPUTopology = original(machine)
        cores = [core for node in machine.topology or () for core in node.cores or ()]
        threads = len(cores[0].thread_ids or ()) if cores else 0
        return dataclasses.replace(topology, cpu_count=len(cores) * threads)

    derived(changes, derive)


@seeds("DISCOVERY-002")
def cores_are_thread_siblings(changes: Changes) -> None:
    """A plausible author forms cores by the lists of thread siblings."""

    def change(tree: SysTree, cores: list[CoreThreads]) -> list[CoreThreads]:
        threads: dict[Any, tuple[int, int, list[int]]] = {}
        for core in cores:
            for cpu in core.cpus:
                siblings = text_of(tree, f"{CPUS}/cpu{cpu}/topology/thread_siblings_list")
                place = siblings or (core.core_id, core.package_id)
                threads.setdefault(place, (core.core_id, core.package_id, []))[2].append(cpu)
        return _formed(threads)

    cores_changed(changes, change)


@seeds("DISCOVERY-003")
def cores_reach_from_node_to_node(changes: Changes) -> None:
    """A plausible author forms the cores of a package before he looks at its nodes."""

    def change(_: SysTree, machine: MachineInfo) -> MachineInfo:
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

    discovered(changes, change)


@seeds("DISCOVERY-003")
def cores_of_different_dies_are_different(changes: Changes) -> None:
    """A plausible author adds the die, where the kernel has one, to what makes a core."""

    def change(tree: SysTree, cores: list[CoreThreads]) -> list[CoreThreads]:
        threads: dict[Any, tuple[int, int, list[int]]] = {}
        for core in cores:
            for cpu in core.cpus:
                die = text_of(tree, f"{CPUS}/cpu{cpu}/topology/die_id")
                place = (core.core_id, core.package_id, die)
                threads.setdefault(place, (core.core_id, core.package_id, []))[2].append(cpu)
        return _formed(threads)

    cores_changed(changes, change)


def _known_by(changes: Changes, number: Callable[[Core], int]) -> None:
    """Lets the CPU Manager tell cores by another number than their lowest CPU."""

    def derive(original: Any, machine: MachineInfo) -> CPUTopology:
        topology: CPUTopology = original(machine)
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

        return dataclasses.replace(
            topology,
            cores=cores,
            cores_by_socket=within(topology.sockets),
            cores_by_node=within(topology.nodes),
        )

    derived(changes, derive)


@seeds("DISCOVERY-004")
def cpu_manager_knows_cores_by_socket_and_core_id(changes: Changes) -> None:
    """A plausible author takes core ids for unique within a socket, whatever its nodes."""
    _known_by(changes, lambda core: core.socket_id * (1 << 16) + core.core_id)


@seeds("DISCOVERY-004")
def cpu_manager_knows_cores_by_their_first_listed_cpu(changes: Changes) -> None:
    """A plausible author takes the first of a core's CPUs, which cAdvisor lists as cpu10, cpu2."""
    _known_by(changes, lambda core: min(core.thread_ids or (core.core_id,), key=str))


# Which CPUs there are


class _AllOnline(OnlineCPUs):
    """Every CPU is online."""

    def __contains__(self, cpu: int) -> bool:
        """Whatever the number."""
        return True


@seeds("DISCOVERY-005")
def offline_cpus_with_a_topology_are_found(changes: Changes) -> None:
    """A plausible author thinks that an offline CPU has no topology."""
    changes.around(
        discovery,
        "cores_of",
        lambda original, tree, paths, _: original(tree, paths, _AllOnline(tree)),
    )


def _topology_ids(
    changes: Changes, name: str, missing: Callable[[SysTree, str], int | None]
) -> None:
    """Lets `missing` say what a missing id in a CPU's ``topology`` counts as."""

    def topology_id(original: Any, tree: SysTree, path: str, asked: str) -> Any:
        found = original(tree, path, asked)
        return missing(tree, path) if found is None and asked == name else found

    changes.around(cpus, "topology_id", topology_id)


@seeds("DISCOVERY-007")
def cpu_without_a_package_is_in_package_0(changes: Changes) -> None:
    """A plausible author puts every CPU of unknown package in the first one."""
    _topology_ids(changes, "physical_package_id", lambda tree, path: 0)


@seeds("DISCOVERY-007")
def cpu_without_a_core_id_hides_those_after_it(changes: Changes) -> None:
    """A plausible author leaves the loop where he means to go on with the next CPU."""

    def cores_of(original: Any, tree: SysTree, paths: list[str], online: OnlineCPUs) -> Any:
        kept = []
        for path in paths:
            cpu = cpus.number_in(path.rpartition("/")[2])
            if cpu is not None and cpu in online and not text_of(tree, f"{path}/topology/core_id"):
                break
            kept.append(path)
        return original(tree, kept, online)

    changes.around(discovery, "cores_of", cores_of)
