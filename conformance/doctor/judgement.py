"""Judges the claims and answers of a program against the documentation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.manifests import containers
from numaproof.conformance.claims.names import problems
from numaproof.conformance.doctor.wording import finding, wording
from numaproof.conformance.execution.player import Player
from numaproof.conformance.judging import invariants, known_defects
from numaproof.conformance.judging.entitlement import is_static
from numaproof.conformance.judging.finding import Finding as Judged
from numaproof.inputs.plurals import format_numbers
from numaproof.protocol import messages, optional_fields
from numaproof.protocol.diagnosis import Finding
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Expectation
    from numaproof.conformance.doctor.program import Moment, Program
    from numaproof.conformance.execution.session import Call, Session

_REASONS = ("UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError")
"""The reasons for refusing an admission."""

_SHOWN = 200
"""The maximum length of a quoted message."""


def judge_hello(hello: messages.Hello, first: messages.Hello, moment: Moment) -> None:
    """Reports problems with the claims, and differences from the first `hello`."""
    if hello is not first:
        if hello != first:
            moment.note("other-hello")
        return
    if hello.protocol != messages.PROTOCOL_VERSION:
        moment.note("protocol-version", given=hello.protocol, own=messages.PROTOCOL_VERSION)
    for problem in problems(hello):
        wrong, _, right = problem.partition("; ")
        moment.findings.append(Finding(wrong, right))
    if not any(one in RELEASES for one in hello.kubernetes):
        moment.note("no-release", known=", ".join(RELEASES))
    claimed = set(hello.operations)
    if not claimed & OPERATIONS.keys() - {"hello"}:
        moment.note("no-operations")
    needing = [one for one in hello.operations if one in OPERATIONS and OPERATIONS[one].needs_start]
    if needing and "start" not in claimed:
        moment.note("no-start", names=", ".join(f"`{name}`" for name in needing))
    if "start" in claimed and "state" not in claimed:
        moment.note("no-state")


class DoctorsPlayer(Player):
    """Plays all possible steps of a case, even after a wrong answer.

    After a restart, requests the state before admitting the pods again. `Judgement` decides which
    kind of answer is right.

    Attributes:
        readmits: whether to admit the pods on the node again after a restart.
    """

    readmits = True

    @classmethod
    def of(cls, other: Player) -> Self:
        """Creates a player with another player's case and session.

        It judges expectations at level placement, because the dialogue's expectations leave no
        choice.
        """
        run = other.case, other.session, other.facts
        return cls(*run, "placement", other.checker, other.baselines)

    def step(self, step: Any) -> None:
        """Plays a step if it is possible; for errors, see `Player`."""
        if self._makes_sense(step, step.verb):
            super().step(step)

    def _readmit(self, expected: Expectation) -> None:
        held, session = self.checker.now, self.session
        if session.pods and held is None:
            self._look_for_leftovers()
        elif session.pods and session.start_answer is not None:
            start = session.calls[-1]
            super()._judge(session.start_answer, expected)
            if self.checker.now is not None:
                # Hints are only in memory and return when the pods are admitted again.
                excused = {one.finding for one in invariants.on_affinity(self.checker.now)}
                start.problems = [one for one in start.problems if one not in excused]
        if self.readmits:
            super()._readmit(expected)
            # The pods again hold the same resources as before the restart.
            self.checker.now = held

    def _look_for_leftovers(self) -> None:
        """If the state directory is empty, no pod may hold anything, even if it is on the node."""
        if not self.session.capabilities.has("state"):
            return
        state = self.session.call("state", messages.NoArgs())
        pods = state.pods if isinstance(state, messages.State) else {}
        self.session.calls[-1].problems += [
            Judged(
                "node",
                "leftovers",
                kind="statement",
                text=finding(
                    "leftover", name=name, uid=uid, cpus=format_numbers("CPU", one.exclusive)
                ).wrong,
            )
            for uid, held in pods.items()
            for name, one in held.items()
            if one.exclusive
        ]

    def _judge(self, answer: messages.Answer, expected: Expectation) -> None:
        looked = self.session.calls[-1].operation == "state"
        if not (looked and isinstance(answer, messages.Started)):
            super()._judge(answer, expected)


def _is_refusal(answer: object) -> bool:
    return isinstance(answer, messages.StartRefused | messages.AdmissionRefused)


class Judgement:
    """Judges each answer of a session and records problems with its exchange.

    Admissions are judged at every level, because each pod of the dialogue either fits or doesn't.
    All other comparisons depend on the claimed level. As an `AnswerJudge`, it reports no
    disagreement, so that the dialogue continues.

    Args:
        session: the session to judge, with the same judges as a run of `check`.
        program: the program under examination.

    Attributes:
        has_diverged: whether the node's state is no longer as documented, because of a wrong or
            missing answer. If so, nothing more is compared.
    """

    def __init__(self, session: Session, program: Program) -> None:
        self._session = session
        self._program = program
        self._oracle, self._shadow_oracle = session.oracle, session.shadow_oracle
        self.has_diverged = False

    @property
    def answer(self) -> messages.Answer | None:
        """The documented answer to the last request."""
        judge = self._shadow_oracle or self._oracle
        return judge.answer if judge and not self.has_diverged else None

    def alter(self, change: Callable[[Path], object]) -> None:
        """Does nothing, because the dialogue edits no checkpoints."""

    def disagreement(self, operation: str, args: messages.Args, answer: messages.Answer) -> None:
        """Reports problems with an answer."""
        moment = self._program.moments[-1]
        judges = () if self.has_diverged else filter(None, (self._oracle, self._shadow_oracle))
        found = [judge.disagreement(operation, args, answer) for judge in judges]
        self._check_optional_fields(moment, answer)
        match answer:
            case messages.Unsupported():
                return
            case messages.Fault():
                moment.note("fault", message=answer.message[:_SHOWN], log=answer.trace)
                self.has_diverged = True
                return
            case messages.AdmissionRefused():
                self._look_at_reason(moment, answer.reason)
            case messages.State():
                self._look_at_pool(moment, answer)
            case messages.Admitted() if isinstance(args, messages.AdmitArgs):
                self._look_at_containers(moment, args.pod, answer)
        self._compare(moment, answer, found[0] if found else None)

    def _compare(
        self, moment: Moment, answer: messages.Answer, disagreement: Judged | None
    ) -> None:
        right, level = self.answer, self._session.level
        if right is None or isinstance(right, messages.Unsupported | messages.Fault):
            return
        match right:
            case _ if _is_refusal(answer) and not _is_refusal(right):
                message = getattr(answer, "message", "")[:_SHOWN]
                moment.note("must-not-be-refused", message=message)
            case messages.StartRefused(stage=word) if not _is_refusal(answer):
                moment.note("start-must-be-refused", word=word)
            case messages.AdmissionRefused(reason=word) if not _is_refusal(answer):
                moment.note("must-be-refused", word=word)
            # An invariant judges the quota.
            case _ if disagreement and not disagreement.rule.endswith(".quota"):
                claim = finding("level", level=level)
                disagreement = replace(disagreement, source="documents")
                moment.note_finding(disagreement, claim.right, before=claim.wrong)
            case _:
                return
        self.has_diverged = True

    def _check_optional_fields(self, moment: Moment, answer: messages.Answer) -> None:
        """Reports optional fields that are present but not requested, or requested but missing."""
        for path, of, is_told in optional_fields.places(answer):
            if is_told and of not in self._session.tell:
                moment.note("not-asked-for", path=path, of=of)
            elif of in self._session.tell and not is_told:
                moment.note("not-told", path=path, of=of, example=wording().optional_fields[of])

    def _look_at_reason(self, moment: Moment, reason: str) -> None:
        """Reports an undocumented reason; higher levels compare the reason anyway."""
        if self._session.level == messages.LEVELS[0] and reason not in _REASONS:
            moment.note("unknown-reason" if reason else "no-reason", reason=reason)

    def _look_at_pool(self, moment: Moment, state: messages.State) -> None:
        """Reports a shared pool under the none policy (as advice below level placement)."""
        session = self._session
        if session.start_answer and not is_static(session.config) and state.shared:
            advice = not applies("placement", session.level)
            moment.note("pool-under-none", shared=state.shared, advice=advice)

    def _look_at_containers(
        self, moment: Moment, pod: messages.Pod, answer: messages.Admitted
    ) -> None:
        """Reports containers missing from an admission, because the state wouldn't show them."""
        missing = [f"`{name}`" for name in containers(pod) if name not in answer.containers]
        if missing:
            moment.note("missing-containers", names=", ".join(missing))


