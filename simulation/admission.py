"""Simulates the admission of pods to a node, in order, and explains the results."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, cast

import msgspec

from numaproof.inputs.names import closest
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.capacity import preemption
from numaproof.reference.config import flags
from numaproof.reference.implementation import Reference
from numaproof.simulation import defects, requests, state_files
from numaproof.simulation.causes import Cause
from numaproof.simulation.defects import NamedDefect
from numaproof.simulation.evaluation_gaps import EvaluationGap
from numaproof.simulation.explaining import Explanation, Scheduling, explain, snapshot
from numaproof.simulation.lint import Crash
from numaproof.simulation.node_state import NodeState
from numaproof.simulation.placement import OutsideAffinity, outside_affinity, why_shared
from numaproof.simulation.removals import Removals
from numaproof.simulation.reuse import reused_cpus
from numaproof.simulation.state_files import for_reference, write_files
from numaproof.simulation.trials import saved_once, shape
from numaproof.simulation.unknown_devices import requested_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.pod import Pod
    from numaproof.simulation.node_state import RunningPod
    from numaproof.simulation.pods import DescribedPod

    Pods = Sequence[DescribedPod]


class NodePolicies(msgspec.Struct, frozen=True):
    """The policies of the node's managers, by their names in KubeletConfiguration."""

    cpu: str
    memory: str
    topology: str
    scope: str


class MemoryOfNode(msgspec.Struct, frozen=True):
    """Memory of one type on one NUMA node, in bytes; `reserved` is for the system.

    `allocated` belongs to containers that share the nodes of `group`.
    """

    node: int
    type: str
    total: int
    reserved: int
    allocated: int
    free: int
    group: NUMASet


class DeviceOfNode(msgspec.Struct, frozen=True):
    """A device and its owner; `pod` and `container` are empty for a free device."""

    resource: str
    id: str
    numa: NUMASet | None
    healthy: bool
    pod: str = ""
    container: str = ""


class NodeView(msgspec.Struct, frozen=True):
    """The node after the last admission; `memory` is empty unless the policy is Static."""

    policies: NodePolicies
    shared: CPUSet
    reserved: CPUSet
    memory: tuple[MemoryOfNode, ...]
    devices: tuple[DeviceOfNode, ...]


def view(node: StartedNode, names: Mapping[str, str]) -> NodeView:
    """Returns the node's current state; `names` are the names of pods by uid, where they differ."""
    setup = node.setup
    return NodeView(
        policies=NodePolicies(
            setup.cpu_policy,
            setup.memory_policy,
            setup.topology_policy.name if setup.topology_policy else "none",
            setup.scope,
        ),
        shared=CPUSet.from_mask(node.cpus.state.shared),
        reserved=CPUSet.from_mask(setup.cpu.reserved if setup.cpu else 0),
        memory=tuple(_memory(node)),
        devices=tuple(_devices(node, names)),
    )


def _memory(node: StartedNode) -> Iterator[MemoryOfNode]:
    for number, memory in node.memory.state.nodes.items():
        for kind, table in sorted(memory.tables.items()):
            if table.total:
                yield MemoryOfNode(
                    node=number,
                    type=kind,
                    total=table.total,
                    reserved=table.system,
                    allocated=table.reserved,
                    free=table.free,
                    group=NUMASet.from_mask(memory.cells),
                )


def _devices(node: StartedNode, names: Mapping[str, str]) -> Iterator[DeviceOfNode]:
    state = node.device_manager.state
    owners = {
        (resource, device): (names.get(uid, uid), name)
        for uid, containers in state.held_devices.items()
        for name, resources in containers.items()
        for resource, ids in resources.items()
        for device in ids
    }
    for resource, devices in sorted(state.lists.items()):
        for device, near in devices.nodes.items():
            numa = None if near is None else NUMASet.from_mask(near)
            owner = owners.get((resource, device), ("", ""))
            yield DeviceOfNode(resource, device, numa, device in devices.healthy, *owner)


UNSCHEDULABLE = "FailedScheduling"
"""The reason for refusing a pod that the scheduler would not place on the node."""


