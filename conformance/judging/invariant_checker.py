"""Checks the invariants after every call of a session that may change the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.judging import invariants
from numaproof.conformance.judging.invariants import View, Violation
from numaproof.protocol import messages

if TYPE_CHECKING:
    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.judging.observed_session import ObservedSession


class InvariantChecker:
    """Keeps the last view of a node and checks each new one against it.

    Attributes:
        facts: of the machine as it is now.
        before, now: the views around the last call; None if the node was not up, or if the
            implementation does not have `state`.
    """

    def __init__(self, session: ObservedSession, facts: Facts) -> None:
        self._session = session
        self.facts = facts
        self._continuous = True
        self.before: View | None = None
        self.now: View | None = None

    def forget(self) -> None:
        """Notes that a checkpoint was changed by hand: sets may differ after the next start."""
        self._continuous = False

    def after(self, answer: messages.Answer, uid: str = "") -> list[Violation]:
        """The invariants that a call and its answer broke.

        Args:
            answer: the answer to the call, which was the last of the session.
            uid: the pod that an admission was about.

        Raises:
            ImplementationFailure: the state could not be asked for.
        """
        previous = self.now
        self.before, self.now = previous, None
        args = self._session.calls[-1].args
        alone = list(invariants.on_answer_alone(args, answer, self._session.level))
        return alone + self._of_node(previous, answer, uid)

    def _of_node(self, previous: View | None, answer: messages.Answer, uid: str) -> list[Violation]:
        if self._session.started is None or not self._session.capabilities.has("state"):
            return []
        state = self._session.call("state", messages.NoArgs())
        if not isinstance(state, messages.State):
            return []
        view = View.of(self._session, self.facts, state)
        self.now = view
        found = [*self._of_answer(answer, view, uid), *invariants.on_state(view)]
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