def blame(moments: Sequence[Moment], first: int, calls: Sequence[Call], player: Player) -> None:
    """Adds the findings about each call to its exchange.

    Problems with the answer itself are added to its call. Problems that only the state shows are
    added to the following `state`, unless the contents of the node are unknown.

    Args:
        moments: the exchanges, one for each call.
        first: the number of the first exchange.
        calls: the calls with their problems.
        player: the player, after these calls.
    """
    broken = {one.finding for one in player.violations}
    # Implementations that claim to be a kubelet share its defects. For others, the player has
    # consulted the baselines.
    is_kubelet = player.baselines is None
    known = known_defects.known_defects(player.session.kubernetes) if is_kubelet else frozenset()
    explain = known_defects.explain
    excused = {
        one.finding for one, facts, _ in player.broken_invariants if explain(one, facts, known)
    }
    shown: list[Judged] = []
    cause = ""
    for number, (moment, call) in enumerate(zip(moments, calls, strict=False), first):
        own = [one for one in dict.fromkeys(call.problems) if one not in excused]
        alone: set[Judged] = set()
        match call.answer:
            case None | messages.Fault():
                own = []  # already reported
            case answer:
                on_answer = invariants.on_answer_alone(call.args, answer, player.session.level)
                alone = {one.finding for one in on_answer}
        # An unmet expectation repeats another finding, if there is one.
        others = moment.findings or not broken.isdisjoint(own)
        unmet = [] if others else own
        after = cause if moment.step == "state" else ""
        for problem in (*shown, *(one for one in own if one in alone), *unmet):
            moment.note_finding(problem, after=after)
        shown = [
            one for one in own if one in broken and one not in alone and not player.out_of_step
        ]
        cause = f"{moment.step} ({number})"
