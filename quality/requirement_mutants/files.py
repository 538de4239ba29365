"""Mutants that read checkpoint files too strictly inside, or too loosely where nothing is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import files, formats
from numaproof.reference.checkpoints import memory as memory_checkpoint
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

seeds = SubjectBugs("restart")


# Unknown fields

_OUTER = {"policyName", "defaultCpuSet", "machineState", "entries", "podEntries", "checksum"}
_KNOWN = (
    _OUTER
    | {"data", "dataChecksum", "cpuSet", "baseline", "baselines", "memoryBlocks"}
    | {"numberOfAssignments", "memoryMap", "cells", "numaAffinity", "type", "size"}
    | {"total", "systemReserved", "allocatable", "reserved", "free"}
)
_KEYED = {"entries", "podEntries", "baselines", "machineState", "memoryMap"}
"""Fields whose objects have free keys, at each of their levels."""

_LEVELS = {"entries": 2, "baselines": 2}


def _unknown(value: Any, depth: int = 0, free: int = 0) -> Iterator[tuple[str, int]]:
    """Yields the unknown fields of a file, and how deep they are."""
    if isinstance(value, list):
        for one in value:
            yield from _unknown(one, depth + 1)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if free:
            yield from _unknown(inner, depth + 1, free - 1)
        elif key not in _KNOWN:
            yield key, depth
        else:
            levels = _LEVELS.get(key, 1) if key in _KEYED else 0
            yield from _unknown(inner, depth + 1, levels)


def _unknown_in(content: bytes) -> list[tuple[str, int]]:
    try:
        whole = json.loads(content)
    except ValueError:
        return []
    data = whole.get("data") if isinstance(whole, dict) else None
    try:
        inside = json.loads(data) if isinstance(data, str) and data else {}
    except ValueError:
        inside = {}
    return [*_unknown(whole), *((name, depth + 1) for name, depth in _unknown(inside))]


def _refuse(changes: Changes, owner: Any) -> None:
    """Refuses unknown fields that are not next to ``policyName``."""

    def restore(rule: Any, content: bytes) -> Any:
        for name, depth in _unknown_in(content):
            if depth:
                raise files.CheckpointError(f"unknown field {name}")
        return rule()

    changes.around(owner, "restore", restore)


for _name, _owner, _requirement in (
    ("cpu", cpu_checkpoint, "CPU-CHECKPOINT-010"),
    ("memory", memory_checkpoint, "MEM-CHECKPOINT-004"),
):
    seeds.add(
        f"unknown-fields-inside-the-{_name}-file-are-refused",
        "Refuses unknown fields, unless they are next to policyName.",
        _requirement,
        "kubelet",
        _refuse,
        _owner,
    )


# Checksums of files without anything to keep


def _skip(changes: Changes, is_needless: Callable[[Any], bool], has_nodes: bool) -> None:  # noqa: FBT001
    """Doesn't verify checksums when a file's content needs none."""

    def when(content: Any) -> bool:
        return is_needless(content) and ("machineState" in content) is has_nodes

    def takes(rule: Any, content: Any) -> Any:
        return when(content) or rule()

    changes.around(formats.Format, "takes", takes)

    def takes_data(rule: Any, content: Any) -> Any:
        try:
            inside = json.loads(content["data"])
        except ValueError:
            return rule()
        return when(inside) or rule()

    changes.around(formats.TwoPartFormat, "takes", takes_data)


def _keeps_nothing(content: Any) -> bool:
    return content.get("policyName") in ("none", "None")


def _is_empty(content: Any) -> bool:
    return not content.get("entries") and not content.get("podEntries")


for _what, _when in (("under-none", _keeps_nothing), ("without-entries", _is_empty)):
    for _name, _requirement in (
        ("cpu", "CPU-CHECKPOINT-005"),
        ("memory", "MEM-CHECKPOINT-001"),
    ):
        seeds.add(
            f"the-{_name}-file-is-not-verified-{_what}",
            "Accepts any checksum in a file that keeps nothing.",
            _requirement,
            "kubelet",
            _skip,
            _when,
            _name == "memory",
        )
