"""Comparing machines for implementations that claim only parts of discovery.

A row of `discovered.yaml` changes parts of a machine with two nodes, each with four cores, two
threads per core and one level 3 cache. `says` has the wrong aspects, the single claims that reveal
them, and the message if everything is claimed.
"""

from __future__ import annotations

from typing import Any

import pytest

from builders.differences import parts
from builders.machines import plain, regular
from builders.tables import Table
from numaproof.conformance.judging.machine_comparison import difference, differing, seen_in
from numaproof.protocol import codec
from numaproof.protocol.discovery import DISCOVERED
from numaproof.protocol.machine import HugePages, MachineInfo, UncoreCache
from numaproof.protocol.messages import StartRefused

WRONG = Table(__file__, "discovered.yaml")
L3 = UncoreCache(0, 1 << 20, "Unified", 3)
L1 = {"id": 0, "size": 32768, "type": "Data", "level": 1}


def machine(**changes: Any) -> MachineInfo:
    """Returns the machine with other values at these paths."""
    found = plain(regular(2, 4, 2, 2, cores_per_cache=4, cache=L3, hugepages=(HugePages(2048, 3),)))
    for core in (core for node in found["topology"] for core in node["cores"]):
        core["caches"] = [{**L1}]
    for place, value in changes.items():
        *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
        within: Any = found
        for part in path:
            within = within[part]
        match value:
            case "(gone)":
                del within[last]
            case "(reversed)":
                within[last].reverse()
            case _ if last == "+":
                within.append(value)
            case _:
                within[last] = value
    return codec.from_plain(found, MachineInfo)


MACHINE = machine()


@WRONG
def test_a_difference_is_named_and_visible_to_its_claims(
    row: dict[str, Any],
) -> None:
    wrong = machine(**row["changes"])
    beside = {"cache_ids": {"caches"}}
    seen = [
        name for name in DISCOVERED if difference(wrong, MACHINE, {name} | beside.get(name, set()))
    ]
    told = difference(wrong, MACHINE, DISCOVERED.keys())
    said = {"wrong": sorted(differing(wrong, MACHINE)), "seen by": seen, "told": parts(told)}
    WRONG.check(row, said)


def test_a_refusal_is_not_a_difference_of_a_machine() -> None:
    assert differing(StartRefused("discovery", "no"), MACHINE) == set()


def test_only_claimed_aspects_can_be_wrong() -> None:
    empty = machine(topology=[], num_sockets=7)
    assert differing(empty, MACHINE, ("num_cores", "num_sockets")) == {"num_sockets"}


@pytest.mark.parametrize(
    ("cores", "aspects"),
    [
        (
            {"0": {"core_id": 0, "cpus": "0", "caches": []}},
            ("num_cores", "nodes", "cores", "core_ids", "caches"),
        ),
        ({}, ("num_cores", "nodes")),
    ],
)
def test_expected_aspects_are_named_like_claims(
    cores: dict[str, Any], aspects: tuple[str, ...]
) -> None:
    assert seen_in({"num_cores": 1, "node_ids": [0], "nodes": {"0": {"cores": cores}}}) == aspects
