"""Adapter for hwloc's lstopo: discovery only."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from machine import SeenCache, SeenCore, SeenNode, machine_info

from protocol import Refusal, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

LSTOPO = "lstopo-no-graphics"
KINDS = {"0": "Unified", "1": "Data", "2": "Instruction"}
KIB = 1024
ENVIRONMENT = {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}


def discover(args: dict[str, Any]) -> dict[str, Any]:
    """Runs discovery on a tree and returns its MachineInfo."""
    options = ("--if", "fsroot", "-i", args["root"], "--no-io", "--of", "xml", "-")
    topology = ET.fromstring(run_lstopo(*options))  # noqa: S314 - hwloc's own
    nodes = list(numa_nodes(topology))
    packages = [(cpus(one), number(one)) for one in objects(topology, "Package")]
    cores = [
        SeenCore(cpus(one), number(one), next((id_ for of, id_ in packages if cpus(one) <= of), -1))
        for one in objects(topology, "Core")
    ]
    caches = [
        SeenCache(cpus(one), int(one.attrib["depth"]), kind, int(one.attrib["cache_size"]))
        for one in topology.iter("object")
        if (kind := KINDS.get(one.get("cache_type", "")))
    ]
    return machine_info(nodes, cores, caches, num_sockets=len(packages))


def numa_nodes(topology: Element) -> Iterator[SeenNode]:
    """Returns the NUMA nodes by id.

    For nodes without CPUs, hwloc lists nearby CPUs, so each CPU belongs to the first node that
    lists it. If there is only one node, hwloc omits distances; the node's distance to itself is 10
    by definition.
    """
    found = sorted(objects(topology, "NUMANode"), key=number)
    distances = dict(rows(topology)) if len(found) > 1 else {number(found[0]): [10]}
    taken: frozenset[int] = frozenset()
    for one in found:
        fields = {
            "memory": int(one.get("local_memory", 0)),
            "hugepages": hugepages(one),
            "distances": distances.get(number(one)),
        }
        yield SeenNode(number(one), cpus(one) - taken, fields)
        taken |= cpus(one)


def objects(topology: Element, kind: str) -> Iterator[Element]:
    """Returns the objects of a type."""
    return (one for one in topology.iter("object") if one.get("type") == kind)


def number(element: Element) -> int:
    """Returns the kernel's id of an object, or -1."""
    return int(element.get("os_index", -1))


def cpus(element: Element) -> frozenset[int]:
    """Parses the CPUs of an object: 32-bit words, last word first."""
    words = reversed((element.get("cpuset") or "0x0").split(","))
    bits = sum(int(word or "0", 16) << (32 * place) for place, word in enumerate(words))
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def hugepages(node: Element) -> list[dict[str, int]]:
    """Returns a node's huge pages. The kernel's base pages come first and are skipped."""
    pages = [(int(one.attrib["size"]), int(one.attrib["count"])) for one in node.iter("page_type")]
    return [{"page_size": size // KIB, "num_pages": count} for size, count in pages[1:]]


def rows(topology: Element) -> Iterator[tuple[int, list[int]]]:
    """Returns each NUMA node's distances to all nodes, in the kernel's order."""
    for one in topology.iter("distances2"):
        if one.get("type") != "NUMANode":
            continue
        ids = [int(word) for part in one.iter("indexes") for word in (part.text or "").split()]
        values = [int(word) for part in one.iter("u64values") for word in (part.text or "").split()]
        for place, node in enumerate(ids):
            yield node, values[place * len(ids) : (place + 1) * len(ids)]


def run_lstopo(*options: str) -> str:
    """Returns the output of lstopo.

    Raises:
        Refusal: lstopo failed.
    """
    ended = subprocess.run(  # noqa: S603 - options of our own, and a tree that the harness made
        [LSTOPO, *options], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if ended.returncode < 0:
        raise RuntimeError(f"lstopo was killed by signal {-ended.returncode}: {ended.stderr}")
    if ended.returncode:
        raise Refusal(ended.stderr.strip(), stage="discovery")
    return ended.stdout


HELLO = {
    "protocol": 1,
    "name": "hwloc",
    "version": run_lstopo("--version").split()[-1],
    "language": "C",
    "kubernetes": ["1.37"],
    "level": "placement",
    "operations": ["discover"],
    "policies": {},
    "options": {},
    "features": [],
    "discovers": [
        *("num_cores", "num_sockets", "nodes", "node_memory", "node_hugepages", "distances"),
        *("cores", "core_ids", "socket_ids", "caches", "uncore_caches", "node_caches"),
    ],
    "homepage": "https://www.open-mpi.org/projects/hwloc/",
    "issues": "https://github.com/open-mpi/hwloc/issues",
}

if __name__ == "__main__":
    serve(HELLO, {"discover": discover})