class CannotAnswerError(Exception):
    """The reference does not support the request; the message names the unsupported part.

    Attributes:
        path: the field of the configuration that causes the error, if known.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        """Creates the error with its message and the path of the field."""
        super().__init__(message)
        self.path = path


class Question(msgspec.Struct, frozen=True):
    """A node: its machine, configuration, Kubernetes release and devices.

    With `follows_docs`, the reference follows the documentation instead of reproducing the
    kubelet's named defects. For the defects in `exceptions`, it does the opposite. `flags` are in
    the form ``--name=value``; `config` also has the fields that they set. A node with a `state`
    continues from it, as after a restart of its kubelet. `unknown_memory` names the memory whose
    amount is assumed because the machine's description does not show it.
    """

    machine: MachineInfo
    config: messages.KubeletConfiguration
    kubernetes: str
    follows_docs: bool = False
    devices: tuple[messages.DeviceResource, ...] = ()
    exceptions: frozenset[str] = frozenset()
    flags: tuple[str, ...] = ()
    state: NodeState | None = None
    unknown_memory: str = ""

    @property
    def names(self) -> Mapping[str, str]:
        """The names, by uid, of the pods that are on the node from the start."""
        return self.state.names if self.state else {}

    @property
    def pods_on_node(self) -> Sequence[RunningPod]:
        """The pods that are on the node from the start."""
        return self.state.pods if self.state else ()


class EveryPod:
    """Contains the name of every pod."""

    def __contains__(self, _name: object) -> bool:
        """Returns True."""
        return True


class PodResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result for one pod: its containers if it was admitted, or else the refusal.

    If the scheduler would not place the pod on the node, the refusal is `FailedScheduling`. If a
    critical pod that comes later evicts the pod, it is `Preempting`; `preempted` lists the pods
    that a critical pod evicts. `shared` explains, by container, why containers that request CPUs
    have none of their own. `reused_cpus` has, by init container, the CPUs that later containers
    got from it. `removals` are the pods that would have to go, if requested.
    """

    pod: str
    containers: messages.Containers | None = None
    refusal: messages.AdmissionRefused | None = None
    explanation: Explanation | None = None
    preempted: tuple[str, ...] = ()
    shared: dict[str, str] = {}
    outside: tuple[OutsideAffinity, ...] = ()
    removals: Removals | None = None
    reused_cpus: dict[str, CPUSet] = {}


class Simulation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The start, a result for each pod in order, and the node's final state."""

    start: messages.Started | messages.StartRefused
    pods: tuple[PodResult, ...] = ()
    node: NodeView | None = None

    @property
    def admitted(self) -> bool:
        """Whether the kubelet starts and admits every pod."""
        started = isinstance(self.start, messages.Started)
        return started and all(one.refusal is None for one in self.pods)


def admit_all(
    question: Question,
    pods: Iterable[DescribedPod],
    state_dir: str,
    *,
    explain_pods: Container[str] = (),
) -> Simulation:
    """Admits the pods in order, without warnings about named defects.

    `state_dir` is an empty directory for the checkpoints. Refusals are explained, and admissions of
    the pods whose names are in `explain_pods`.

    Raises:
        CannotAnswerError: the reference does not support the configuration.
    """
    reference, start = begin(question, state_dir)
    if isinstance(start, messages.StartRefused):
        return Simulation(start)
    results = admit_pods(reference, pods, question.names, explain_pods=explain_pods)
    require_answer(reference, "state", messages.NoArgs())
    return Simulation(start, results, view(node_of(reference), question.names))


def admit_pods(
    reference: Reference,
    pods: Iterable[DescribedPod],
    names: Mapping[str, str],
    *,
    explain_pods: Container[str] = (),
    refused: Callable[[StartedNode, Pod, PodResult], PodResult] | None = None,
) -> tuple[PodResult, ...]:
    """Admits pods to a started node in order.

    Args:
        reference: the reference with the node.
        pods: the pods.
        names: the names of pods on the node by uid, where they differ.
        explain_pods: the names of the pods whose admission is explained.
        refused: completes the result of a pod that the kubelet refuses, given the node before the
            admission and the pod.

    Raises:
        CannotAnswerError: the reference does not support a pod.
    """
    results: list[PodResult] = []
    # What the node refused since it last changed, by the pods' shapes.
    refusals: dict[str, PodResult] = {}
    node = node_of(reference)
    with saved_once(node):
        for described in pods:
            pod = node.read_pod(described.manifest)
            kind = shape(pod)
            before = snapshot(node) if refused else node
            if kind in refusals:
                result = msgspec.structs.replace(refusals[kind], pod=described.name)
            else:
                states = _manager_states(node)
                explained = described.name in explain_pods
                result = admit(reference, described, explain_all=explained, names=names)
                if result.refusal is not None:
                    refusals[kind] = result
                elif _manager_states(node) != states:
                    refusals.clear()
                else:  # a pod in the shared pool: only the allocatable resources have changed
                    refusals = {one: why for one, why in refusals.items() if not _is_room(why)}
            if refused and result.refusal and result.refusal.reason != UNSCHEDULABLE:
                result = refused(before, pod, result)
            if result.preempted:
                results = [_evict(one, result) for one in results]
            results.append(result)
    return tuple(results)


