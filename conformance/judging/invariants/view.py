"""The view of a node that invariants check, and the violations that they report."""

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
"""The uid of a container's pod, and the container's name."""


@dataclass(frozen=True)
class Violation:
    """A broken invariant: its name, its requirement and a message.

    `cpus`, `places` and `size` (bytes) are the CPUs, containers and amount involved; they help to
    attribute violations to named defects.
    """

    invariant: str
    requirement: str
    message: str
    cpus: CPUSet = _NO_CPUS
    places: tuple[Place, ...] = ()
    size: int = 0

    @property
    def finding(self) -> Finding:
        """The violation as a finding of the call that caused it."""
        return Finding(
            "invariant",
            self.invariant,
            kind="invariant",
            text=self.message,
            requirement=self.requirement,
        )


class BrokenInvariant(NamedTuple):
    """A violation, the machine at that time, and how many calls had been made."""

    violation: Violation
    facts: Facts
    call: int


@dataclass(frozen=True)
class View:
    """A node at one moment: the reported state and the harness's own knowledge.

    Attributes:
        facts: the machine's properties.
        config: the effective configuration.
        pods: manifests of the pods on the node, by uid.
        ended_containers: the containers of these pods that have ended.
        start_answer: the answer to the last start.
        state: the answer to `state`.
        devices: the devices that the plugins last reported.
        kubernetes: the release that the implementation is asked to behave as.
        level: how closely answers are compared.
        arrivals: when each pod was first admitted, by uid. Each pod keeps the resources allocated
            to it then.
        starts: the number of starts so far.
        readmitted_pods: pods that were admitted again since the last start.
        admitted_pods: pods that were admitted since the last start.
        check_node: whether pods must also fit into the node's allocatable resources.
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
    admitted_pods: frozenset[str] = frozenset()
    check_node: bool = False

    @cached_property
    def pod_readings(self) -> Mapping[str, PodReading]:
        """The pods as the documentation describes them, by uid."""
        whole = pod_resources(self.config, self.kubernetes)
        return {uid: pods.read(pod, whole) for uid, pod in self.pods.items()}

    @cached_property
    def reclassified_pods(self) -> frozenset[str]:
        """The pods with pod-level resources that were admitted under other feature gates.

        They keep their resources, and may receive what either the old or the new gates entitle them
        to.
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
        """The pods with a budget; the state lists only the containers' shares.

        A pod keeps its budget if a later start would not give it one.
        """
        return frozenset(
            uid
            for uid, pod in self.pods.items()
            if any(
                has_budget(pods.read(pod, pod_resources(config, self.kubernetes)), config)
                for config in (self.config, self.came_under(uid))
            )
        )

    def came_under(self, uid: str) -> messages.KubeletConfiguration:
        """The configuration under which a pod was first admitted."""
        return self.arrivals[uid].config if uid in self.arrivals else self.config

    def was_there(self, uid: str) -> bool:
        """Whether a pod was on the node before the last start and has kept its resources."""
        return uid in self.arrivals and self.arrivals[uid].start < self.starts

    def containers(self) -> Iterator[tuple[Place, messages.Container]]:
        """Every container that has not ended, in the order of the state."""
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
        """The CPUs of the nodes; with ``align-by-socket``, of their sockets."""
        near = CPUSet.union(self.facts.nodes.get(node, CPUSet()) for node in numa)
        if "align-by-socket" in options(self.config):
            return CPUSet.union(cpus for cpus in self.facts.sockets.values() if cpus & near)
        return near

    def reserved(self) -> CPUSet:
        """The CPUs that the implementation reports as reserved."""
        return self.start_answer.cpus.all - self.start_answer.cpus.allocatable

    def passing(self, uid: str) -> frozenset[str]:
        """The init containers of a pod that end before its app containers start."""
        return frozenset(
            one.name for one in self.pod_readings[uid].containers if one.kind == "init"
        )

    def aligned_cpus(self, uid: str, name: str) -> int:
        """The number of exclusive CPUs to align; with the pod scope, the whole pod's number."""
        pod = self.pod_readings[uid]
        if self.config.get("topologyManagerScope") == "pod":
            return pod.effective_exclusive_cpus
        return exclusive_counts(pod)[name]

    def may_share(self, left: Place, right: Place) -> bool:
        """Whether two containers may have the same CPUs or devices.

        They may if they belong to the same pod and never run at the same time, or if their pod has
        a budget and either of them has no exclusive CPUs.
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
        """Whether checkpoint files are compared."""
        return applies("kubelet", self.level)


def format_place(place: Place) -> str:
    """Formats a container for messages."""
    return "/".join(place)


def nodes_of(numa: NUMASet | None) -> str:
    """Formats the nodes of an affinity for messages; None stands for no affinity."""
    return format_numbers("node", numa or ())


def format_names(items: Iterable[str]) -> str:
    """Formats names for messages, sorted."""
    return ", ".join(sorted(items)) or "none"


class Arrival(NamedTuple):
    """When a pod was first admitted: the configuration then, and the number of starts before it."""

    config: messages.KubeletConfiguration
    start: int


def arrivals(requests: Iterable[messages.Args]) -> Mapping[str, Arrival]:
    """When each pod on the node was first admitted, given the arguments of all calls so far."""
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


def count_admissions(requests: Iterable[messages.Args]) -> Counter[str]:
    """How often each pod was admitted since the last start, given the arguments of all calls."""
    offered: Counter[str] = Counter()
    for args in requests:
        match args:
            case messages.StartArgs():
                offered.clear()
            case messages.AdmitArgs():
                offered[args.pod["metadata"]["uid"]] += 1
    return offered


class File(msgspec.Struct, frozen=True, rename="camel"):
    """A checkpoint file, which may repeat its contents in ``data``."""

    data: str = ""


AnyFile = TypeVar("AnyFile", bound=File)


def read_file(text: str | bytes, structure: type[AnyFile]) -> AnyFile:
    """Reads a checkpoint file; its ``data`` part, if any, takes precedence, as in the kubelet.

    Raises:
        ValueError: the file can't be read.
    """
    try:
        content = codec.decode(text, structure)
        return codec.decode(content.data, structure) if content.data else content
    except codec.ProtocolError as error:
        raise ValueError(str(error)) from None
