"""Files of the Memory Manager that somebody changed; the checksums are those that kubelets take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from builders.machines import of_memory
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.deviations import releases
from numaproof.reference.memory import policy

if TYPE_CHECKING:
    from collections.abc import Callable

GI = 1 << 30
SYSTEM = 1124 << 20
STATIC = policy.make_static(
    of_memory(8 * GI, 8 * GI),
    {0: {"memory": SYSTEM}},
    releases.release("1.35").rule(policy.StaticMemoryPolicy),
)
DIFFERENT = "[memorymanager] the expected machine state is different from the real one"
ABSENT = "[memorymanager] (pod: u, container: c) the memory assignment uses the NUMA that does not"
NO_MACHINE = "[memorymanager] machine state can not be empty when it has memory assignments"

Edit = tuple[str, Any]


def file(checksum: int, *edits: Edit) -> bytes:
    """The file of an idle node; an edit is a path such as ``machineState/0/cells`` and a value."""
    content: dict[str, Any] = {
        "policyName": "Static",
        "machineState": {
            str(node): {
                "numberOfAssignments": 0,
                "memoryMap": {"memory": table(8 * GI, SYSTEM if node == 0 else 0)},
                "cells": [node],
            }
            for node in range(2)
        },
    }
    for path, value in edits:
        place = content
        *parents, last = path.split("/")
        for name in parents:
            place = place[name]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return json.dumps({**content, "checksum": checksum}).encode()


def table(total: int, system: int) -> dict[str, int]:
    free = total - system
    return {
        "total": total,
        "systemReserved": system,
        "allocatable": free,
        "reserved": 0,
        "free": free,
    }


def start(content: bytes, release: str = "1.35", policy_name: str = "Static") -> str:
    """What the Memory Manager says at its start; nothing where it starts."""
    try:
        state = memory_checkpoint.restore(
            content, policy_name, releases.release(release).memory_files
        )
        STATIC.restore(state)
    except (files.CheckpointError, policy.RestoreError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("checksum", "edits", "said"),
    [
        (998638923, [], ""),
        (998638923, [("entries", {})], ""),
        (3272191764, [("entries", None)], ""),
        (3824511554, [("machineState", None)], ""),
        (3940083781, [("machineState", {})], ""),
        (123384058, [("machineState", None), ("entries", {"u": {"c": []}})], NO_MACHINE),
        (199552911, [("entries", {"u": None})], ""),
        (4166714720, [("entries", {"u": {"c": None}})], ""),
        (1055074442, [("entries", {"u": {"c": [None]}})], ""),
        (1055074442, [("entries", {"u": {"c": [{}]}})], ""),
        (
            1860805057,
            [("entries", {"u": {"c": [{"numaAffinity": None, "type": "memory", "size": 0}]}})],
            "",
        ),
        (
            194262149,
            [("entries", {"u": {"c": [{"numaAffinity": [99], "type": "memory", "size": 5}]}})],
            ABSENT,
        ),
        (1349974425, [("machineState/0/memoryMap", None)], DIFFERENT),
        (1349974425, [("machineState/0/memoryMap", ...)], DIFFERENT),
        (159886077, [("machineState/0/memoryMap/memory", {})], DIFFERENT),
        (1721887858, [("machineState/0/cells", None)], DIFFERENT),
        (2741231153, [("machineState/0/cells", [])], DIFFERENT),
        (1132242691, [("machineState/0/cells", [0, 0])], DIFFERENT),
        (2693880816, [("machineState/0/numberOfAssignments", 5)], DIFFERENT),
        (3321670191, [("machineState/1", ...)], DIFFERENT),
        (3500809149, [("machineState/7", None)], DIFFERENT),
    ],
)
def test_a_file_with_a_right_checksum_is_compared_with_the_machine(
    checksum: int, edits: list[Edit], said: str
) -> None:
    assert start(file(checksum, *edits)).startswith(said)
    assert bool(start(file(checksum, *edits))) is bool(said)
    assert start(file(checksum + 1, *edits)) == "checkpoint is corrupted"


@pytest.mark.parametrize(
    ("checksum", "edit"),
    [
        (3064966660, ("machineState/0", None)),
        (3108924834, ("machineState/0/memoryMap/memory", None)),
        (4168966326, ("machineState/0/memoryMap/hugepages-2Mi", None)),
    ],
)
def test_where_a_kubelet_panics_on_null_the_machine_is_a_different_one(
    checksum: int, edit: Edit
) -> None:
    assert start(file(checksum, edit)) == DIFFERENT


@pytest.mark.parametrize(("release", "said"), [("1.35", "checkpoint is corrupted"), ("1.36", "")])
def test_1_36_also_takes_the_checksum_of_its_own_name(release: str, said: str) -> None:
    assert start(file(3686325094), release) == said
    assert start(file(998638923), release) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace(b"Static", b"None"), "checkpoint is corrupted"),
        (lambda text: text[: len(text) // 2], "unexpected end of JSON input"),
        (
            lambda text: text.replace(b'"cells": [0]', b'"cells": {}'),
            "json: cannot unmarshal object into Go struct field NUMANodeState.machineState.cells",
        ),
        (
            lambda text: text.replace(b'"total": ', b'"total": -'),
            "json: cannot unmarshal number -8589934592 into Go struct field MemoryTable",
        ),
    ],
)
def test_a_damaged_file_is_refused(change: Callable[[bytes], bytes], said: str) -> None:
    assert start(change(file(998638923))).startswith(said)


def test_a_file_of_another_policy_is_refused() -> None:
    assert start(file(998638923), policy_name="None") == (
        '[memorymanager] configured policy "None" differs from state checkpoint policy "Static"'
    )
