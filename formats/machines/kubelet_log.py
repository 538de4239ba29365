"""The machine that a kubelet discovers, as its log shows it.

cAdvisor logs the machine at a kubelet's start with Go's verb ``%+v``: structures as
``{Name:value Name:value}``, lists as ``[value value]``, maps as ``map[key:value]``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from numaproof.formats.machines.description import DescriptionError, MachineText
from numaproof.formats.machines.machine_info import complete
from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache

if TYPE_CHECKING:
    from collections.abc import Iterable

LINE = "Machine: "
"""How the line begins."""

_TOPOLOGY = " Topology:["
_FIELDS = {
    "sockets": "SocketID:",
    "hugepages": "HugePages:",
    "distances": "Distances:",
    "caches": "Caches:",
}
"""Fields of nodes and cores that earlier releases lack, by what they are about."""


def is_log(text: str) -> bool:
    """Returns whether a text has a line with a machine."""
    return any(map(_is_machine, text.splitlines()))


def _is_machine(line: str) -> bool:
    return LINE in line and "NumCores:" in line


def read(file: str, text: str) -> MachineText:
    """Returns the machine that a kubelet's log shows last.

    Raises:
        DescriptionError: the line is cut off, or the log is of several machines.
    """
    *earlier, (number, line) = (
        one for one in enumerate(text.splitlines(), 1) if _is_machine(one[1])
    )
    if {id_ for _, one in earlier for id_ in _ids(one)} - _ids(line):
        fix = "save the log of a single kubelet"
        raise DescriptionError("a kubelet's log of another machine", fix, number)
    try:
        machine = parse(line)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise DescriptionError(
            "the kubelet's log has a line `Machine: {...}` that is cut off",
            "use `journalctl -u kubelet -o cat`, or the file itself",
        ) from None
    nodes = line[line.rfind(_TOPOLOGY) :]
    fields = frozenset(subject for subject, field in _FIELDS.items() if field in nodes)
    found = complete(file, "a kubelet's log", machine, fields)
    other = next((at for at, one in earlier if nodes != one[one.rfind(_TOPOLOGY) :]), None)
    if other is None:
        return found
    note = f"shows other NUMA nodes in line {other}; those of line {number} count"
    return replace(found, notes=(*found.notes, note))


def _ids(line: str) -> set[str]:
    return set(re.findall(r" MachineID:(\S+)", line))


def parse(text: str) -> MachineInfo:
    """The machine in a line of the log.

    Raises:
        ValueError: the line is not cAdvisor's.
    """
    # What comes before, between and after has names and addresses, which may contain anything.
    begin, topology = text.find("NumCores:"), text.rfind(_TOPOLOGY)
    end = text.find(" MachineID:", begin)
    if not 0 <= begin < end < topology:
        raise ValueError(f"this is no machine: {text[:200]}")
    value, _ = _structure(text[:end], begin)
    items, _ = _value(text, topology + len(_TOPOLOGY) - 1)
    nodes = tuple(map(_node, items))
    # Kubelets before 1.19 don't count cores and sockets; their nodes are sockets.
    return MachineInfo(
        num_cores=int(value["NumCores"]),
        num_physical_cores=int(
            value.get("NumPhysicalCores", sum(len(node.cores or ()) for node in nodes))
        ),
        num_sockets=int(value.get("NumSockets", len(nodes))),
        memory_capacity=int(value["MemoryCapacity"]),
        hugepages=_pages(value.get("HugePages", ())),
        topology=nodes or None,
    )


def _structure(text: str, at: int) -> tuple[dict[str, Any], int]:
    """The fields of a structure whose first field begins at a position, and where it ends."""
    fields: dict[str, Any] = {}
    while at < len(text) and text[at] != "}":
        if text[at] == " ":
            at += 1
            continue
        name = re.compile(r"\w+(?=:)").match(text, at)
        if name is None:
            raise ValueError(f"expected a field at {text[at : at + 40]!r}")
        fields[name[0]], at = _value(text, name.end() + 1)
    return fields, at + 1


def _value(text: str, at: int) -> tuple[Any, int]:
    if text.startswith("{", at):
        return _structure(text, at + 1)
    if text.startswith("map[", at):
        return None, text.index("]", at) + 1
    if not text.startswith("[", at):
        plain = re.compile(r"[^ }\]]*").match(text, at)
        assert plain is not None
        return plain[0], plain.end()
    items, at = [], at + 1
    while not text.startswith("]", at):
        if at >= len(text):
            raise ValueError("the line is cut off")
        if text[at] == " ":
            at += 1
            continue
        item, at = _value(text, at)
        items.append(item)
    return items, at + 1


def _node(value: dict[str, Any]) -> Node:
    return Node(
        node_id=int(value["Id"]),
        memory=int(value["Memory"]),
        hugepages=_pages(value.get("HugePages", ())),
        distances=tuple(map(int, value.get("Distances", ()))) or None,
        cores=tuple(_core(core, value["Id"]) for core in value["Cores"]) or None,
        caches=_caches(value["Caches"]),
    )


def _core(value: dict[str, Any], node: str) -> Core:
    return Core(
        core_id=int(value["Id"]),
        thread_ids=tuple(map(int, value["Threads"])) or None,
        socket_id=int(value.get("SocketID", node)),
        caches=_caches(value["Caches"]),
        uncore_caches=_caches(value.get("UncoreCaches", ())),
    )


def _caches(values: Iterable[dict[str, Any]]) -> tuple[UncoreCache, ...] | None:
    return (
        tuple(
            UncoreCache(int(one.get("Id", 0)), int(one["Size"]), one["Type"], int(one["Level"]))
            for one in values
        )
        or None
    )


def _pages(values: Iterable[dict[str, Any]]) -> tuple[HugePages, ...] | None:
    return tuple(HugePages(int(one["PageSize"]), int(one["NumPages"])) for one in values) or None