def _manager_states(node: StartedNode) -> tuple[object, ...]:
    return tuple(manager.state for manager in node.providers)


def _is_room(result: PodResult) -> bool:
    """Whether a pod may have been refused for a lack of allocatable resources."""
    cause = result.explanation.cause if result.explanation else None
    return cause is None or cause.kind in ("allocatable", "empty node")


def readmissions(reference: Reference, pods: Iterable[DescribedPod]) -> tuple[PodResult, ...]:
    """Returns what the start decided about the pods that were on the node.

    Raises:
        CannotAnswerError: the reference does not support a pod.
    """
    results = []
    for pod in pods:
        answer = require_answer(reference, "admit", messages.AdmitArgs(pod.manifest))
        refusal = answer if isinstance(answer, messages.AdmissionRefused) else None
        held = answer.containers if isinstance(answer, messages.Admitted) else None
        reused = _reused_cpus(node_of(reference).read_pod(pod.manifest), held or {})
        results.append(PodResult(pod.name, held, refusal, reused_cpus=reused))
    return tuple(results)


def _reused_cpus(pod: Pod, containers: messages.Containers) -> dict[str, CPUSet]:
    return reused_cpus(pod, {name: held.exclusive for name, held in containers.items()})


def _evict(result: PodResult, by: PodResult) -> PodResult:
    """Returns the result for an earlier pod, which a critical pod may have evicted."""
    if result.pod not in by.preempted:
        return result
    text = f"evicted to make room for the critical pod {by.pod}"
    refusal = messages.AdmissionRefused(preemption.REASON, preemption.MESSAGE)
    return PodResult(
        result.pod, refusal=refusal, explanation=Explanation(text, (), cause=Cause("evicted"))
    )


def node_of(reference: Reference) -> StartedNode:
    """Returns the node of a reference that has been started."""
    assert reference.node is not None
    return reference.node


def begin(
    question: Question, state_dir: str
) -> tuple[Reference, messages.Started | messages.StartRefused]:
    """Starts a node from its state or else the checkpoints in `state_dir`; returns the answer.

    Raises:
        CannotAnswerError: the reference does not support the configuration.
    """
    reference, answer = start_reference(question, state_dir)
    start = require_supported("start", answer)
    if isinstance(start, messages.StartRefused) and question.state:
        message = start.message.replace(state_dir, question.state.folder)
        start = messages.StartRefused(start.stage, message)
    assert isinstance(start, messages.Started | messages.StartRefused)
    return reference, start


def start_reference(question: Question, state_dir: str) -> tuple[Reference, messages.Answer]:
    """Starts a reference like `begin`; returns it and its answer."""
    reference = Reference(follows_docs=question.follows_docs, exceptions=question.exceptions)
    state = question.state
    if state:
        write_files(Path(state_dir), for_reference(state.files, question.kubernetes))
    args = start_args(question, state_dir, state.pods if state else None)
    if state and state_files.DEVICES not in state.files:
        # Nobody knows the devices of these pods. Taken for new ones, they get devices.
        unknown = {one.uid for one in state.pods if requested_devices(one.pod)}
        running = {uid: names for uid, names in (args.running or {}).items() if uid not in unknown}
        args = msgspec.structs.replace(args, running=running)
    return reference, reference.call("start", args)


def start_args(
    question: Question, state_dir: str, present: Sequence[RunningPod] | None
) -> messages.StartArgs:
    """Returns the request to start a node; `present` are its pods if only its kubelet restarts."""
    return messages.StartArgs(
        config=question.config,
        state_dir=state_dir,
        kubernetes=question.kubernetes,
        machine=question.machine,
        devices=question.devices,
        flags=flags.relevant(question.flags, question.kubernetes),
        check_node=True,
        pods=tuple(one.pod.manifest for one in present or ()),
        running=None if present is None else {one.uid: one.running for one in present},
    )


