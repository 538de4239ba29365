"""What every correct implementation keeps, whatever CPUs, nodes and devices it picks.

Checked after every call, from the answers alone: the harness asks for the state after each call
that may change it, and holds it against what it knows itself, that is the machine, the pods that
it put on the node, the devices and the configuration that it gave. Each module has the
invariants of one subject; a rule that only some implementations have (checkpoint files) is
checked of those that claim it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from numaproof.conformance.judging.invariants import (
    affinity,
    cpus,
    devices,
    memory,
    node,
    stateless,
)
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.conformance.judging.invariants.view import View, Violation


on_answer_alone = stateless.on_answer


def on_start(view: View) -> Iterator[Violation]:
    """What a start must say of the machine."""
    return chain(cpus.on_start(view), memory.on_start(view))


def on_state(view: View) -> Iterator[Violation]:
    """What must hold of any state; of one with wrong pods or containers nothing more is said."""
    wrong = next(node.check_pod_list(view), None)
    if wrong is not None:
        yield wrong
        return
    for subject in (cpus, memory, devices, affinity, node):
        yield from subject.on_state(view)


def on_affinity(view: View) -> Iterator[Violation]:
    """What must hold of the affinities of any state; as with `on_state`, of the right pods."""
    if next(node.check_pod_list(view), None) is None:
        yield from affinity.on_state(view)


def on_change(before: View, after: View) -> Iterator[Violation]:
    """What must hold between the states before and after a call (a restart included).

    Of affinities it is said only where the state has the pods that are on the node.
    """
    yield from cpus.on_change(before, after)
    if next(node.check_pod_list(after), None) is None:
        yield from affinity.on_change(before, after)
    yield from node.on_change(before, after)


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """What must hold when a pod was refused: the node is as before."""
    return chain(
        cpus.on_refusal(before, after),
        memory.on_refusal(before, after),
        node.on_refusal(before, after),
    )


def on_admission(
    answer: messages.Admitted, before: View | None, view: View, uid: str
) -> Iterator[Violation]:
    """What must hold between the answer to an admission and the states around it."""
    return chain(
        cpus.on_admission(answer, view, uid),
        node.on_admission(answer, view, uid),
        devices.on_admission(answer, before, view, uid),
    )


class InvariantChecker:
    """Keeps the last view of a node and checks each new one against it.

    Args:
        level: how much of the answers is compared.

    Attributes:
        before, now: the views around the last call; None if the node was not up, or if the
            implementation does not have `state`.
    """

    def __init__(self, level: messages.Level) -> None:
        self._level = level
        self._continuous = True
        self.before: View | None = None
        self.now: View | None = None

    def forget(self) -> None:
        """Notes that a checkpoint was changed by hand: sets may differ after the next start."""
        self._continuous = False

    def after(
        self, args: messages.Args, answer: messages.Answer, look: Callable[[], View | None]
    ) -> list[Violation]:
        """The invariants that a call and its answer broke.

        Args:
            args: of the call.
            answer: the answer to it.
            look: asks for the state; None if the node is not up or cannot show it.
        """
        previous = self.now
        self.before, self.now = previous, None
        found = list(on_answer_alone(args, answer, self._level))
        self.now = view = look()
        if view is None:
            return found
        uid = args.pod["metadata"]["uid"] if isinstance(args, messages.AdmitArgs) else ""
        found += [*self._of_answer(answer, view, uid), *on_state(view)]
        if previous and self._continuous:
            found += on_change(previous, view)
        self._continuous = True
        return found

    def _of_answer(self, answer: messages.Answer, view: View, uid: str) -> list[Violation]:
        match answer:
            case messages.Started():
                return list(on_start(view))
            case messages.Admitted():
                return list(on_admission(answer, self.before, view, uid))
            case messages.AdmissionRefused() if self.before and uid not in self.before.pods:
                return list(on_refusal(self.before, view))
        return []
