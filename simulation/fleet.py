"""Which of many nodes admit which pods, and a placement of all pods as one batch.

Nodes are tried with copies of a started reference. Nodes that start equally share their states, and
each state remembers what it answered, so that equal pods on equal nodes are tried once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from numaproof.protocol import codec, messages
from numaproof.reference.errors import AdmissionError, UnsupportedError
from numaproof.reference.pods.manifest import read_pod
from numaproof.simulation import requests
from numaproof.simulation.admission import (
    UNSCHEDULABLE,
    CannotAnswerError,
    Question,
    begin,
    node_of,
    readmissions,
)
from numaproof.simulation.causes import Cause
from numaproof.simulation.configuration_check import ConfigurationFinding, why_refused
from numaproof.simulation.evaluation_gaps import EvaluationGap, of_memory, summarize
from numaproof.simulation.explaining import cause_of
from numaproof.simulation.lint import Crash, crashes
from numaproof.simulation.trials import shape, trial_node
from numaproof.simulation.workload_summary import workload_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numaproof.reference.node import StartedNode
    from numaproof.simulation.pods import DescribedPod


class NamedNode(NamedTuple):
    """A node of a fleet: its name, how it starts, and the product that may set more."""

    name: str
    question: Question
    adds_defaults: str = ""


class FleetNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node after the placement.

    Attributes:
        name: its name.
        kubernetes: its release.
        refusal: why its kubelet does not start, if so.
        errors: what is wrong with its configuration then, with how to fix it.
        crashes: the settings with which its kubelet can panic or hang.
        pods_on_node: the number of pods on it from the start.
        ended_pods: those of them that a restart of the kubelet would end.
        placed_pods: the number of pods placed on it.
        free_cpus: the CPUs that can still be assigned exclusively.
        unknown_memory: the memory whose amount its machine's description does not show; pods fit
            as if there were enough.
    """

    name: str
    kubernetes: str
    refusal: messages.StartRefused | None = None
    errors: tuple[ConfigurationFinding, ...] = ()
    crashes: tuple[Crash, ...] = ()
    pods_on_node: int = 0
    ended_pods: tuple[str, ...] = ()
    placed_pods: int = 0
    free_cpus: int = 0
    unknown_memory: str = ""


class NodeRefusals(msgspec.Struct, frozen=True):
    """Nodes that refuse a pod for the same reason; `reason` is the kubelet's."""

    reason: str
    cause: Cause
    nodes: tuple[str, ...]


class FleetWorkload(msgspec.Struct, frozen=True):
    """Where equal pods of a workload fit.

    Attributes:
        workload: the workload; for pods without a controller, the first of those that request the
            same.
        example: one of the pods.
        pods: their number.
        fits: the nodes that would admit one of them, each on its own.
        refusals: why the other nodes that start would not.
        placed_pods: how many of the pods the placement places.
        last_refusals: why, after the placement, no node admits another one; empty if all are
            placed.
    """

    workload: str
    example: str
    pods: int
    fits: tuple[str, ...]
    refusals: tuple[NodeRefusals, ...]
    placed_pods: int
    last_refusals: tuple[NodeRefusals, ...] = ()


class Placement(msgspec.Struct, frozen=True):
    """The node of a pod; None if no node admits it, or a critical pod evicts it."""

    pod: str
    node: str | None


class FleetSimulation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where pods fit on several nodes.

    Attributes:
        nodes: the nodes.
        workloads: where each kind of pod fits.
        placements: each pod on the first node that admits it, one after the other.
        notes: one sentence for each part of the files that was ignored or skipped.
        not_evaluated: what the pods ask for that could change an answer but is not evaluated.
    """

    nodes: tuple[FleetNode, ...]
    workloads: tuple[FleetWorkload, ...]
    placements: tuple[Placement, ...]
    notes: tuple[str, ...] = ()
    not_evaluated: tuple[EvaluationGap, ...] = ()

    @property
    def placed_pods(self) -> int:
        """The number of placed pods."""
        return sum(one.node is not None for one in self.placements)

    @property
    def admitted(self) -> bool:
        """Whether all kubelets start, and all pods are placed."""
        started = all(one.refusal is None for one in self.nodes)
        return started and self.placed_pods == len(self.placements)


@dataclass(slots=True)
class _Answer:
    """A state's answer to a pod: the next state, or the reason of a refusal."""

    next: _State | None = None
    reason: str = ""
    cause: Cause | None = None
    preempted: tuple[str, ...] = ()


