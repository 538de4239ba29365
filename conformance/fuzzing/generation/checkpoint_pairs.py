"""Generates checkpoints whose two parts are valid, damaged, missing or contradictory.

Both parts should have the same content, with some resources assigned to a pod named ``uid-held``.
An edit changes one place in a part. The part's checksum then matches the edited content, so that
only the content is wrong.

The old part is for earlier releases; the new part is ``data`` and ``dataChecksum``. Consecutive
seeds go through all pairs for each manager, policy and feature gate of a release, and then start
over.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.schema import (
    Case,
    ContainerSpec,
    FileName,
    NoArguments,
    PodSpec,
    StartStep,
    TamperStep,
    open_step,
)
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices


GI = 1 << 30
NODE_MEMORY = 8 * GI
SYSTEM = GI
"""The memory of each of the two nodes, and the part of the first node reserved for the system."""

GONE: Any = ...
"""The value of an edit that removes the field."""


@dataclass(frozen=True, eq=False)
class ManagersFile:
    """A manager's checkpoint.

    Attributes:
        file: the name of the file.
        option: the configuration field for the manager's policy.
        policies: the policy that assigns resources, and the one that does not.
        content: the correct content under the first policy.
        pods: the entry of a pod with pod-level resources, in ``podEntries``.
        says_else: edits that keep the content well-formed.
        says_badly: edits that introduce values of the wrong type.
        data_only: edits to fields that the old part can omit.
        structures: suffixes of the names of structures whose checksums some release accepts.
    """

    file: FileName
    option: str
    policies: tuple[str, str]
    content: Mapping[str, Any]
    pods: Mapping[str, Any]
    says_else: Mapping[str, tuple[str, Any]]
    says_badly: Mapping[str, tuple[str, Any]]
    data_only: Mapping[str, tuple[str, Any]]
    structures: tuple[str, ...]

    def whole(self, policy: str) -> dict[str, Any]:
        """Returns the correct content."""
        return {**copy.deepcopy(dict(self.content)), "policyName": policy}


_ANY_ELSE: dict[str, tuple[str, Any]] = {
    "no policy": ("policyName", ""),
    "misspelt policy": ("policyName", "statik"),
    "no entries": ("entries", {}),
    "entries left out": ("entries", GONE),
    "null entries": ("entries", None),
    "an empty pod": ("entries/uid-gone", {}),
    "a null pod": ("entries/uid-gone", None),
}
_ANY_BADLY: dict[str, tuple[str, Any]] = {
    "policy 7": ("policyName", 7),
    "entries []": ("entries", []),
    "entries 7": ("entries", 7),
    "pod []": ("entries/uid-held", []),
    "container 7": ("entries/uid-held/app", 7),
}
_PODS_BADLY: dict[str, tuple[str, Any]] = {
    "pod entries 7": ("podEntries", 7),
    "pod entries null": ("podEntries", None),
    "pod entry 7": ("podEntries/uid-held", 7),
    "pod entry null": ("podEntries/uid-held", None),
    "pod entry {}": ("podEntries/uid-held", {}),
}

CPUS = ManagersFile(
    file="cpu_manager_state",
    option="cpuManagerPolicy",
    policies=("static", "none"),
    content={
        "policyName": "static",
        "defaultCpuSet": "0,2,4-7",
        "entries": {"uid-held": {"app": "1,3"}},
    },
    pods={"uid-held": {"cpuSet": "1,3"}},
    says_else={
        **_ANY_ELSE,
        "other CPUs": ("entries/uid-held/app", "5,7"),
        "CPUs of nobody": ("entries", {"uid-held": {"app": "1"}}),
        "CPUs twice": ("defaultCpuSet", "0-7"),
        "a pod that is gone": ("entries", {"uid-gone": {"app": "1,3"}}),
        "no shared pool": ("defaultCpuSet", ""),
        "null shared pool": ("defaultCpuSet", None),
        "no list of CPUs": ("defaultCpuSet", "0-x"),
        "a list of CPUs backwards": ("defaultCpuSet", "7-0"),
        "no list of a container's CPUs": ("entries/uid-held/app", "1,,3"),
        "no CPUs": ("entries/uid-held/app", ""),
    },
    says_badly={
        **_ANY_BADLY,
        "shared pool 7": ("defaultCpuSet", 7),
        "shared pool {}": ("defaultCpuSet", {}),
    },
    data_only={
        **_PODS_BADLY,
        "pod CPUs 7": ("podEntries/uid-held/cpuSet", 7),
        "no list of a pod's CPUs": ("podEntries/uid-held/cpuSet", "x"),
        "baselines": ("baselines", {"uid-held": {"app": {"baseline": "1,3"}}}),
        "other baselines": ("baselines", {"uid-held": {"app": {"baseline": "5"}}}),
        "baselines of a pod that is gone": ("baselines", {"uid-gone": {"app": {"baseline": "5"}}}),
        "empty baselines": ("baselines", {"uid-held": {}}),
        "null baselines": ("baselines", {"uid-held": None}),
        "no baselines": ("baselines", {}),
        "baselines 7": ("baselines", 7),
        "baseline 7": ("baselines", {"uid-held": {"app": {"baseline": 7}}}),
        "baseline of nothing": ("baselines", {"uid-held": {"app": {}}}),
        "no list of a baseline": ("baselines", {"uid-held": {"app": {"baseline": "x"}}}),
    },
    structures=("V2", "V3"),
)


def _table(reserved: int, system: int) -> dict[str, Any]:
    free = NODE_MEMORY - system
    return {
        "numberOfAssignments": int(bool(reserved)),
        "memoryMap": {
            "memory": {
                "total": NODE_MEMORY,
                "systemReserved": system,
                "allocatable": free,
                "reserved": reserved,
                "free": free - reserved,
            }
        },
    }


_BLOCK = {"numaAffinity": [0], "type": "memory", "size": GI}

MEMORY = ManagersFile(
    file="memory_manager_state",
    option="memoryManagerPolicy",
    policies=("Static", "None"),
    content={
        "policyName": "Static",
        "machineState": {
            "0": {**_table(GI, SYSTEM), "cells": [0]},
            "1": {**_table(0, 0), "cells": [1]},
        },
        "entries": {"uid-held": {"app": [_BLOCK]}},
    },
    pods={"uid-held": {"memoryBlocks": [_BLOCK]}},
    says_else={
        **_ANY_ELSE,
        "no nodes": ("machineState", {}),
        "null nodes": ("machineState", None),
        "a node less": ("machineState/1", GONE),
        "a node more": ("machineState/5", {**_table(0, 0), "cells": [5]}),
        "another total": ("machineState/1/memoryMap/memory/total", GI),
        "another reservation": ("machineState/0/memoryMap/memory/reserved", 2 * GI),
        "other cells": ("machineState/1/cells", [0, 1]),
        "null cells": ("machineState/1/cells", None),
        "null memory map": ("machineState/1/memoryMap", None),
        "blocks elsewhere": ("entries/uid-held/app", [{**_BLOCK, "numaAffinity": [1]}]),
        "blocks nowhere": ("entries/uid-held/app", [{**_BLOCK, "numaAffinity": [7]}]),
        "a larger block": ("entries/uid-held/app", [{**_BLOCK, "size": 2 * GI}]),
        "a null block": ("entries/uid-held/app", [{}]),
        "no blocks": ("entries/uid-held/app", []),
        "null blocks": ("entries/uid-held/app", None),
        "a pod that is gone": ("entries", {"uid-gone": {"app": [_BLOCK]}}),
    },
    says_badly={
        **_ANY_BADLY,
        "nodes []": ("machineState", []),
        "node 7": ("machineState/0", 7),
        "node zero": ("machineState/zero", {}),
        "total -1": ("machineState/0/memoryMap/memory/total", -1),
        "cells {}": ("machineState/0/cells", {}),
        "size 1.5": ("entries/uid-held/app", [{**_BLOCK, "size": 1.5}]),
    },
    data_only={
        **_PODS_BADLY,
        "pod blocks 7": ("podEntries/uid-held/memoryBlocks", 7),
        "pod blocks of another size": ("podEntries/uid-held/memoryBlocks", [{**_BLOCK, "size": 1}]),
        "null pod blocks": ("podEntries/uid-held/memoryBlocks", None),
    },
    structures=("V1", "V2"),
)


def old_parts(manager: ManagersFile, policy: str) -> Iterator[tuple[str, str]]:
    """Yields the variants of the old part, each with a name."""
    whole = manager.whole(policy)
    yield "no old part", ""
    yield "whole", _members_text(whole)
    yield "fields of no content", _members_text({"policyName": "", "checksum": 0})
    yield "null fields", _raw({**dict.fromkeys(whole), "checksum": None})
    yield "upper case", _raw({name.upper(): one for name, one in whole.items()})
    yield "an extra field", _raw({"extra": 1, **whole, "checksum": checkpoints.checksum(whole)})
    yield "no checksum", _members_text({**whole, "checksum": None})
    for given in (0, 1, -1, "x", None):
        yield f"checksum {given}", _raw({**whole, "checksum": given})
    for version in manager.structures:
        yield (
            f"checksum of {version}",
            _raw({**whole, "checksum": checkpoints.checksum(whole, version)}),
        )
    other = manager.policies[policy == manager.policies[0]]
    yield "other policy", _members_text({**whole, "policyName": other})
    with_pods = {**whole, "podEntries": dict(manager.pods)}
    yield "pod entries", _members_text(with_pods)
    yield "pod entries without checksum", _members_text({**with_pods, "checksum": None})
    yield (
        "pod entries with the checksum of before",
        _raw({**with_pods, "checksum": checkpoints.checksum(whole)}),
    )
    for version in manager.structures:
        yield (
            f"pod entries with the checksum of {version}",
            _raw({**with_pods, "checksum": checkpoints.checksum(with_pods, version)}),
        )
    if manager is CPUS:
        by_id = {**whole, "entries": {"uid-held/app": "1,3"}}
        yield "entries by id", _members_text(by_id)
        yield "entries by an id that is gone", _members_text({**whole, "entries": {"gone": "1,3"}})
    for name, edit in manager.says_else.items():
        edited = _apply_edit(whole, edit)
        summed = {
            key: one for key, one in edited.items() if one is not None or key != "defaultCpuSet"
        }
        yield name, _raw({**edited, "checksum": checkpoints.checksum(summed)})
    for name, edit in {**manager.says_badly, **manager.data_only}.items():
        yield f"{name}, no checksum", _raw(_apply_edit(with_pods, edit))


def new_parts(manager: ManagersFile, policy: str) -> Iterator[tuple[str, str]]:
    """Yields the variants of the new part (read only by the newest releases), each with a name."""
    whole = manager.whole(policy)
    text = _json(whole)
    yield "no new part", ""
    yield "whole", _data(text)
    for given in (0, 1, -1, 1.5, "x", None, GONE):
        name = "no" if given is GONE else given
        yield f"dataChecksum {name}", _data(text, given)
        yield f"data empty, dataChecksum {name}", _data("", given)
        yield f"data missing, dataChecksum {name}", _data(GONE, given)
    for given in (None, 7, [], {}, whole):
        yield f"data {_json(given)[:5]} as JSON", _data(given, 1)
        yield f"data {_json(given)[:5]} as JSON, dataChecksum 0", _data(given, 0)
    for written in ("null", "[]", "{}", "7", "x", '"x"', "{", text[: len(text) // 2], f"{text}x"):
        yield f"text {written[-9:]}", _data(written)
        yield f"text {written[-9:]}, dataChecksum 1", _data(written, 1)
    yield "white space", _data(f" {text}\n")
    yield "upper case", _data(text).replace('"data', '"DATA', 2)
    yield "twice", f"{_data(text)},{_data('x')}"
    other = manager.policies[policy == manager.policies[0]]
    edits = {**manager.says_else, **manager.says_badly, "other policy": ("policyName", other)}
    edits |= {"an extra field": ("extra", 1), "policy null": ("policyName", None)}
    for name, edit in edits.items():
        yield name, _data(_json(_apply_edit(whole, edit)))
    with_pods = {**whole, "podEntries": dict(manager.pods)}
    yield "pod entries", _data(_json(with_pods))
    for name, edit in manager.data_only.items():
        yield name, _data(_json(_apply_edit(with_pods, edit)))
        # One error may hide another.
        badly = _apply_edit({**with_pods, "entries": []}, edit)
        yield f"{name}; entries []", _data(_json(badly))


def damaged_texts(manager: ManagersFile, policy: str) -> Iterator[tuple[str, str]]:
    """Yields damaged files in either format, each with a name."""
    whole = manager.whole(policy)
    texts = {"old": checkpoints.text(whole), "new": checkpoints.text({**whole, "data": whole})}
    for name, text in texts.items():
        for eighth in range(1, 8):
            yield f"{name} cut at {eighth}/8", text[: len(text) * eighth // 8]
        yield f"{name} with text after it", f"{text}x"
        yield f"{name} with white space", f"\n {text}\t"
        yield f"{name} as a list", f"[{text}]"
    for text in ("", " ", "{}", "[]", "null", "7", '"x"', "x", "\0"):
        yield f"just {text!r}", text


def _apply_edit(fields: Mapping[str, Any], edit: tuple[str, Any]) -> dict[str, Any]:
    """Returns the fields with an edit applied; missing parents of the edited field are created."""
    found: dict[str, Any] = copy.deepcopy(dict(fields))
    place = found
    *parents, last = edit[0].split("/")
    for name in parents:
        place = place.setdefault(name, {})
    if edit[1] is GONE:
        del place[last]
    else:
        place[last] = edit[1]
    return found


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _raw(fields: Mapping[str, Any]) -> str:
    return _json(fields)[1:-1]


def _members_text(fields: Mapping[str, Any]) -> str:
    return checkpoints.text(fields)[1:-1]


def _data(data: Any, checksum: Any = True) -> str:  # noqa: FBT002 - True is the right checksum
    given = checkpoints.data_checksum(data) if checksum is True else checksum
    fields = {checkpoints.DATA: data, checkpoints.DATA_CHECKSUM: given}
    return _raw({name: one for name, one in fields.items() if one is not GONE})


_PODS = "PodLevelResourceManagers"
_GATES: dict[str, tuple[tuple[str, ...], ...]] = {
    CPUS.file: ((), (_PODS,), (_PODS, "InPlacePodVerticalScalingExclusiveCPUs")),
    MEMORY.file: ((), (_PODS,)),
}
"""The feature gates under which a file is read; gates unknown to a release are left out."""

_CONFIG: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "systemReserved": {"memory": str(SYSTEM)},
    "evictionHard": {},
}
_RESERVED = [{"numaNode": 0, "limits": {"memory": str(SYSTEM)}}]


class CheckpointPair(NamedTuple):
    """A file and the kubelet that reads it; `what` describes both parts."""

    manager: ManagersFile
    policy: str
    gates: tuple[str, ...]
    what: str
    text: str


@cache
def pairs(kubernetes: str) -> tuple[CheckpointPair, ...]:
    """Returns every pair for a release."""
    known = release(kubernetes).gates
    return tuple(
        CheckpointPair(manager, policy, gates, what, text)
        for manager in (CPUS, MEMORY)
        for policy in manager.policies
        for gates in _GATES[manager.file]
        if all(gate in known for gate in gates)
        for what, text in _files(manager, policy)
    )


def _files(manager: ManagersFile, policy: str) -> Iterator[tuple[str, str]]:
    for (name, old), (other, new) in product(
        old_parts(manager, policy), new_parts(manager, policy)
    ):
        yield f"{name}; {other}", _file(old, new)
    yield from damaged_texts(manager, policy)


def _file(old: str, new: str) -> str:
    return "{" + ",".join(filter(None, (old, new))) + "}"


def any_pair(choices: Choices, manager: ManagersFile) -> str:
    """Chooses a pair for the policy that assigns resources, and returns the file."""
    old, new = map(choices.pick, _texts(manager))
    return _file(old, new)


@cache
def _texts(manager: ManagersFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the variants of the old and the new part for that policy."""
    policy = manager.policies[0]
    return (
        tuple(text for _, text in old_parts(manager, policy)),
        tuple(text for _, text in new_parts(manager, policy)),
    )


