"""The kubelet's discovery, which reads a machine from a ``/sys`` and ``/proc`` tree.

The kubelet reads the machine once, at startup, through cAdvisor. Its resource managers base all
their decisions on the following:

- A *NUMA node* is an entry ``nodeN`` of ``/sys/devices/system/node``, with memory, CPUs, both or
  neither. Ids can have gaps.
- If there are no such entries, each package (socket) becomes a node with the package's id, which
  can be negative. Such a node has no memory, huge pages or distances.
- CPUs and cores are read by `numaproof.reference.cadvisor.cpus`, caches by
  `numaproof.reference.cadvisor.caches`, memory and huge pages by
  `numaproof.reference.cadvisor.memory`, and the counts of cores and sockets by
  `numaproof.reference.cadvisor.cpuinfo`.

Files that some kernels omit may be missing; invalid content makes the topology unknown.

Source: cAdvisor v0.49.2 (Kubernetes 1.30), v0.49.0 (1.31), v0.51.0 (1.32), v0.52.1 (1.33 and 1.34),
v0.53.0 (1.35), v0.56.2 (1.36) and its module lib v0.60.5 (1.37), built for amd64. They differ only
in the error for a tree without CPUs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol.machine import Core, MachineInfo, Node, UncoreCache
from numaproof.reference.cadvisor.caches import caches_of
from numaproof.reference.cadvisor.cpuinfo import count_cores_and_sockets
from numaproof.reference.cadvisor.cpus import CoreThreads, OnlineCPUs, cores_of, topology_id
from numaproof.reference.cadvisor.memory import huge_pages, machine_memory, node_memory
from numaproof.reference.cadvisor.sysfs import (
    CPUS,
    NODES,
    DiscoveryError,
    SysTree,
    UnreadablePathError,
)
from numaproof.reference.golang.numbers import NumeralError, parse_signed, parse_unsigned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.workdir.trees import Root

__all__ = ["NO_CPU", "DiscoveryError", "discover"]

NO_CPU = "no CPU is available"
"""The beginning of the newest cAdvisor's error for a tree without CPUs."""

_NODE_NUMBER = re.compile("node([0-9]*)")


def discover(
    root: Root,
    no_cpu: str = NO_CPU,
    log: Callable[[str], None] | None = None,
    *,
    by_siblings: bool = False,
) -> MachineInfo:
    """Discovers the machine that the tree under `root` describes.

    If the topology cannot be parsed, the machine has no CPUs or nodes, and the kubelet later
    refuses to start.

    Args:
        root: a folder with ``sys`` and ``proc``: ``/``, a copy, or a path in a fake file system.
        no_cpu: the beginning of the error for a tree without CPUs, which depends on the release.
        log: a function to call with the error that cAdvisor logs if it cannot parse the topology.
        by_siblings: whether cores are the thread siblings that the kernel lists, or, as in
            cAdvisor, the CPUs with equal ids.

    Returns:
        The machine. Nodes are in the byte order of their folder names (node 10 before node 2);
        nodes made from packages are in ascending order of id; a node's cores are in the byte order
        of their first CPUs. Sizes are in bytes, but page sizes are in KiB. ``topology`` is None if
        it cannot be parsed or if no CPU has a package; ``num_cores`` is 0 in the first case and the
        number of all CPUs in the second.

    Raises:
        DiscoveryError: ``/proc/cpuinfo``, ``/proc/meminfo`` or a pool of huge pages cannot be
            read; the message is cAdvisor's.

    Requirements: DISCOVERY-001, DISCOVERY-013, DISCOVERY-021, DISCOVERY-022, DISCOVERY-024.
    """
    try:
        return _machine(SysTree(root), no_cpu, log, by_siblings=by_siblings)
    except NumeralError as error:
        raise DiscoveryError(str(error)) from None


def _machine(
    tree: SysTree, no_cpu: str, log: Callable[[str], None] | None, *, by_siblings: bool
) -> MachineInfo:
    cpuinfo = tree.read("/proc/cpuinfo")
    memory = machine_memory(tree)
    pools = huge_pages(tree, "/sys/kernel/mm/hugepages")
    online = OnlineCPUs(tree)
    nodes: list[Node] = []
    num_cores = 0
    try:
        nodes, num_cores = _topology(tree, online, no_cpu, by_siblings=by_siblings)
    except (DiscoveryError, NumeralError) as error:
        if log:
            log(str(error))
    physical_cores, sockets = count_cores_and_sockets(cpuinfo, tree, online)
    return MachineInfo(
        num_cores=num_cores,
        num_physical_cores=physical_cores,
        num_sockets=sockets,
        memory_capacity=memory,
        hugepages=pools,
        topology=tuple(nodes) or None,
    )


