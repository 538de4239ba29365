"""Nodes of the dialogue for what `hello` claims of version 1.1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.schema import ContainerSpec, PodSpec, StartStep
from numaproof.conformance.diagnosis.claimed import ClaimedNode, plain_start, pod_of, step_of
from numaproof.conformance.diagnosis.dialogue import Line
from numaproof.protocol import features

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.diagnosis.dialogue import Chosen
    from numaproof.protocol import messages

_TOLD: tuple[messages.Told, ...] = ("quota", "effective-configuration", "refused-pods")
_NIC = "vendor.example/nic"
_PREFERRED = ("d2", "d1")


def nodes(hello: messages.Hello, policies: Chosen) -> Iterator[ClaimedNode]:
    """The nodes for what is claimed of version 1.1."""
    named = features.claimed(hello)
    tell = tuple(one for one in _TOLD if one in named)
    if tell:
        config = {**policies.config(), "cpuManagerReconcilePeriod": "90s"}
        yield ClaimedNode("told", tuple(_told(tell, policies)), config, tell=tell)
    if "flags" in named:
        yield ClaimedNode("flags", tuple(_flags(policies)), replace(policies, cpu="none").config())
    if "preferred-devices" in named:
        preferred = {_NIC: _PREFERRED}
        yield ClaimedNode("preferred", tuple(_preferred()), preferred=preferred)


def _told(tell: tuple[messages.Told, ...], policies: Chosen) -> Iterator[Line]:
    static = policies.cpu == "static"
    asked = ", ".join(f"`{one}`" for one in tell)
    yield Line(f"a start that asks for {asked}, which `hello` claims", plain_start())
    yield Line("a Guaranteed pod asks for 2 CPUs", step_of(admit=pod_of("web", {"app": 2})))
    limited = ContainerSpec(requests={"cpu": "250m"}, limits={"cpu": "500m"})
    free = ContainerSpec(requests={"cpu": "250m"})
    shares = PodSpec("log", {"limited": limited, "free": free})
    yield Line("a Burstable pod, one of whose containers has a CPU limit", step_of(admit=shares))
    if static:
        many = pod_of("huge", {"app": 5})
        yield Line("a pod asks for 5 CPUs, of which 4 are left", step_of(admit=many))


def _flags(policies: Chosen) -> Iterator[Line]:
    unknown = StartStep(flags=("--no-such-flag=1",))
    yield Line("a flag that no kubelet has: a start that must be refused", step_of(start=unknown))
    if policies.cpu == "static":
        about = "flags against the configuration, which has policy none and reserves nothing"
        flags = ("--cpu-manager-policy=static", "--reserved-cpus", "0,4")
        yield Line(about, step_of(start=StartStep(flags=flags)))
        yield Line(
            "a pod asks for 7 CPUs, of which 6 are not reserved",
            step_of(admit=pod_of("huge", {"app": 7})),
        )


def _preferred() -> Iterator[Line]:
    devices: dict[str, Any] = {_NIC: (None, None, None)}
    listed = " before ".join(_PREFERRED)
    yield Line(
        f"three devices, of which the plugin would have {listed} allocated",
        step_of(start=StartStep(devices=devices)),
    )
    for name in ("first", "second"):
        limits: dict[str, Any] = {"memory": "1Gi", _NIC: "1"}
        pod = PodSpec(name, {"app": ContainerSpec(limits=limits)})
        yield Line(f"the {name} pod asks for a device", step_of(admit=pod))
