"""How scenarios are played when answers are compared: no invariants, and the state is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.execution.player import Player
from numaproof.conformance.judging.invariant_checker import InvariantChecker
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.judging.invariants import View, Violation

_ENDS = frozenset({"start", "tamper"})
"""Steps that replace the running node, so that its state is lost."""


class UncheckedInvariants(InvariantChecker):
    """Judges nothing: what is compared needs no invariants."""

    def after(
        self,
        args: messages.Args,  # noqa: ARG002
        answer: messages.Answer,  # noqa: ARG002
        look: Callable[[], View | None],  # noqa: ARG002
    ) -> list[Violation]:
        return []


class ComparedPlayer(Player):
    """Asks for the state where it is about to be lost, and at the end, so that it is compared."""

    def play(self) -> None:
        super().play()
        self._ask()

    def step(self, step: Step) -> None:
        if step.verb in _ENDS:
            self._ask()
        super().step(step)

    def _ask(self) -> None:
        session = self.session
        asked = not session.calls or session.calls[-1].operation == "state"
        if session.started is not None and session.capabilities.has("state") and not asked:
            session.call("state", messages.NoArgs())
