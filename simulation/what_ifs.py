"""Simulates a node from its state: pods that arrive, and then what if pods go or others come.

The node starts from the state as a kubelet does when only the kubelet restarts.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from numaproof.inputs.names import MAX_LISTED
from numaproof.protocol import messages
from numaproof.simulation.admission import (
    CheckedSimulation,
    NodeView,
    PodResult,
    Question,
    admit_pods,
    begin,
    node_of,
    readmissions,
    require_answer,
    require_supported,
    start_args,
    view,
    warnings,
)
from numaproof.simulation.comparison import ComparedVariant  # noqa: TC001 - msgspec reads it
from numaproof.simulation.configuration_check import ConfigurationFinding  # noqa: TC001 - likewise
from numaproof.simulation.contradictions import explain_readmission
from numaproof.simulation.evaluation_gaps import RESIZE, of_memory, summarize
from numaproof.simulation.explaining import snapshot
from numaproof.simulation.holdings import NodeHoldings, holdings
from numaproof.simulation.lint import crashes
from numaproof.simulation.node_state import RunningPod, StateDifference, differences
from numaproof.simulation.refusal_groups import RefusalGroup, refusal_groups
from numaproof.simulation.remaining import Remaining, remaining
from numaproof.simulation.removals import RemovablePod, removable, smallest_removal
from numaproof.simulation.shared_pool import SharedPool, shrinkage
from numaproof.simulation.workload_summary import (
    WorkloadSummary,
    summarize_workloads,
    workload_names,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.reference.implementation import Reference
    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.pod import Pod
    from numaproof.simulation.explaining import Explanation
    from numaproof.simulation.pods import DescribedPod
    from numaproof.simulation.state_files import Files

ActionKind = Literal["remove", "restart", "then"]
"""Removing a pod, restarting the kubelet, or admitting more pods."""


class Action(NamedTuple):
    """A what-if: its kind, the pod or the file that it is about, and the pods in that file."""

    kind: ActionKind
    subject: str = ""
    pods: tuple[DescribedPod, ...] = ()


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a what-if.

    Attributes:
        action: what happens.
        subject: the file with the pods that arrive.
        removed_pods: the pods.
        pods: a result for each pod that arrives or, after a restart, is on the node.
        refusal: why the kubelet does not restart; no steps follow.
        node, holdings, pool, remaining: as in `NodeSimulation`.
    """

    action: ActionKind
    subject: str = ""
    removed_pods: tuple[str, ...] = ()
    pods: tuple[PodResult, ...] = ()
    refusal: messages.StartRefused | None = None
    node: NodeView | None = None
    holdings: tuple[NodeHoldings, ...] = ()
    pool: SharedPool | None = None
    remaining: Remaining | None = None

    @property
    def admitted(self) -> bool:
        """Whether nothing was refused."""
        return self.refusal is None and all(one.refusal is None for one in self.pods)


