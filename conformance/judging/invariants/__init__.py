"""Invariants: rules that every correct implementation obeys, whichever resources it picks.

After every call that may change the node, the harness requests the state and checks it against its
own knowledge: the machine, the configuration, the pods that it admitted and the devices that it
reported. There is a module for each subject. Rules that only some implementations obey, such as
those for checkpoint files, are checked only if the implementation claims them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from numaproof.conformance.judging.invariants import (
    affinity,
    cpus,
    devices,
    memory,
    metrics,
    node,
    relations,
    stateless,
)
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.conformance.judging.invariants.view import View, Violation


class _Subject(Protocol):
    """A module with the invariants of one subject."""

    def on_state(self, view: View) -> Iterator[Violation]:
        """Checks a state."""


on_answer_alone = stateless.on_answer


def on_start(view: View) -> Iterator[Violation]:
    """Checks the answer to a start."""
    return chain(cpus.on_start(view), memory.on_start(view))


def on_state(view: View) -> Iterator[Violation]:
    """Checks a state; if its pods or containers are wrong, nothing else is checked."""
    return _if_listed(view, cpus, memory, devices, affinity, node, metrics)


def _if_listed(view: View, *subjects: _Subject) -> Iterator[Violation]:
    """Checks subjects of a state if it lists the right pods and containers."""
    wrong = next(node.check_pod_list(view), None)
    if wrong is not None:
        yield wrong
        return
    for subject in subjects:
        yield from subject.on_state(view)


def on_affinity(view: View) -> Iterator[Violation]:
    """Checks the affinities in a state, if its pods and containers are right."""
    if next(node.check_pod_list(view), None) is None:
        yield from affinity.on_state(view)


def on_change(before: View, after: View) -> Iterator[Violation]:
    """Checks the states before and after a call, which may be a restart.

    Affinities are checked only if the state lists the right pods.
    """
    yield from cpus.on_change(before, after)
    if next(node.check_pod_list(after), None) is None:
        yield from affinity.on_change(before, after)
    yield from node.on_change(before, after)


def on_restored_state(view: View) -> Iterator[Violation]:
    """Checks the CPUs and the memory that a start has restored for the pods of a view.

    Devices, affinities and metrics appear only when plugins register and pods are admitted again.
    """
    return _if_listed(view, cpus, memory)


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """Checks that a refused pod leaves the node unchanged."""
    return chain(
        cpus.on_refusal(before, after),
        memory.on_refusal(before, after),
        node.on_refusal(before, after),
    )


def on_resize(before: View, after: View) -> Iterator[Violation]:
    """Checks that a resize, accepted or refused, leaves the checkpoint files unchanged."""
    return node.on_resize(before, after)


def on_admission(
    answer: messages.Admitted, before: View | None, view: View, uid: str
) -> Iterator[Violation]:
    """Checks the answer to an admission against the states before and after it."""
    return chain(
        cpus.on_admission(answer, view, uid),
        node.on_admission(answer, view, uid),
        devices.on_admission(answer, before, view, uid),
    )


class InvariantChecker:
    """Checks each new view of a node, both alone and against the previous one.

    Args:
        level: how closely answers are compared.

    Attributes:
        before, now: the views before and after the last call; None if the node was not running, or
        if the implementation doesn't have `state`.
    """

    def __init__(self, level: messages.Level) -> None:
        self._level = level
        self._continuous = True
        self._outcomes = relations.Outcomes()
        self.before: View | None = None
        self.now: View | None = None

    def forget(self) -> None:
        """Records that a checkpoint was edited, so resources may change at the next start."""
        self._continuous = False

    def after(
        self, args: messages.Args, answer: messages.Answer, look: Callable[[], View | None]
    ) -> list[Violation]:
        """Returns the invariants that a call and its answer broke.

        Args:
            args: the arguments of the call.
            answer: the answer.
            look: requests the state; returns None if the node is not running or can't report it.
        """
        previous = self.now
        self.before, self.now = previous, None
        found = list(on_answer_alone(args, answer, self._level))
        self.now = view = look()
        if view is None:
            return found
        found += [*self._of_answer(args, answer, view), *on_state(view)]
        if previous and self._continuous:
            found += on_change(previous, view)
            if isinstance(answer, messages.Started):
                found += relations.on_start(previous, view)
        if previous and isinstance(args, messages.AdmitArgs):
            found += self._outcomes.on_admission(previous, args.pod, answer)
        self._continuous = True
        return found

    def after_start(self, look: Callable[[], View | None]) -> list[Violation]:
        """Returns the invariants broken by what a start restored for the pods on the node.

        Args:
            look: requests the state, before the pods are admitted again.
        """
        if self.now is None or not self._continuous:
            return []
        view = look()
        if view is None:
            return []
        kept = {uid: pod for uid, pod in view.pods.items() if uid in self.now.pods}
        restored = replace(view, pods=kept)
        return [
            *on_restored_state(restored),
            *cpus.on_change(self.now, restored),
            *node.memory_on_change(self.now, restored),
        ]

    def after_readmission(self, refused_uid: str, now: View) -> list[Violation]:
        """Returns the invariants broken by refusing a pod that was on the node before a restart.

        Args:
            refused_uid: the uid of the pod.
            now: the node after the start; its state is not used.
        """
        before = self.now
        if before is None or not self._continuous or refused_uid not in before.pods:
            return []
        return list(relations.on_readmission(before, now, refused_uid))

    def _of_answer(
        self, args: messages.Args, answer: messages.Answer, view: View
    ) -> Iterator[Violation]:
        match args, answer:
            case _, messages.Started():
                yield from on_start(view)
            case messages.AdmitArgs(pod=pod) | messages.ResizeArgs(pod=pod), messages.Admitted():
                yield from on_admission(answer, self.before, view, pod["metadata"]["uid"])
            case _, messages.AdmissionRefused() if self.before and not _is_readmission(
                args, self.before
            ):
                yield from on_refusal(self.before, view)
        if self.before and isinstance(args, messages.ResizeArgs):
            yield from on_resize(self.before, view)


def _is_readmission(args: messages.Args, before: View) -> bool:
    """Whether a pod on the node is admitted again."""
    return isinstance(args, messages.AdmitArgs) and args.pod["metadata"]["uid"] in before.pods
