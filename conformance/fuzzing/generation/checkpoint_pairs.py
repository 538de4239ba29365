"""Checkpoints whose two parts are whole, damaged, missing or at odds: every pair, one for a seed.

The old part is what earlier releases read; the new part is ``data`` and ``dataChecksum``. Seeds
number the pairs for each manager, policy and gate of the release, so that a range of seeds covers
them all; after the last pair the first comes again.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.conformance.cases.schema import (
    Case,
    ContainerSpec,
    NoArguments,
    PodSpec,
    StartStep,
    Step,
    TamperStep,
)
from numaproof.conformance.fuzzing.generation import checkpoint_parts as parts
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.capabilities import Capabilities

_PODS = "PodLevelResourceManagers"
_GATES: dict[str, tuple[tuple[str, ...], ...]] = {
    parts.CPUS.file: ((), (_PODS,), (_PODS, "InPlacePodVerticalScalingExclusiveCPUs")),
    parts.MEMORY.file: ((), (_PODS,)),
}
"""The gates that a file is read under; those that a release does not know are left out."""

_CONFIG: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "systemReserved": {"memory": str(parts.SYSTEM)},
    "evictionHard": {},
}
_RESERVED = [{"numaNode": 0, "limits": {"memory": str(parts.SYSTEM)}}]


class FoundFile(NamedTuple):
    """One file, and the kubelet that finds it; `what` says what is wrong with which part."""

    manager: parts.ManagersFile
    policy: str
    gates: tuple[str, ...]
    what: str
    text: str


@cache
def pairs(kubernetes: str) -> tuple[FoundFile, ...]:
    """Every pair that a release is tried with."""
    known = release(kubernetes).gates
    return tuple(
        FoundFile(manager, policy, gates, what, text)
        for manager in (parts.CPUS, parts.MEMORY)
        for policy in manager.policies
        for gates in _GATES[manager.file]
        if all(gate in known for gate in gates)
        for what, text in _files(manager, policy)
    )


def _files(manager: parts.ManagersFile, policy: str) -> Iterator[tuple[str, str]]:
    for (name, old), (other, new) in product(
        parts.old(manager, policy), parts.new(manager, policy)
    ):
        yield f"{name}; {other}", "{" + ",".join(filter(None, (old, new))) + "}"
    yield from parts.damaged(manager, policy)


def checkpoint_pair(seed: int, capabilities: Capabilities) -> Case:
    """The pair of this number: a kubelet that finds the file, two pods, and a restart."""
    known = pairs(capabilities.kubernetes)
    pair = known[seed % len(known)]
    config = {**_CONFIG, pair.manager.option: pair.policy}
    config["featureGates"] = dict.fromkeys(pair.gates, True)
    if pair.policy == parts.MEMORY.policies[0]:
        config["memoryManagerPolicy"] = pair.policy
        config["reservedMemory"] = _RESERVED
    start = _anything(start=StartStep(config=config))
    look = _anything(state=NoArguments())
    return Case(
        id=f"checkpoint-{seed}",
        title=f"{pair.manager.file}, {pair.policy}: {pair.what}",
        requirements=(),
        level="invariants",
        machine=_MACHINE,
        steps=(
            _anything(tamper=TamperStep(pair.manager.file, "write", pair.text)),
            start,
            _anything(admit=_pod("held")),
            look,
            _anything(admit=_pod("next")),
            start,
            look,
        ),
    )


def _pod(name: str) -> PodSpec:
    amounts: dict[str, Any] = {"cpu": "2", "memory": "1Gi"}
    return PodSpec(name, containers={"app": ContainerSpec(limits=amounts)})


def _anything(**verb: Any) -> Step:
    return Step(expect="anything", **verb)


_MACHINE = MachineInfo(
    num_cores=8,
    num_physical_cores=8,
    num_sockets=2,
    memory_capacity=2 * parts.NODE_MEMORY,
    topology=tuple(
        Node(
            node_id=node,
            memory=parts.NODE_MEMORY,
            distances=(10, 20) if node == 0 else (20, 10),
            cores=tuple(
                Core(core_id=cpu % 4, thread_ids=(cpu,), socket_id=node)
                for cpu in range(4 * node, 4 * node + 4)
            ),
        )
        for node in range(2)
    ),
)
