"""Plays the steps of the dialogue, and puts what the state shows at the line that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.execution.player import Player
from numaproof.conformance.judging import invariants
from numaproof.conformance.judging.finding import Finding
from numaproof.inputs.plurals import numbered
from numaproof.protocol import messages

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Expectation
    from numaproof.conformance.execution.session import Call
    from numaproof.conformance.judging.invariants import View


@dataclass
class Attendant(Player):
    """A player that looks at the node right after a restart too, before it admits pods again.

    What an answer alone breaks stands at its call; what only the state shows stands at the `state`
    that was asked for after it.

    Attributes:
        readmits: whether a restart is followed by the admissions of the pods on the node.
    """

    readmits: bool = True

    def _readmit(self, expected: Expectation) -> None:
        started = self.session.started
        assert started is not None
        fresh = self.checker.now is None
        if self.session.pods and not fresh:
            self._judge(started, expected)
            self._excuse_affinities()
        if self.session.pods and fresh:
            self._look_for_leftovers()
        if not self.readmits:
            return
        held, said = self.checker.before, len(self.session.calls)
        super()._readmit(expected)
        if held is not None and not fresh:
            for call in self.session.calls[said:]:
                call.problems += _moved(call, held)

    def _look_for_leftovers(self) -> None:
        """In an empty state directory no pod holds anything, though it may be on the node."""
        if not self.session.capabilities.has("state"):
            return
        state = self.session.call("state", messages.NoArgs())
        if not isinstance(state, messages.State):
            return
        self.session.calls[-1].problems += [
            Finding(
                "node",
                "leftovers",
                kind="statement",
                text=f"container {name} of {uid} holds {numbered('CPU', container.exclusive)}, but"
                " the state directory was empty and no pod has been admitted since: that is of an"
                " earlier start",
            )
            for uid, containers in state.pods.items()
            for name, container in containers.items()
            if container.exclusive
        ]

    def _excuse_affinities(self) -> None:
        """Hints are in memory alone: they come back as the pods are admitted again."""
        if self.checker.now is not None:
            excused = {one.finding for one in invariants.on_affinity(self.checker.now)}
            state = self.session.calls[-1]
            state.problems = [one for one in state.problems if one not in excused]

    def _judge(self, answer: messages.Answer, expected: Expectation) -> None:
        said = len(self.session.calls)
        if isinstance(answer, messages.Started) and said > 1:
            last = self.session.calls[-1]
            if last.operation == "state":
                return  # nothing was admitted again: the state has been looked at
        call = self.session.calls[said - 1]
        known = len(call.problems)
        super()._judge(answer, expected)
        if len(self.session.calls) == said:
            return
        broken = invariants.on_answer_alone(call.args, answer, self.session.level)
        alone = {one.finding for one in broken}
        found, call.problems = call.problems[known:], call.problems[:known]
        call.problems += [one for one in found if one in alone]
        self.session.calls[said].problems += [one for one in found if one not in alone]


def _moved(call: Call, held: View) -> list[Finding]:
    """Which containers got other CPUs than they held when their pod was admitted again."""
    if not isinstance(call.args, messages.AdmitArgs):
        return []
    if not isinstance(call.answer, messages.Admitted):
        return []
    uid = call.args.pod["metadata"]["uid"]
    before = held.state.pods.get(uid, {})
    return [
        Finding(
            "invariant",
            "exclusive-set-stays",
            kind="invariant",
            text=f"container {name} of {uid} held {numbered('CPU', before[name].exclusive)} before"
            f" the restart, and now holds {numbered('CPU', container.exclusive)}",
        )
        for name, container in call.answer.containers.items()
        if name in before and before[name].exclusive - container.exclusive
    ]