class NodeSimulation(CheckedSimulation, frozen=True, omit_defaults=True):
    """A simulation from a node's state, with what-ifs.

    Attributes:
        readmissions: a result for each pod on the node, as after a restart of the kubelet.
        differences: where the state disagrees with the pods on the node.
        holdings: who holds what on each NUMA node; only with a state or what-ifs.
        pool: how the shared pool has shrunk under the pods in it.
        remaining: what remains on the node.
        refusals: the refused pods grouped by cause.
        workloads: what the pods get, by workload.
        comparison: what other configurations do with the same pods; the first is this one.
        errors: why the kubelet doesn't start with this configuration, with how to fix it.
        steps: the answers to the what-ifs, in order.
    """

    readmissions: tuple[PodResult, ...] = ()
    differences: tuple[StateDifference, ...] = ()
    holdings: tuple[NodeHoldings, ...] = ()
    pool: SharedPool | None = None
    remaining: Remaining | None = None
    refusals: tuple[RefusalGroup, ...] = ()
    workloads: tuple[WorkloadSummary, ...] = ()
    comparison: tuple[ComparedVariant, ...] = ()
    errors: tuple[ConfigurationFinding, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def admitted(self) -> bool:
        """Whether the kubelet starts and admits every pod, in every step."""
        started = isinstance(self.start, messages.Started)
        results = (*self.readmissions, *self.pods)
        no_refusal = all(one.refusal is None for one in results)
        return started and no_refusal and all(one.admitted for one in self.steps)


class UnknownPodError(ValueError):
    """A name fits none of the pods or several; the message suggests others."""


class PodExistsError(ValueError):
    """A pod arrives whose name is taken; the message names it."""


def find_pods(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Returns the pods that a user means by a text.

    The text is a pod's name, or its end without ``KIND/`` or ``KIND/NAMESPACE/``. Replicas may be
    named together, without ``#NUMBER``.

    Raises:
        UnknownPodError: there is no such pod.
    """
    every = tuple(dict.fromkeys(names))
    found = tuple(one for one in every if text in _forms(one))
    if found:
        return found
    close = get_close_matches(text, {form for one in every for form in _forms(one)}, n=1)
    fix = f"did you mean {close[0]}?" if close else f"use one of {', '.join(every[:MAX_LISTED])}"
    raise UnknownPodError(f"no pod {text!r}; {fix}" if every else f"no pod {text!r}")


def _forms(name: str) -> Iterator[str]:
    for full in (name, name.partition("#")[0]):
        yield full
        yield full.partition("/")[2]
        yield full.rpartition("/")[2]


class Wishes(NamedTuple):
    """What to explain: the pods whose admission is explained, and those to make room for."""

    explain_pods: Container[str] = ()
    make_room: Container[str] = ()


def simulate(
    question: Question,
    pods: Sequence[DescribedPod],
    folder: Path,
    *,
    actions: Sequence[Action] = (),
    wishes: Wishes = Wishes(),  # noqa: B008 - immutable
) -> NodeSimulation:
    """Admits pods in order, with warnings about named defects, and then plays the what-ifs.

    Refusals are explained. The warnings are about the pods, not about the what-ifs.

    Args:
        question: the node.
        pods: the pods that arrive.
        folder: an empty directory for the checkpoints.
        actions: the what-ifs, in order.
        wishes: what else to explain.

    Raises:
        CannotAnswerError: the reference does not support the configuration.
        PodExistsError: a pod arrives whose name is taken.
        UnknownPodError: a pod to remove is not on the node.
    """
    own, others = folder / "node", folder / "others"
    for each in (own, others):
        each.mkdir()
    reference, start = begin(question, str(own))
    if isinstance(start, messages.StartRefused):
        found = NodeSimulation(start)
    else:
        crashing = () if question.follows_docs else tuple(crashes(node_of(reference).setup))
        found = _Player(reference, question, str(own), wishes).play(start, pods, actions)
        found = msgspec.structs.replace(found, crashes=crashing)
    if not question.follows_docs:
        found = msgspec.structs.replace(found, warnings=warnings(question, pods, found, others))
    arriving = (*pods, *(pod for action in actions for pod in action.pods))
    resizing = [one.pod.name for one in question.pods_on_node if RESIZE in one.pod.gaps]
    gaps = [
        (pod.name, (*pod.gaps, *of_memory(pod.manifest["spec"], question.unknown_memory)))
        for pod in arriving
    ]
    gaps += [(name, (RESIZE,)) for name in resizing]
    return msgspec.structs.replace(found, not_evaluated=summarize(gaps))


class _Player:
    """A started node, and what is known about its pods beyond their resources.

    `_present` are the pods that have been on the node since it started, by uid.
    """

    def __init__(
        self, reference: Reference, question: Question, state_dir: str, wishes: Wishes
    ) -> None:
        self._reference = reference
        self._question = question
        self._state_dir = state_dir
        self._wishes = wishes
        self._present = {one.uid: one for one in question.pods_on_node}
        self._names = dict(question.names)
        self._room_made: set[str] = set()

    @property
    def _node(self) -> StartedNode:
        return node_of(self._reference)

    def play(
        self,
        start: messages.Started,
        pods: Sequence[DescribedPod],
        actions: Sequence[Action],
    ) -> NodeSimulation:
        state = self._question.state
        on_node = self._readmissions(state.files if state else {})
        disagreements = tuple(differences(state, self._node)) if state else ()
        before = snapshot(self._node)
        results = self._admit(pods)
        node, held, pool, left = self._now(before)
        workloads = summarize_workloads(self._node, workload_names(pods), results)
        steps: list[Step] = []
        for action in actions:
            steps.append(self._step(action))
            if steps[-1].refusal:
                break
        return NodeSimulation(
            start,
            results,
            node,
            readmissions=on_node,
            differences=disagreements,
            holdings=held if state or actions else (),
            pool=pool,
            remaining=left,
            refusals=refusal_groups(results),
            workloads=workloads,
            steps=tuple(steps),
        )

    def _step(self, action: Action) -> Step:
        before = snapshot(self._node)
        if action.kind == "restart":
            refusal = self._restart()
            if refusal:
                return Step(action.kind, refusal=refusal)
            step = Step(action.kind, pods=self._readmissions({}))
        elif action.kind == "remove":
            step = Step(action.kind, removed_pods=self._remove(action.subject))
        else:
            step = Step(action.kind, action.subject, pods=self._admit(action.pods))
        node, held, pool, left = self._now(before)
        return msgspec.structs.replace(step, node=node, holdings=held, pool=pool, remaining=left)

    def _now(
        self, before: StartedNode
    ) -> tuple[NodeView, tuple[NodeHoldings, ...], SharedPool | None, Remaining]:
        require_answer(self._reference, "state", messages.NoArgs())
        node, names = self._node, self._names
        pool = shrinkage(before, node, names)
        left = remaining(node, knows_memory=not self._question.unknown_memory)
        return view(node, names), holdings(node, names), pool, left

    def _readmissions(self, files: Files) -> tuple[PodResult, ...]:
        """Returns what a start from `files` decided about the pods that were on the node."""
        present = [one.pod for one in self._present.values()]
        results = readmissions(self._reference, present)
        return tuple(
            msgspec.structs.replace(result, explanation=self._why_ended(pod, files))
            if result.refusal
            else result
            for pod, result in zip(present, results, strict=True)
        )

    def _why_ended(self, pod: DescribedPod, files: Files) -> Explanation:
        read = self._node.read_pod(pod.manifest)
        return explain_readmission(self._node, read, files, self._names)

    def _restart(self) -> messages.StartRefused | None:
        self._present = {uid: self._present[uid] for uid in self._node.pods}
        args = start_args(self._question, self._state_dir, tuple(self._present.values()))
        answer = require_supported("start", self._reference.call("start", args))
        return answer if isinstance(answer, messages.StartRefused) else None

    def _remove(self, text: str) -> tuple[str, ...]:
        names = {uid: self._names[uid] for uid in self._node.pods}
        found = find_pods(text, names.values())
        for uid in [uid for uid, name in names.items() if name in found]:
            require_answer(self._reference, "remove", messages.RemoveArgs(uid))
        return found

    def _admit(self, pods: Sequence[DescribedPod]) -> tuple[PodResult, ...]:
        taken = {self._names[uid] for uid in self._node.pods}
        for pod in pods:
            if pod.name in taken:
                raise PodExistsError(
                    f"{pod.name} is on the node; rename it, or remove the other with --remove"
                )
            running = RunningPod.arriving(pod)
            self._present[running.uid] = running
            self._names[running.uid] = pod.name
        self._room_made.clear()
        return admit_pods(
            self._reference,
            pods,
            self._names,
            explain_pods=self._wishes.explain_pods,
            refused=self._make_room,
        )

    def _make_room(self, before: StartedNode, pod: Pod, result: PodResult) -> PodResult:
        """Adds the pods that would have to go, if this is requested; once for all replicas."""
        workload = result.pod.partition("#")[0]
        if result.pod not in self._wishes.make_room or workload in self._room_made:
            return result
        self._room_made.add(workload)
        found = smallest_removal(before, pod, self._removable)
        return msgspec.structs.replace(result, removals=found)

    def _removable(self, pod: Pod) -> RemovablePod:
        one = self._present[pod.uid]
        controller = one.pod.controller or one.pod.name
        return removable(pod, one.pod.name, controller, is_static=one.is_static)
