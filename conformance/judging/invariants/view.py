"""A node at one moment as the invariants look at it, and what they say when one is broken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging import pods
from numaproof.conformance.judging.entitlement import (
    exclusive_counts,
    has_budget,
    options,
    pod_resources,
)
from numaproof.conformance.judging.finding import Finding
from numaproof.inputs.plurals import format_numbers
from numaproof.protocol import codec, messages
from numaproof.protocol.releases import NEWEST
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.judging.pods import PodReading

_NO_CPUS = CPUSet()

Place = tuple[str, str]
"""A container by pod uid and name."""


@dataclass(frozen=True)
class Violation:
    """A broken invariant: its name, the requirement that it comes from, and what was seen.

    `cpus`, `places` and `size` (bytes) are the guilty CPUs, containers and amount, by which a
    named defect is told.
    """

    invariant: str
    requirement: str
    message: str
    cpus: CPUSet = _NO_CPUS
    places: tuple[Place, ...] = ()
    size: int = 0

    @property
    def finding(self) -> Finding:
        """The same as it stands next to the call that broke it."""
        return Finding(
            "invariant",
            self.invariant,
            kind="invariant",
            text=self.message,
            requirement=self.requirement,
        )


@dataclass(frozen=True)
class View:
    """A node at one moment: the state as answered, and what the harness knows of it.

    Attributes:
        facts: of the machine.
        config: the configuration in force.
        pods: on the node, by uid.
        ended_containers: containers of them that run no longer.
        start_answer: the answer to the last start.
        state: the answer to `state`.
        devices: what the device plugins reported last.
        kubernetes: the release that the implementation is asked to behave as.
        level: how much of its answers is compared.
        arrivals: when each pod came, by uid: what it holds stays as it was given then.
        starts: how many starts there were.
        readmitted_pods: pods that were offered again since the last start.
    """

    facts: Facts
    config: messages.KubeletConfiguration
    pods: Mapping[str, messages.Pod]
    ended_containers: frozenset[Place]
    start_answer: messages.Started
    state: messages.State
    devices: tuple[messages.DeviceResource, ...] = ()
    kubernetes: str = NEWEST
    level: messages.Level = "kubelet"
    arrivals: Mapping[str, Arrival] = field(default_factory=dict)
    starts: int = 0
    readmitted_pods: frozenset[str] = frozenset()

    @cached_property
    def pod_readings(self) -> Mapping[str, PodReading]:
        """The pods as the documents read them, by uid."""
        whole = pod_resources(self.config, self.kubernetes)
        return {uid: pods.read(pod, whole) for uid, pod in self.pods.items()}

    @cached_property
    def reclassified_pods(self) -> frozenset[str]:
        """The pods with resources of their own that came when other gates decided about these.

        They keep what they were given, and are due it or what the gates of now give.
        """
        now = pod_resources(self.config, self.kubernetes)
        return frozenset(
            uid
            for uid, pod in self.pods.items()
            if pod["spec"].get("resources")
            and pod_resources(self.came_under(uid), self.kubernetes) != now
        )

    @cached_property
    def budgets(self) -> frozenset[str]:
        """The pods whose own CPUs and memory are allocated; the state has only their shares."""
        return frozenset(
            uid for uid, pod in self.pod_readings.items() if has_budget(pod, self.config)
        )

    def came_under(self, uid: str) -> messages.KubeletConfiguration:
        """The configuration that was in force when a pod of the node was admitted first."""
        return self.arrivals[uid].config if uid in self.arrivals else self.config

    def was_there(self, uid: str) -> bool:
        """Whether a pod was on the node before the last start, and has kept what it held."""
        return uid in self.arrivals and self.arrivals[uid].start < self.starts

    def containers(self) -> Iterator[tuple[Place, messages.Container]]:
        """Every container that has not ended, in the order of the answer."""
        for uid, containers in self.state.pods.items():
            for name, container in containers.items():
                if (uid, name) not in self.ended_containers:
                    yield (uid, name), container

    def exclusive(self) -> dict[Place, CPUSet]:
        """The exclusive CPUs of every container that has any."""
        return {
            (uid, name): container.exclusive
            for uid, containers in self.state.pods.items()
            for name, container in containers.items()
            if container.exclusive
        }

    def near(self, numa: NUMASet) -> CPUSet:
        """The CPUs of the nodes; with ``align-by-socket`` those of their sockets."""
        near = CPUSet.union(self.facts.nodes.get(node, CPUSet()) for node in numa)
        if "align-by-socket" in options(self.config):
            return CPUSet.union(cpus for cpus in self.facts.sockets.values() if cpus & near)
        return near

    def reserved(self) -> CPUSet:
        """The CPUs that the implementation says it has reserved."""
        return self.start_answer.cpus.all - self.start_answer.cpus.allocatable

    def passing(self, uid: str) -> frozenset[str]:
        """The init containers of a pod that end before its app containers start."""
        return frozenset(
            one.name for one in self.pod_readings[uid].containers if one.kind == "init"
        )

    def aligned_cpus(self, uid: str, name: str) -> int:
        """The exclusive CPUs that a container's affinity is for: in the pod scope its pod's."""
        pod = self.pod_readings[uid]
        if self.config.get("topologyManagerScope") == "pod":
            return pod.effective_exclusive_cpus
        return exclusive_counts(pod)[name]

    def may_share(self, left: Place, right: Place) -> bool:
        """Whether two containers are of one pod and never run at the same time.

        Or of one that has CPUs as a whole, of which either may be without a part.
        """
        if left[0] != right[0]:
            return False
        if left[0] in self.budgets:
            parts = exclusive_counts(self.pod_readings[left[0]])
            return not (parts[left[1]] and parts[right[1]]) or self._one_passes(left, right)
        return self._one_passes(left, right)

    def _one_passes(self, left: Place, right: Place) -> bool:
        passing = self.passing(left[0])
        return left[1] in passing or right[1] in passing

    @property
    def exact(self) -> bool:
        """Whether the checkpoint files are compared too."""
        return applies("kubelet", self.level)


def format_place(place: Place) -> str:
    """A container as messages write it."""
    return "/".join(place)


def nodes_of(numa: NUMASet | None) -> str:
    """The nodes of an affinity as messages write them; None stands for no affinity."""
    return format_numbers("node", numa or ())


def format_names(items: Iterable[str]) -> str:
    """Names as messages write them, sorted."""
    return ", ".join(sorted(items)) or "none"


class Arrival(NamedTuple):
    """When a pod was first admitted: under which configuration, and after which start."""

    config: messages.KubeletConfiguration
    start: int


def arrivals(requests: Iterable[messages.Args]) -> Mapping[str, Arrival]:
    """When each pod came that is on the node, by the arguments of every call that was made."""
    found: dict[str, Arrival] = {}
    now = Arrival({}, 0)
    for args in requests:
        match args:
            case messages.StartArgs():
                now = Arrival(args.config, now.start + 1)
                stay = {pod["metadata"]["uid"] for pod in args.pods}
                found = {uid: came for uid, came in found.items() if uid in stay}
            case messages.AdmitArgs():
                found.setdefault(args.pod["metadata"]["uid"], now)
            case messages.RemoveArgs(uid=uid, container=None):
                found.pop(uid, None)
    return found


def find_readmitted_pods(requests: Iterable[messages.Args]) -> frozenset[str]:
    """The pods that were offered more than once since the last start; arguments as above."""
    offered: Counter[str] = Counter()
    for args in requests:
        match args:
            case messages.StartArgs():
                offered.clear()
            case messages.AdmitArgs():
                offered[args.pod["metadata"]["uid"]] += 1
    return frozenset(uid for uid, times in offered.items() if times > 1)


class File(msgspec.Struct, frozen=True, rename="camel"):
    """A file, which may have a part ``data`` with all of it once more."""

    data: str = ""


AnyFile = TypeVar("AnyFile", bound=File)


def read_file(text: str | bytes, structure: type[AnyFile]) -> AnyFile:
    """What a file says; where it has a part ``data``, that is what the kubelet believes.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        content = codec.decode(text, structure)
        return codec.decode(content.data, structure) if content.data else content
    except codec.ProtocolError as error:
        raise ValueError(str(error)) from None
