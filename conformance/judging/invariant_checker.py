"""Checks the invariants after every call of a session that may change the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.judging import invariants
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.judging.invariants import View, Violation


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
        found = list(invariants.on_answer_alone(args, answer, self._level))
        self.now = view = look()
        if view is None:
            return found
        uid = args.pod["metadata"]["uid"] if isinstance(args, messages.AdmitArgs) else ""
        found += [*self._of_answer(answer, view, uid), *invariants.on_state(view)]
        if previous and self._continuous:
            found += invariants.on_change(previous, view)
        self._continuous = True
        return found

    def _of_answer(self, answer: messages.Answer, view: View, uid: str) -> list[Violation]:
        match answer:
            case messages.Started():
                return list(invariants.on_start(view))
            case messages.Admitted():
                return list(invariants.on_admission(answer, self.before, view, uid))
            case messages.AdmissionRefused() if self.before and uid not in self.before.pods:
                return list(invariants.on_refusal(self.before, view))
        return []