def _topology(
    tree: SysTree, online: OnlineCPUs, no_cpu: str, *, by_siblings: bool
) -> tuple[list[Node], int]:
    """Returns the nodes and the number of CPUs.

    On machines with nodes, only CPUs that belong to cores count; on machines without nodes, all
    entries count, even those of offline CPUs.

    Requirements: DISCOVERY-014.
    """
    names = tree.numbered_names(NODES, "node")
    if names:
        nodes = [_node(tree, name, online, by_siblings=by_siblings) for name in names]
        cores = [core for node in nodes for core in node.cores or ()]
        return nodes, sum(len(core.thread_ids or ()) for core in cores)
    paths = _cpu_paths(tree, CPUS)
    if not paths:
        raise DiscoveryError(f"{no_cpu}, cpusPath: {CPUS}")
    return _packages(tree, paths, online, by_siblings=by_siblings), len(paths)


def _node(tree: SysTree, name: str, online: OnlineCPUs, *, by_siblings: bool) -> Node:
    number = _NODE_NUMBER.match(name)
    assert number
    node_id = parse_signed(number[1])
    folder = f"{NODES}/{name}"
    paths = _cpu_paths(tree, folder)
    threads = cores_of(tree, paths, online, by_siblings=by_siblings)
    cores, caches = _with_caches(tree, threads)
    return Node(
        node_id=node_id,
        # None distinguishes a node without CPUs from a node whose CPUs are all offline.
        cores=cores if paths else None,
        caches=caches,
        memory=node_memory(tree, folder),
        hugepages=huge_pages(tree, f"{folder}/hugepages"),
        distances=_distances(tree, folder),
    )


def _packages(
    tree: SysTree, paths: Sequence[str], online: OnlineCPUs, *, by_siblings: bool
) -> list[Node]:
    """Returns the packages as nodes, including those whose CPUs are all offline.

    cAdvisor lists them in random order, because it iterates over a map.

    Requirements: DISCOVERY-012.
    """
    by_package: dict[int, list[str]] = {}
    for path in paths:
        package_id = topology_id(tree, path, "physical_package_id")
        if package_id is not None:
            by_package.setdefault(package_id, []).append(path)
    nodes = []
    for package_id, members in sorted(by_package.items()):
        threads = cores_of(tree, members, online, by_siblings=by_siblings)
        cores, caches = _with_caches(tree, threads)
        nodes.append(Node(node_id=package_id, cores=cores, caches=caches))
    return nodes


def _distances(tree: SysTree, node: str) -> tuple[int, ...] | None:
    """Returns the distances to all nodes in the kernel's order, or None if they are unreadable.

    Requirements: DISCOVERY-020.
    """
    try:
        text = tree.read_trimmed(f"{node}/distance")
    except UnreadablePathError:
        return None
    # Fields are separated by single spaces; an empty field is an invalid number.
    return tuple(map(_distance, text.split(" ")))


def _distance(text: str) -> int:
    try:
        return parse_unsigned(text)
    except NumeralError:
        raise DiscoveryError(f"cannot convert {text} to int") from None


def _with_caches(
    tree: SysTree, threads: Sequence[CoreThreads]
) -> tuple[tuple[Core, ...], tuple[UncoreCache, ...] | None]:
    found = caches_of(tree, threads)
    cores = tuple(
        Core(
            core_id=core.core_id,
            socket_id=core.package_id,
            thread_ids=core.cpus,
            caches=own or None,
            uncore_caches=uncore or None,
        )
        for core, own, uncore in zip(threads, found.core, found.uncore, strict=True)
    )
    return cores, found.node or None


def _cpu_paths(tree: SysTree, folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in tree.numbered_names(folder, "cpu")]


class NodeOrder:
    """Lists NUMA nodes in ascending order of id; no document specifies an order."""

    def of(self, machine: MachineInfo) -> MachineInfo:
        nodes = tuple(sorted(machine.topology or (), key=lambda node: node.node_id))
        if nodes == (machine.topology or ()):
            return machine
        return msgspec.structs.replace(machine, topology=nodes)
