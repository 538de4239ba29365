"""The dialogue that `numaproof doctor` has with a program, step by step, as far as it claims them.

One small machine: two NUMA nodes with two cores of two threads each. The steps are those of a case,
and `numaproof.conformance.execution.player` plays them; what they are for stands beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases.schema import (
    AssignStep,
    Case,
    ContainerSpec,
    HintsStep,
    MergeStep,
    NoArguments,
    PodSpec,
    RemoveStep,
    StartStep,
    Step,
)
from numaproof.protocol.machine import Core, HugePages, MachineInfo, Node, UncoreCache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import Hello

_GIB = 1 << 30

_NODES = tuple(
    Node(
        node_id=node,
        memory=8 * _GIB,
        hugepages=(),
        distances=(10, 21) if node == 0 else (21, 10),
        cores=tuple(
            Core(
                core_id=core,
                thread_ids=(2 * node + core, 2 * node + core + 4),
                socket_id=node,
                uncore_caches=(UncoreCache(node, 8 << 20, "Unified", 3),),
            )
            for core in range(2)
        ),
    )
    for node in range(2)
)

MACHINE = MachineInfo(
    num_cores=8,
    num_physical_cores=4,
    num_sockets=2,
    memory_capacity=16 * _GIB,
    hugepages=(),
    topology=_NODES,
)
"""CPUs 0, 4, 1, 5 on node 0 and 2, 6, 3, 7 on node 1."""

HUGE_PAGES_MACHINE = msgspec.structs.replace(
    MACHINE,
    hugepages=(HugePages(2048, 1024),),
    topology=tuple(
        msgspec.structs.replace(node, hugepages=(HugePages(2048, 512),)) for node in _NODES
    ),
)
"""The same with 1 GiB of each node's memory in huge pages of 2 MiB."""

_NIC = "vendor.example/nic"
_RESERVED = "0,4"
_RESERVED_MEMORY = 612
"""MiB that the configuration reserves: 512 for the kubelet, 100 by the eviction threshold."""


@dataclass(frozen=True)
class Line:
    """A step, and what it is for.

    `readmits`: whether the pods on the node are admitted again after a restart.
    """

    about: str
    step: Step
    readmits: bool = True


@dataclass(frozen=True)
class Chosen:
    """What the dialogue uses: the most demanding policies that are claimed, and devices or none.

    An implementation that lists no policy of a kind lacks that manager.
    """

    cpu: str
    memory: str
    topology: str
    scope: str
    devices: bool

    @classmethod
    def of(cls, hello: Hello) -> Chosen:
        """Those for what a program claims."""
        claimed = hello.policies
        return cls(
            cpu=_first(("static", "none"), claimed.cpu, "none"),
            memory=_first(("Static", "None"), claimed.memory, "None"),
            topology=_first(
                ("none", "best-effort", "restricted", "single-numa-node"),
                claimed.topology,
                "none",
            ),
            scope=_first(("container", "pod"), claimed.scope, "container"),
            devices="devices" in hello.operations,
        )

    def config(self) -> dict[str, Any]:
        """A configuration with them and with what they need reserved."""
        made: dict[str, Any] = {"cpuManagerPolicy": self.cpu}
        if self.cpu == "static":
            made["reservedSystemCPUs"] = _RESERVED
        if self.memory == "Static":
            made["memoryManagerPolicy"] = self.memory
            made["kubeReserved"] = {"memory": "512Mi"}
            limits = {"memory": f"{_RESERVED_MEMORY}Mi"}
            made["reservedMemory"] = [{"numaNode": 0, "limits": limits}]
        if self.topology != "none":
            made["topologyManagerPolicy"] = self.topology
        if self.scope != "container":
            made["topologyManagerScope"] = self.scope
        return made


def _first(wanted: tuple[str, ...], claimed: tuple[str, ...], default: str) -> str:
    return next((one for one in wanted if one in claimed), default)


def case_of(config: dict[str, Any], preferred: Mapping[str, tuple[str, ...]]) -> Case:
    """The case that the steps belong to; it has none of its own."""
    return Case(
        id="doctor",
        title="The program answers as the protocol asks",
        requirements=(),
        steps=(Step(start=StartStep()),),
        config=config,
        preferred=dict(preferred),
    )


