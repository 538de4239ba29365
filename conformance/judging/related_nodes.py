"""Relations between nodes: nodes that must admit the same pods although something differs.

Each relation changes something that can't matter to the first pods of a node: the numbers of CPUs
and NUMA nodes, an additional node without resources, a larger reservation or the order of the pods.
A relation names the invariant that a different outcome breaks. It applies only if no choice among
equally good resources can affect the outcome, and if the documents make the outcome certain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.judging.entitlement import (
    is_static,
    options,
    reserved_cpus,
    topology_policy,
)
from numaproof.conformance.judging.pods import amount
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.protocol import messages
    from numaproof.protocol.machine import Core, MachineInfo

_MAX_NODES = 8
"""The most nodes on which the Topology Manager starts by default."""

_REMOTE = 20
"""The distance of an additional node."""


@dataclass(frozen=True)
class RelatedNode:
    """A node that must start and admit or refuse pods like the original one.

    Attributes:
        invariant: what a different outcome breaks.
        requirement: the requirement that follows from.
        difference: how the node differs.
        start: the arguments of its start.
        pods: the pods to admit, in order.
        outcomes: whether each pod must be admitted.
        must_start: whether the node must start; if it needn't and doesn't, it admits no pods.
    """

    invariant: str
    requirement: str
    difference: str
    start: messages.StartArgs
    pods: tuple[messages.Pod, ...]
    outcomes: tuple[bool, ...]
    must_start: bool = True


def related_nodes(
    start: messages.StartArgs, admissions: Sequence[tuple[messages.Pod, bool]]
) -> Iterator[RelatedNode]:
    """Yields the nodes related to one that has just started.

    Args:
        start: the arguments of a start with an empty state directory and a described machine.
        admissions: the first one or two pods, and whether they were admitted.
    """
    (pod, admitted), *others = admissions
    machine = start.machine
    if machine is None or not _is_plain(pod) or start.flags or start.check_node:
        return
    if not (start.config.get("topologyManagerPolicyOptions") or start.config.get("featureGates")):
        ids = [node.node_id for node in machine.topology or ()]
        if min(ids, default=-1) >= 0 and max(ids) < _MAX_ID:
            yield RelatedNode(
                "relabelling-changes-nothing",
                "CPU-HINT-017",
                "other numbers of CPUs and NUMA nodes",
                _with_other_numbers(start, machine),
                (pod,),
                (admitted,),
            )
        if len(ids) < _MAX_NODES and min(ids, default=-1) >= 0 and not options(start.config):
            yield RelatedNode(
                "unused-node-changes-nothing",
                "TOPO-POLICY-005",
                "another NUMA node without resources",
                msgspec.structs.replace(start, machine=_with_node(machine)),
                (pod,),
                (admitted,),
            )
    if topology_policy(start.config) not in ("none", "best-effort") or options(start.config):
        return
    if reservation := _other_reservation(start.config, admitted=admitted):
        config, difference = reservation
        yield RelatedNode(
            "reservation-admits-no-more",
            "CPU-RESERVE-001",
            difference,
            msgspec.structs.replace(start, config=config),
            (pod,),
            (admitted,),
            must_start=admitted,
        )
    keeps_memory = start.config.get("memoryManagerPolicy", "None") != "None"
    if admitted and others and others[0][1] and _is_plain(others[0][0]) and not keeps_memory:
        yield RelatedNode(
            "pods-commute",
            "CPU-STATIC-002",
            "the pods in reverse order",
            start,
            (others[0][0], pod),
            (True, True),
        )


_MAX_ID = 62


def _is_plain(pod: messages.Pod) -> bool:
    """Whether no choice can affect a pod: only one container has resources, and not the pod."""
    spec = pod["spec"]
    containers = (*(spec.get("initContainers") or ()), *spec["containers"])
    return len(containers) == 1 and not spec.get("resources")


def _cpu(number: int) -> int:
    return 2 * number + 1


def _with_other_numbers(start: messages.StartArgs, machine: MachineInfo) -> messages.StartArgs:
    """The start with other numbers in the same order, and with gaps."""
    config = dict(start.config)
    named = reserved_cpus(config)
    if named is not None:
        config["reservedSystemCPUs"] = str(CPUSet(map(_cpu, named)))
    if isinstance(kept := config.get("reservedMemory"), list):
        config["reservedMemory"] = [
            {**one, "numaNode": one.get("numaNode", 0) + 1} if isinstance(one, dict) else one
            for one in kept
        ]
    nodes = tuple(
        msgspec.structs.replace(
            node, node_id=node.node_id + 1, cores=node.cores and tuple(map(_core, node.cores))
        )
        for node in machine.topology or ()
    )
    devices = tuple(
        msgspec.structs.replace(
            listed,
            ids=tuple(
                msgspec.structs.replace(
                    one, numa=None if one.numa is None else NUMASet(n + 1 for n in one.numa)
                )
                for one in listed.ids
            ),
        )
        for listed in start.devices
    )
    return msgspec.structs.replace(
        start,
        config=config,
        machine=msgspec.structs.replace(machine, topology=nodes),
        devices=devices,
    )


def _core(core: Core) -> Core:
    return msgspec.structs.replace(core, thread_ids=tuple(map(_cpu, core.thread_ids or ())))


def _with_node(machine: MachineInfo) -> MachineInfo:
    """The machine with a last node that has neither CPUs nor memory."""
    nodes = machine.topology or ()
    far = [
        msgspec.structs.replace(node, distances=node.distances and (*node.distances, _REMOTE))
        for node in nodes
    ]
    last = msgspec.structs.replace(
        nodes[-1],
        node_id=max(node.node_id for node in nodes) + 1,
        memory=0,
        hugepages=tuple(
            msgspec.structs.replace(one, num_pages=0) for one in nodes[-1].hugepages or ()
        ),
        distances=nodes[-1].distances and (*(_REMOTE for _ in nodes), 10),
        cores=(),
        caches=None,
    )
    return msgspec.structs.replace(machine, topology=(*far, last))


def _other_reservation(
    config: messages.KubeletConfiguration, *, admitted: bool
) -> tuple[dict[str, Any], str] | None:
    """A smaller reservation of CPUs for a pod that was admitted, else a larger one."""
    kept: Mapping[str, Any] = config.get("kubeReserved") or {}
    cpus = amount(kept.get("cpu", 0)) if isinstance(kept, dict) else Fraction()
    if (
        not is_static(config)
        or cpus.denominator != 1
        or not re.fullmatch(r"[1-9]\d*", str(kept.get("cpu", "")))
    ):
        return None
    if config.get("reservedSystemCPUs") or (admitted and cpus < 2):  # noqa: PLR2004 - one remains
        return None
    changed = cpus - 1 if admitted else cpus + 1
    difference = f"{'a smaller' if admitted else 'a larger'} reservation of {changed} CPUs"
    return {**config, "kubeReserved": {**kept, "cpu": str(changed)}}, difference
