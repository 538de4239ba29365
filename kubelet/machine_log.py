"""The machine that a kubelet discovers, as its log shows it.

cAdvisor logs the machine with Go's verb ``%+v``: structures as ``{Name:value Name:value}``, lists
as ``[value value]``, maps as ``map[key:value]``.
"""

from __future__ import annotations

import re
from typing import Any

from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache

LINE = "Machine: "
"""How the line begins."""

_TOPOLOGY = " Topology:["


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
    nodes, _ = _value(text, topology + len(_TOPOLOGY) - 1)
    return MachineInfo(
        num_cores=int(value["NumCores"]),
        num_physical_cores=int(value["NumPhysicalCores"]),
        num_sockets=int(value["NumSockets"]),
        memory_capacity=int(value["MemoryCapacity"]),
        hugepages=_pages(value["HugePages"]),
        topology=tuple(map(_node, nodes)) or None,
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
        hugepages=_pages(value["HugePages"]),
        distances=tuple(map(int, value["Distances"])) or None,
        cores=tuple(map(_core, value["Cores"])) or None,
        caches=_caches(value["Caches"]),
    )


def _core(value: dict[str, Any]) -> Core:
    return Core(
        core_id=int(value["Id"]),
        thread_ids=tuple(map(int, value["Threads"])) or None,
        socket_id=int(value["SocketID"]),
        caches=_caches(value["Caches"]),
        uncore_caches=_caches(value["UncoreCaches"]),
    )


def _caches(values: list[dict[str, Any]]) -> tuple[UncoreCache, ...] | None:
    return (
        tuple(
            UncoreCache(int(one["Id"]), int(one["Size"]), one["Type"], int(one["Level"]))
            for one in values
        )
        or None
    )


def _pages(values: list[dict[str, Any]]) -> tuple[HugePages, ...] | None:
    return tuple(HugePages(int(one["PageSize"]), int(one["NumPages"])) for one in values) or None
