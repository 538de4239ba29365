"""More nodes of the dialogue: what `hello` claims and the first node does not ask for.

Each has a state directory of its own, which is empty: nothing of an earlier node may show in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.schema import (
    ContainerSpec,
    PodSpec,
    RemoveStep,
    StartStep,
    Step,
)
from numaproof.conformance.diagnosis.dialogue import HUGE_PAGES_MACHINE, MACHINE, Chosen, Line
from numaproof.protocol import features
from numaproof.reference.cpu.options import FULL_CORES
from numaproof.reference.deviations.releases import release as known_release
from numaproof.reference.topology.options import MOST_NODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import Hello, Told
    from numaproof.reference.deviations.releases import Release

_ALIGNING = ("restricted", "single-numa-node", "best-effort")
"""Topology policies that align, those first whose answers tell most."""

_GATE = "PodLevelResources"
_MANAGERS_GATE = "PodLevelResourceManagers"


@dataclass(frozen=True)
class ClaimedNode:
    """A node of its own.

    Attributes:
        name: of its state directory.
        config: the configuration; empty for that of the first node.
        lines: what is asked of it.
        inherits: whether the pods of the first node are on it when it starts.
        machine: what it runs on.
        tell: what its starts ask to be told of.
        preferred: the devices that their plugins would have allocated, by resource.
    """

    name: str
    lines: tuple[Line, ...]
    config: dict[str, Any] = field(default_factory=dict)
    inherits: bool = False
    machine: MachineInfo = MACHINE
    tell: tuple[Told, ...] = ()
    preferred: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def nodes(hello: Hello, policies: Chosen, kubernetes: str) -> Iterator[ClaimedNode]:
    """The nodes for what is claimed."""
    static = policies.cpu == "static"
    named = features.claimed(hello)
    if "restart" in named:
        about = "a state directory is lost: the pods are on the node, and hold nothing"
        yield ClaimedNode("lost", (Line(about, step_of(start=StartStep())),), inherits=True)
    yield ClaimedNode("second", tuple(_second(static=static)))
    known = known_release(kubernetes)
    if static:
        yield from _static(hello, policies, known)
    yield from _topology_options(hello, policies, known)
    if "sidecars" in named:
        yield ClaimedNode("sidecar", tuple(_sidecar(static=static)))
    if "pod-level-resources" in named:
        yield from _pod_level(hello, policies, known)
    if "huge-pages" in named:
        yield ClaimedNode("huge-pages", tuple(_huge_pages()), machine=HUGE_PAGES_MACHINE)


def _static(hello: Hello, policies: Chosen, known: Release) -> Iterator[ClaimedNode]:
    """The nodes on which containers have CPUs of their own."""
    if "none" in hello.policies.cpu:
        yield ClaimedNode(
            "none",
            (
                Line("CPU policy none, which is claimed too: nothing is pinned", plain_start()),
                Line("a Guaranteed pod asks for 2 CPUs", step_of(admit=pod_of("web", {"app": 2}))),
            ),
            replace(policies, cpu="none").config(),
        )
    for option in sorted({*hello.options.cpu} & known.cpu_options.keys()):
        config = {**policies.config(), "cpuManagerPolicyOptions": {option: "true"}}
        if known.cpu_options[option] == "alpha":
            config["featureGates"] = {"CPUManagerPolicyAlphaOptions": True}
        yield ClaimedNode(f"option-{option}", tuple(_with_option(option)), config)
    aligning = [one for one in _ALIGNING if one in hello.policies.topology]
    for policy in aligning:
        config = replace(policies, topology=policy, scope="container").config()
        yield ClaimedNode(f"policy-{policy}", tuple(_aligned(policy)), config)
    if aligning and "pod" in hello.policies.scope:
        config = replace(policies, topology=aligning[0], scope="pod").config()
        yield ClaimedNode("scope-pod", tuple(_aligned_as_pods(aligning[0])), config)


def _topology_options(hello: Hello, policies: Chosen, known: Release) -> Iterator[ClaimedNode]:
    policy = _aligning_policy(hello, policies)
    for option in sorted({*hello.options.topology} & known.topology_options.keys()):
        value = "8" if option == MOST_NODES else "true"
        config = replace(policies, topology=policy).config()
        config["topologyManagerPolicyOptions"] = {option: value}
        if known.topology_options[option] == "alpha":
            config["featureGates"] = {"TopologyManagerPolicyAlphaOptions": True}
        lines = (
            Line(f"a start with `{option}: {value}`, which `hello` claims", plain_start()),
            Line("a Guaranteed pod asks for 2 CPUs", step_of(admit=pod_of("web", {"app": 2}))),
        )
        yield ClaimedNode(f"topology-option-{option}", lines, config)


def _aligned(policy: str) -> Iterator[Line]:
    """Whatever CPUs are picked: 2 are free on node 0 and 4 on node 1."""
    yield Line(f"topology policy {policy}, which `hello` claims", plain_start())
    yield Line("a pod asks for 3 CPUs: node 1 has them", step_of(admit=pod_of("first", {"app": 3})))
    end = "all the same" if policy == "best-effort" else "so it is refused"
    yield Line(
        f"another asks for 3 CPUs, which no node has left: {end}",
        step_of(admit=pod_of("second", {"app": 3})),
    )


def _aligned_as_pods(policy: str) -> Iterator[Line]:
    yield Line(f"topology policy {policy} in the pod scope, which `hello` claims", plain_start())
    yield Line(
        "two containers ask for 3 CPUs together: node 1 has them",
        step_of(admit=pod_of("first", {"app": 2, "side": 1})),
    )
    end = "admitted all the same" if policy == "best-effort" else "refused as a whole"
    yield Line(
        f"two more ask for 3 CPUs, which no node has left for both: {end}",
        step_of(admit=pod_of("second", {"app": 2, "side": 1})),
    )


def _sidecar(*, static: bool) -> Iterator[Line]:
    yield Line("another node, for sidecars, which `hello` claims", plain_start())
    sidecar = ContainerSpec(limits={"cpu": "1", "memory": "1Gi"}, restartPolicy="Always")
    pod = PodSpec("mesh", containers_of({"app": 2}), {"proxy": sidecar})
    yield Line(
        "a restartable init container asks for 1 CPU, its app container for 2: both keep theirs",
        step_of(admit=pod),
    )
    if static:
        yield Line(
            "a pod asks for 4 CPUs, of which 3 are left", step_of(admit=pod_of("huge", {"app": 4}))
        )
    yield Line("the pod leaves, its sidecar with it", step_of(remove=RemoveStep("mesh")))
    yield Line("another pod comes", step_of(admit=pod_of("next", {"app": 4 if static else 1})))


def _pod_level(hello: Hello, policies: Chosen, known: Release) -> Iterator[ClaimedNode]:
    whole: dict[str, dict[str, Any]] = {"limits": {"cpu": "2", "memory": "2Gi"}}
    pod = PodSpec("whole", containers_of({"app": 1, "side": 1}), resources=whole)
    asked = (
        Line("a pod asks for 2 CPUs as a whole, each container for 1", step_of(admit=pod)),
        Line("the pod leaves", step_of(remove=RemoveStep("whole"))),
    )
    gates = known.gates
    if _GATE in gates:
        start = Line("another node, for resources of pods, which `hello` claims", plain_start())
        config = policies.config()
        if not gates[_GATE].default:
            config["featureGates"] = {_GATE: True}
        yield ClaimedNode("pod-level", (start, *asked), config)
    if "pod-level-resource-managers" in features.claimed(hello) and _MANAGERS_GATE in gates:
        start = Line(
            f"the same with `{_MANAGERS_GATE}`: the pod has CPUs as a whole", plain_start()
        )
        policy = _aligning_policy(hello, policies)
        scope = "pod" if "pod" in hello.policies.scope else policies.scope
        config = replace(policies, topology=policy, scope=scope).config()
        config["featureGates"] = {_MANAGERS_GATE: True}
        yield ClaimedNode("pod-level-managers", (start, *asked), config)


def _aligning_policy(hello: Hello, policies: Chosen) -> str:
    return next((one for one in _ALIGNING if one in hello.policies.topology), policies.topology)


def _huge_pages() -> Iterator[Line]:
    yield Line("a machine with 512 huge pages of 2 MiB on each node", plain_start())
    for name, size, about in (
        ("pages", "512Mi", "a pod asks for 256 of them"),
        ("many", "4Gi", "a pod asks for 2048 of them: there are too few"),
    ):
        limits: dict[str, Any] = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": size}
        pod = PodSpec(name, {"app": ContainerSpec(limits=limits)})
        yield Line(about, step_of(admit=pod))


def _second(*, static: bool) -> Iterator[Line]:
    yield Line(
        "another node, in an empty state directory: nothing of the first may show", plain_start()
    )
    free = "of the 6 that are not reserved" if static else "of 8"
    yield Line(
        f"an init container asks for 4 CPUs {free}, its app containers for 3 of them",
        step_of(admit=pod_of("job", {"app": 2, "side": 1}, {"prepare": 4})),
    )
    yield Line(
        "the init container has ended; what its pod does not reuse is free",
        step_of(remove=RemoveStep("job", "prepare")),
    )
    yield Line(
        "a pod with two containers asks for 1 CPU each",
        step_of(admit=pod_of("pair", {"app": 1, "side": 1})),
    )
    yield Line(
        "one of them has ended; the other keeps its CPU",
        step_of(remove=RemoveStep("pair", "side")),
    )
    yield Line("another pod asks for its CPU", step_of(admit=pod_of("next", {"app": 1})))


def _with_option(option: str) -> Iterator[Line]:
    yield Line(f"a start with `{option}`, which `hello` claims", plain_start())
    yield Line("a Guaranteed pod asks for 2 CPUs", step_of(admit=pod_of("web", {"app": 2})))
    if option == FULL_CORES:
        yield Line(
            "a pod asks for 1 CPU, which is half a core",
            step_of(admit=pod_of("half", {"app": 1})),
        )


def pod_of(name: str, cpus: dict[str, int], init: dict[str, int] | None = None) -> PodSpec:
    """A Guaranteed pod whose containers ask for these CPUs."""
    return PodSpec(name, containers_of(cpus), containers_of(init or {}))


def containers_of(cpus: dict[str, int]) -> dict[str, ContainerSpec]:
    """Containers with limits for these CPUs and for memory."""
    return {
        name: ContainerSpec(limits={"cpu": str(count), "memory": "1Gi"})
        for name, count in cpus.items()
    }


def plain_start() -> Step:
    """A start with the configuration of the node."""
    return step_of(start=StartStep())


def step_of(**verb: Any) -> Step:
    """A step that may end in any answer that the documents allow."""
    return Step(**verb, expect="anything")