def checkpoint_pair(seed: int, capabilities: Capabilities) -> Case:
    """Returns the case for a pair: a kubelet finds the file, admits two pods, and restarts."""
    known = pairs(capabilities.kubernetes)
    pair = known[seed % len(known)]
    config = {**_CONFIG, pair.manager.option: pair.policy}
    config["featureGates"] = dict.fromkeys(pair.gates, True)
    if pair.policy == MEMORY.policies[0]:
        config["memoryManagerPolicy"] = pair.policy
        config["reservedMemory"] = _RESERVED
    start = open_step(start=StartStep(config=config))
    look = open_step(state=NoArguments())
    return Case(
        id=f"checkpoint-{seed}",
        title=f"{pair.manager.file}, {pair.policy}: {pair.what}",
        requirements=(),
        level="invariants",
        machine=_MACHINE,
        steps=(
            open_step(tamper=TamperStep(pair.manager.file, "write", pair.text)),
            start,
            open_step(admit=_pod("held")),
            look,
            open_step(admit=_pod("next")),
            start,
            look,
        ),
    )


def _pod(name: str) -> PodSpec:
    amounts: dict[str, Any] = {"cpu": "2", "memory": "1Gi"}
    return PodSpec(name, containers={"app": ContainerSpec(limits=amounts)})


_MACHINE = MachineInfo(
    num_cores=8,
    num_physical_cores=8,
    num_sockets=2,
    memory_capacity=2 * NODE_MEMORY,
    topology=tuple(
        Node(
            node_id=node,
            memory=NODE_MEMORY,
            distances=(10, 20) if node == 0 else (20, 10),
            cores=tuple(
                Core(core_id=cpu % 4, thread_ids=(cpu,), socket_id=node)
                for cpu in range(4 * node, 4 * node + 4)
            ),
        )
        for node in range(2)
    ),
)