def admit(
    reference: Reference,
    described_pod: DescribedPod,
    *,
    explain_all: bool,
    names: Mapping[str, str] = MappingProxyType({}),
) -> PodResult:
    """Admits a pod.

    `names` are the names of pods on the node by uid, where they differ.

    Raises:
        CannotAnswerError: the reference does not support the pod.
    """
    node = node_of(reference)
    pod = node.read_pod(described_pod.manifest)
    if missing := requests.missing_devices(node, pod):
        return _unschedulable_result(described_pod.name, missing, node.device_manager.state.lists)
    before = snapshot(node)
    answer = require_answer(reference, "admit", messages.AdmitArgs(described_pod.manifest))
    refusal = answer if isinstance(answer, messages.AdmissionRefused) else None
    if isinstance(answer, messages.Admitted):
        why = explain(before, pod, names) if explain_all else None
        preempted = tuple(names.get(one.uid, one.uid) for one in answer.preempted)
        if why and preempted:
            summary = f"evicts {', '.join(preempted)}: {why.summary}"
            why = msgspec.structs.replace(why, summary=summary)
        return PodResult(
            described_pod.name,
            answer.containers,
            None,
            why,
            preempted,
            shared=why_shared(node.setup, pod, answer.containers),
            outside=outside_affinity(node, answer.containers),
            reused_cpus=_reused_cpus(pod, answer.containers),
        )
    return PodResult(described_pod.name, refusal=refusal, explanation=explain(before, pod, names))


def _unschedulable_result(
    pod: str, missing: Mapping[str, int], known_names: Iterable[str]
) -> PodResult:
    names = ", ".join(missing)
    text = (
        f"no device plugin on this node provides {names}, so the scheduler never places the pod"
        " here (if it did, the kubelet would ignore the resource)"
    )
    example = " ".join(f"--devices {name}={count}@0" for name, count in missing.items())
    meant = (closest(name, known_names) for name in missing)
    return PodResult(
        pod,
        refusal=messages.AdmissionRefused(UNSCHEDULABLE, f"Insufficient {names}"),
        explanation=Explanation(
            f"the node has no {names}",
            (Scheduling(text),),
            (
                *(
                    f"request {name}, which the node has, if that is meant"
                    for name in meant
                    if name
                ),
                f"if the node has such devices, declare them, for example {example}",
            ),
            Cause("device plugin", tuple(missing)),
        ),
    )


class Kubelet(Protocol):
    """Anything that answers requests like a kubelet: the reference or a program."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer to one request."""


def require_answer(kubelet: Kubelet, operation: str, args: messages.Args) -> messages.Answer:
    """Sends a request and returns the answer, which must be a result or a refusal.

    Raises:
        CannotAnswerError: the kubelet does not support the request, or failed.
    """
    return require_supported(operation, kubelet.call(operation, args))


def require_supported(operation: str, answer: messages.Answer) -> messages.Answer:
    """Returns the answer to an operation if it is a result or a refusal.

    Raises:
        CannotAnswerError: the operation was unsupported, or the kubelet failed.
    """
    if isinstance(answer, messages.Unsupported):
        raise CannotAnswerError(f"not supported: {answer.what}")
    if isinstance(answer, messages.Fault):
        raise CannotAnswerError(f"{operation}: {answer.message}")
    return answer


Answer = (
    messages.Started
    | messages.StartRefused
    | messages.AdmissionRefused
    | messages.Container
    | messages.Containers
    | NodeView
)


class DefectWarning(msgspec.Struct, frozen=True):
    """A difference between the kubelet's answer and the documented one, caused by named defects.

    Attributes:
        defects: the defects that contribute.
        part: the part that differs.
        pod, container: the pod or container concerned, if any.
        kubelet, documented_answer: the two answers; None for a container that only one side has.
        follows: whether the documented rules give the same answer on this node, so that this
            difference is only a consequence of earlier ones.
    """

    defects: tuple[NamedDefect, ...]
    part: Part
    pod: str | None
    container: str | None
    kubelet: Answer | None
    documented_answer: Answer | None
    follows: bool = False


Part = Literal["start", "verdict", "container", "node"]
"""The start, whether a pod is admitted, a container's resources, or the final node.

Explanations are not compared: the same answer for other reasons is not another answer.
"""


class _Subject(NamedTuple):
    part: Part
    pod: str | None = None
    container: str | None = None