def arrivals(policies: Chosen) -> tuple[Line, ...]:
    """The first start of a node, and the pods that come."""
    static = policies.cpu == "static"
    free = "of the 6 that are not reserved" if static else "of 8"
    lines = [
        Line(_start(policies), _step(start=StartStep(devices=_devices(policies)))),
        Line(f"a Guaranteed pod asks for 2 CPUs {free}", _step(admit=_pod("web", 2))),
        Line("another asks for 1 CPU", _step(admit=_pod("db", 1))),
        Line(
            "a Burstable pod asks for half a CPU: it shares",
            _step(admit=_pod("log", "500m", guaranteed=False)),
        ),
    ]
    if static:
        huge = Line("a pod asks for 4 CPUs, of which 3 are left", _step(admit=_pod("huge", 4)))
        lines.append(huge)
    elif policies.memory == "Static":
        huge = Line(
            "a pod asks for 64 GiB, of which 15 are left", _step(admit=_pod("huge", 1, "64Gi"))
        )
        lines.append(huge)
    if policies.devices:
        lines.append(Line("a pod asks for the only device", _step(admit=_pod_with_device("dev"))))
    lines += [
        Line("hints for a container", _step(hints=HintsStep(pod=_pod("next", 2), container="app"))),
        Line("what the container runtime is told", _step(reconcile=NoArguments())),
    ]
    return tuple(lines)


def departures(policies: Chosen) -> tuple[Line, ...]:
    """What becomes of the node: a pod leaves, the managers start again, another pod comes."""
    static = policies.cpu == "static"
    lines = [
        Line("the first pod leaves", _step(remove=RemoveStep("web"))),
        Line("a restart; the other pods are still on the node", _step(start=StartStep())),
        Line(
            "a pod asks for the 5 CPUs that are left, those of the pod that left included"
            if static
            else "another pod comes",
            _step(admit=_pod("all", 5 if static else 2)),
        ),
    ]
    if policies.devices:
        lines += [
            Line("the device plugin reports the device again", _step(devices=_devices(policies))),
            Line("another pod asks for the device", _step(admit=_pod_with_device("late"))),
        ]
    return tuple(lines)


def alone(policies: Chosen) -> tuple[Line, ...]:
    """The operations that need no node."""
    policy = policies.topology
    merge = MergeStep(
        nodes=(0, 1),
        policy=policy,
        providers=(
            {"cpu": [_hint(0), _hint(1), _hint(0, 1, preferred=False)]},
            {"memory": [_hint(1), _hint(0, 1, preferred=False)]},
            None,
        ),
    )
    return (
        Line(f"two providers agree on node 1, under {policy}", _step(merge=merge)),
        Line("4 of 6 CPUs", _step(assign=AssignStep("1-3,5-7", 4))),
        Line("7 of 6 CPUs: there are too few", _step(assign=AssignStep("1-3,5-7", 7))),
        Line("a machine with 8 CPUs on one node", _step(discover=NoArguments())),
    )


def refused(policies: Chosen) -> tuple[Line, ...]:
    """A start that must be refused, as far as there is one."""
    if policies.cpu == "static":
        config: dict[str, Any] = {"reservedSystemCPUs": ""}
        about = "static with no CPU reserved: a start that must be refused at stage cpu"
    elif policies.memory == "Static":
        config = {"reservedMemory": []}
        about = "Static with no memory reserved: a start that must be refused at stage memory"
    else:
        return ()
    return (Line(about, _step(start=StartStep(config=config))),)


def again(policies: Chosen) -> tuple[Line, ...]:
    """What the second process is asked: the same node, after a restart of the program."""
    gone = StartStep(gone=("db",))
    return (
        Line(
            "a new process starts in the same state directory; pod db has left meanwhile",
            _step(start=gone),
            readmits=False,
        ),
        Line(
            "it starts once more before any pod is admitted again: the state directory is as it"
            " was",
            _step(start=StartStep()),
        ),
        Line(
            "a pod asks for the CPU of the pod that has left"
            if policies.cpu == "static"
            else "another pod comes",
            _step(admit=_pod("new", 1)),
        ),
        Line("the largest pod leaves", _step(remove=RemoveStep("all"))),
    )


def _start(policies: Chosen) -> str:
    parts = [f"CPU policy {policies.cpu}"]
    if policies.cpu == "static":
        parts[0] += f" with CPUs {_RESERVED} reserved"
    if policies.memory == "Static":
        parts.append("memory policy Static")
    if policies.topology != "none":
        parts.append(f"topology policy {policies.topology}")
    return ", ".join(parts)


def _pod(name: str, cpu: int | str, memory: str = "1Gi", *, guaranteed: bool = True) -> PodSpec:
    amounts: dict[str, Any] = {"cpu": str(cpu), "memory": memory}
    container = ContainerSpec(requests=amounts, limits=amounts if guaranteed else {})
    return PodSpec(name, {"app": container})


def _pod_with_device(name: str) -> PodSpec:
    limits: dict[str, Any] = {"memory": "1Gi", _NIC: "1"}
    return PodSpec(name, {"app": ContainerSpec(limits=limits)})


def _devices(policies: Chosen) -> dict[str, Any] | None:
    """One device on node 0, so that nothing is left to choose."""
    return {_NIC: ((0,),)} if policies.devices else None


def _hint(*numa: int, preferred: bool = True) -> dict[str, Any]:
    return {"numa": list(numa), "preferred": preferred}


def _step(**verb: Any) -> Step:
    return Step(**verb, expect="anything")