@dataclass(slots=True)
class _State:
    """The state of a node after `depth` placements, and its answers by the shapes of pods."""

    node: StartedNode
    depth: int = 0
    answers: dict[str, _Answer] = field(default_factory=dict)

    def uid(self, depth: int) -> str:
        """The uid of the pod that was placed as number `depth`."""
        return f"placed-{depth}"

    def ask(self, kind: str, manifest: messages.Pod) -> _Answer:
        """Returns the answer to a pod of a shape."""
        if kind not in self.answers:
            self.answers[kind] = self._try(manifest)
        return self.answers[kind]

    def _try(self, manifest: messages.Pod) -> _Answer:
        metadata = {**manifest["metadata"], "uid": self.uid(self.depth)}
        manifest = {**manifest, "metadata": metadata}
        pod = self.node.read_pod(manifest)
        if missing := requests.missing_devices(self.node, pod):
            return _Answer(reason=UNSCHEDULABLE, cause=Cause("device plugin", tuple(missing)))
        trial = trial_node(self.node)
        try:
            admitted = trial.admit(messages.AdmitArgs(manifest))
        except AdmissionError as error:
            return _Answer(reason=error.reason)
        except UnsupportedError as error:
            raise CannotAnswerError(f"not supported: {error}") from None
        preempted = tuple(one.uid for one in admitted.preempted)
        return _Answer(next=_State(trial, self.depth + 1), preempted=preempted)

    def cause(self, kind: str, manifest: messages.Pod) -> Cause:
        """Returns why a pod of a shape is refused."""
        answer = self.ask(kind, manifest)
        if answer.cause is None:
            answer.cause = cause_of(self.node, self.node.read_pod(manifest))
        return answer.cause


@dataclass(slots=True)
class _Node:
    """A started node: its state, and the pods placed on it, by their uids there."""

    name: str
    first: _State
    state: _State
    placed_pods: dict[str, str] = field(default_factory=dict)


class _Kind(NamedTuple):
    """Equal pods of a workload."""

    workload: str
    shape: str


def simulate_fleet(
    nodes: Sequence[NamedNode], pods: Sequence[DescribedPod], folder: Path
) -> FleetSimulation:
    """Finds the nodes on which each pod fits, then places all pods.

    Pods are placed in order, each on the first node that admits it.

    Args:
        nodes: the nodes; their names are unique.
        pods: the pods.
        folder: an empty directory for the checkpoints.

    Raises:
        CannotAnswerError: the reference does not support a configuration or a pod.
    """
    answers, started = _start(nodes, folder)
    names = workload_names(pods)
    kinds = {
        pod.name: _Kind(names[pod.name], shape(read_pod(pod.manifest, "budget"))) for pod in pods
    }
    placement = _place(started, pods, kinds)
    members: dict[_Kind, list[DescribedPod]] = {}
    for pod in pods:
        members.setdefault(kinds[pod.name], []).append(pod)
    workloads = tuple(_workload(kind, group, started, placement) for kind, group in members.items())
    by_name = {one.name: one for one in started}
    unknown = {one.name: one.question.unknown_memory for one in nodes}
    return FleetSimulation(
        tuple(_after(one, by_name.get(one.name)) for one in answers),
        workloads,
        tuple(Placement(pod, node) for pod, node in placement.items()),
        not_evaluated=summarize(
            (pod.name, (*pod.gaps, *_memory_gap(pod, placement[pod.name], unknown))) for pod in pods
        ),
    )