def warnings(
    question: Question, pods: Pods, simulation: Simulation, folder: Path
) -> tuple[DefectWarning, ...]:
    """Returns warnings about a simulation, in the order of its answers.

    Args:
        question: the node; the reference has the kubelet's defects.
        pods: the simulated pods.
        simulation: the simulation.
        folder: an empty directory for the state directories of additional simulations.

    Raises:
        CannotAnswerError: the reference does not support the request.
    """
    releases = (question.kubernetes,)
    every = defects.of_releases(releases)
    number = count()

    def play(without: frozenset[str], played_pods: Pods) -> Simulation:
        state_dir = folder / str(next(number))
        state_dir.mkdir()
        lacking = msgspec.structs.replace(question, exceptions=without)
        return admit_all(lacking, played_pods, str(state_dir))

    documents = play(every, pods)
    kubelet, documented = _answers(simulation), _answers(documents)
    subjects = _independent_differences(defects.differing_subjects(kubelet, documented))
    if not subjects:
        return ()
    pod_names = {one.pod for one in subjects}
    refused = {
        one.pod
        for one in simulation.pods
        if one.refusal and one.refusal.reason != preemption.REASON
    }
    # A pod that both refuse changes nothing.
    played = [pod for pod in pods if pod.name in pod_names or pod.name not in refused]
    own = _own(question, every, played, folder, pod_names)
    # The first difference cannot follow from an earlier one.
    causes = [one for one in subjects if one.pod is None or one in own or one is subjects[0]]
    # A simulation can stop after the last pod concerned.
    names = [pod.name for pod in pods]
    to_end = any(one.part == "node" for one in causes)
    last = max((names.index(one.pod) + 1 for one in causes if one.pod), default=0)
    asked = pods if to_end else pods[:last]
    why = defects.attribute_defects(
        causes, kubelet, releases, lambda without: _answers(play(without, asked))
    )
    shown = []
    earlier: dict[NamedDefect, None] = {}
    for subject in subjects:
        at_work = why.get(subject) or tuple(earlier)
        earlier |= dict.fromkeys(at_work)
        shown.append(
            DefectWarning(
                at_work,
                *subject,
                kubelet=_answer(simulation, subject),
                documented_answer=_answer(documents, subject),
                follows=subject not in why,
            )
        )
    return tuple(shown)


def _answers(simulation: Simulation) -> dict[_Subject, object]:
    answers: dict[_Subject, object] = {_Subject("start"): simulation.start}
    for one in simulation.pods:
        answers |= _answers_about(one)
    answers[_Subject("node")] = simulation.node
    return answers


def _answers_about(result: PodResult) -> dict[_Subject, object]:
    containers = (result.containers or {}).items()
    return {
        _Subject("verdict", result.pod): result.refusal or "admitted",
        **{_Subject("container", result.pod, name): held for name, held in containers},
    }


def _independent_differences(differing: list[_Subject]) -> list[_Subject]:
    """Drops differences that others imply; for example, all pods differ if only one node starts."""
    verdicts = {one.pod for one in differing if one.part == "verdict"}
    implied = {"start": {}, "verdict": {}, "container": verdicts}
    telling = [one for one in differing if one.pod not in implied.get(one.part, {one.pod})]
    return telling or differing


def _answer(simulation: Simulation, subject: _Subject) -> Answer | None:
    """Returns a simulation's answer; for an admitted pod, its containers' resources."""
    if subject.part != "verdict":
        return cast("Answer | None", _answers(simulation).get(subject))
    one = next((one for one in simulation.pods if one.pod == subject.pod), None)
    return (one.refusal or one.containers) if one else None


def _own(
    question: Question,
    every: frozenset[str],
    pods: Pods,
    folder: Path,
    pod_names: Container[str | None],
) -> set[_Subject]:
    """Finds answers that differ even if the documented rules start from the kubelet's state.

    Only those about the pods in `pod_names` count.
    """
    answering = []
    for name, without in (("kubelet", frozenset[str]()), ("documented", every)):
        (folder / name).mkdir()
        lacking = msgspec.structs.replace(question, exceptions=without)
        reference, start = begin(lacking, str(folder / name))
        if isinstance(start, messages.StartRefused):
            return set()
        answering.append(reference)
    kubelet, documented = answering
    own: set[_Subject] = set()
    for pod in pods:
        if pod.name not in pod_names:
            admit(kubelet, pod, explain_all=False)
            continue
        node_of(documented).adopt(node_of(kubelet))
        mine = _answers_about(admit(kubelet, pod, explain_all=False))
        try:
            others = _answers_about(admit(documented, pod, explain_all=False))
        except CannotAnswerError:
            others = {}
        own |= set(defects.differing_subjects(mine, others))
    return own


class CheckedSimulation(Simulation, frozen=True, omit_defaults=True):
    """A simulation with warnings and notes for the user.

    Attributes:
        warnings: one for each answer affected by named defects of the kubelet.
        crashes: the settings with which the kubelet can panic or hang; the answers are those of a
            kubelet without these defects.
        notes: one sentence for each part of the files that was ignored or skipped.
        not_evaluated: what the pods ask for that could change an answer but is not evaluated.
    """

    warnings: tuple[DefectWarning, ...] = ()
    crashes: tuple[Crash, ...] = ()
    notes: tuple[str, ...] = ()
    not_evaluated: tuple[EvaluationGap, ...] = ()
