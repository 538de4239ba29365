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
from numaproof.conformance.diagnosis.dialogue import Chosen, Line
from numaproof.reference.cpu.options import FULL_CORES
from numaproof.reference.departures.releases import release as known_release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.messages import Hello


@dataclass(frozen=True)
class ClaimedNode:
    """A node of its own.

    Attributes:
        name: of its state directory.
        config: the configuration; empty for that of the first node.
        lines: what is asked of it.
        inherits: whether the pods of the first node are on it when it starts.
    """

    name: str
    lines: tuple[Line, ...]
    config: dict[str, Any] = field(default_factory=dict)
    inherits: bool = False


def nodes(hello: Hello, policies: Chosen, kubernetes: str) -> Iterator[ClaimedNode]:
    """The nodes for what is claimed."""
    static = policies.cpu == "static"
    features = hello.features
    if features is None or "restart" in features:
        about = "a state directory is lost: the pods are on the node, and hold nothing"
        yield ClaimedNode("lost", (Line(about, _step(start=StartStep())),), inherits=True)
    yield ClaimedNode("second", tuple(_second(static=static)))
    if static and "none" in hello.policies.cpu:
        yield ClaimedNode(
            "none",
            (
                Line("CPU policy none, which is claimed too: nothing is pinned", _start()),
                Line("a Guaranteed pod asks for 2 CPUs", _step(admit=_pod("web", {"app": 2}))),
            ),
            replace(policies, cpu="none").config(),
        )
    known = known_release(kubernetes).cpu_options
    for option in sorted({*hello.options.cpu} & known.keys()) if static else ():
        config = {**policies.config(), "cpuManagerPolicyOptions": {option: "true"}}
        if known[option] == "alpha":
            config["featureGates"] = {"CPUManagerPolicyAlphaOptions": True}
        yield ClaimedNode(f"option-{option}", tuple(_with_option(option)), config)


def _second(*, static: bool) -> Iterator[Line]:
    yield Line("another node, in an empty state directory: nothing of the first may show", _start())
    free = "of the 6 that are not reserved" if static else "of 8"
    yield Line(
        f"an init container asks for 4 CPUs {free}, its app containers for 3 of them",
        _step(admit=_pod("job", {"app": 2, "side": 1}, {"prepare": 4})),
    )
    yield Line(
        "the init container has ended; what its pod does not reuse is free",
        _step(remove=RemoveStep("job", "prepare")),
    )
    yield Line(
        "a pod with two containers asks for 1 CPU each",
        _step(admit=_pod("pair", {"app": 1, "side": 1})),
    )
    yield Line(
        "one of them has ended; the other keeps its CPU",
        _step(remove=RemoveStep("pair", "side")),
    )
    yield Line("another pod asks for its CPU", _step(admit=_pod("next", {"app": 1})))


def _with_option(option: str) -> Iterator[Line]:
    yield Line(f"a start with `{option}`, which `hello` claims", _start())
    yield Line("a Guaranteed pod asks for 2 CPUs", _step(admit=_pod("web", {"app": 2})))
    if option == FULL_CORES:
        yield Line(
            "a pod asks for 1 CPU, which is half a core",
            _step(admit=_pod("half", {"app": 1})),
        )


def _pod(name: str, cpus: dict[str, int], init: dict[str, int] | None = None) -> PodSpec:
    return PodSpec(name, _containers(cpus), _containers(init or {}))


def _containers(cpus: dict[str, int]) -> dict[str, ContainerSpec]:
    return {
        name: ContainerSpec(limits={"cpu": str(count), "memory": "1Gi"})
        for name, count in cpus.items()
    }


def _start() -> Step:
    return _step(start=StartStep())


def _step(**verb: Any) -> Step:
    return Step(**verb, expect="anything")