def _memory_gap(pod: DescribedPod, node: str | None, unknown: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the gap of a pod on a node; `unknown` names the unknown memory of each node."""
    return of_memory(pod.manifest["spec"], unknown[node], node) if node else ()


def _start(nodes: Sequence[NamedNode], folder: Path) -> tuple[list[FleetNode], list[_Node]]:
    """Starts the nodes; those that are equal are started once."""
    found: list[FleetNode] = []
    started: list[_Node] = []
    equal: dict[bytes, tuple[FleetNode, _State | None]] = {}
    for number, (name, question, adds_defaults) in enumerate(nodes):
        key = codec.encode((question, adds_defaults))
        if key not in equal:
            state_dir = folder / str(number)
            state_dir.mkdir()
            equal[key] = _start_one(question, adds_defaults, str(state_dir))
        answer, state = equal[key]
        found.append(msgspec.structs.replace(answer, name=name))
        if state is not None:
            started.append(_Node(name, state, state))
    return found, started


def _start_one(
    question: Question, adds_defaults: str, state_dir: str
) -> tuple[FleetNode, _State | None]:
    reference, start = begin(question, state_dir)
    kubernetes = question.kubernetes
    if isinstance(start, messages.StartRefused):
        errors = why_refused(question, start, adds_defaults)
        return FleetNode(name="", kubernetes=kubernetes, refusal=start, errors=errors), None
    on_node = readmissions(reference, [one.pod for one in question.pods_on_node])
    ended = tuple(one.pod for one in on_node if one.refusal)
    node = FleetNode(
        name="",
        kubernetes=kubernetes,
        crashes=() if question.follows_docs else tuple(crashes(node_of(reference).setup)),
        pods_on_node=len(on_node),
        ended_pods=ended,
        unknown_memory=question.unknown_memory,
    )
    return node, _State(node_of(reference))


def _place(
    nodes: Sequence[_Node], pods: Iterable[DescribedPod], kinds: Mapping[str, _Kind]
) -> dict[str, str | None]:
    """Places each pod on the first node that admits it; returns the nodes' names by pod."""
    placement: dict[str, str | None] = {}
    for pod in pods:
        kind = kinds[pod.name].shape
        placement[pod.name] = None
        for node in nodes:
            answer = node.state.ask(kind, pod.manifest)
            if answer.next is None:
                continue
            node.placed_pods[node.state.uid(node.state.depth)] = pod.name
            for uid in answer.preempted:
                if uid in node.placed_pods:
                    placement[node.placed_pods.pop(uid)] = None
            node.state = answer.next
            placement[pod.name] = node.name
            break
    return placement


def _workload(
    kind: _Kind,
    pods: Sequence[DescribedPod],
    nodes: Sequence[_Node],
    placement: Mapping[str, str | None],
) -> FleetWorkload:
    manifest = pods[0].manifest
    fits = tuple(one.name for one in nodes if one.first.ask(kind.shape, manifest).next)
    count = sum(placement[pod.name] is not None for pod in pods)
    first = [(one.name, one.first) for one in nodes]
    final = [(one.name, one.state) for one in nodes]
    return FleetWorkload(
        workload=kind.workload,
        example=pods[0].name,
        pods=len(pods),
        fits=fits,
        refusals=_refusals(first, kind.shape, manifest),
        placed_pods=count,
        last_refusals=() if count == len(pods) else _refusals(final, kind.shape, manifest),
    )


def _refusals(
    states: Iterable[tuple[str, _State]], kind: str, manifest: messages.Pod
) -> tuple[NodeRefusals, ...]:
    """Groups the nodes that refuse a pod by reason and cause, the most nodes first."""
    groups: dict[tuple[str, Cause], list[str]] = {}
    for name, state in states:
        answer = state.ask(kind, manifest)
        if answer.next is None:
            cause = state.cause(kind, manifest)
            groups.setdefault((answer.reason, cause), []).append(name)
    found = [NodeRefusals(*why, tuple(names)) for why, names in groups.items()]
    return tuple(sorted(found, key=lambda group: -len(group.nodes)))


def _after(node: FleetNode, last: _Node | None) -> FleetNode:
    if last is None:
        return node
    state = last.state.node
    policy = state.setup.cpu
    free = policy.available(state.cpus.state).bit_count() if policy else 0
    return msgspec.structs.replace(node, placed_pods=len(last.placed_pods), free_cpus=free)


def unplaced_pods(simulation: FleetSimulation) -> Counter[str]:
    """Counts the pods that are not placed by what keeps most nodes from admitting them."""
    counts: Counter[str] = Counter()
    starts = any(node.refusal is None for node in simulation.nodes)
    otherwise = "evicted" if starts else "no kubelet starts; see `numaproof config check`"
    for one in simulation.workloads:
        if left := one.pods - one.placed_pods:
            counts[str(one.last_refusals[0].cause) if one.last_refusals else otherwise] += left
    return counts
