"""What the answers of a program reveal: about its claims, and where they are not as documented."""

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
"""Why an admission may be refused."""

_SHOWN = 200
"""Characters of a message that a finding shows."""


def judge_hello(hello: messages.Hello, first: messages.Hello, moment: Moment) -> None:
    """Notes what is wrong with the claims by themselves, and where they are not the first ones."""
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
    """Plays the steps of a case that make sense, also after an answer that is wrong.

    After a restart it looks at the node before it admits the pods again. What kind of answer is
    right is left to `Judgement`.

    Attributes:
        readmits: whether a restart is followed by the admissions of the pods on the node.
    """

    readmits = True

    @classmethod
    def of(cls, other: Player) -> Self:
        """A player in place of another.

        It judges what a step expects at level placement: the dialogue expects only what leaves no
        choice.
        """
        run = other.case, other.session, other.facts
        return cls(*run, "placement", other.checker, other.baselines)

    def step(self, step: Any) -> None:
        """Plays a step if it makes sense; errors are those of `Player`."""
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
                # Hints are in memory alone: they come back as the pods are admitted again.
                excused = {one.finding for one in invariants.on_affinity(self.checker.now)}
                start.problems = [one for one in start.problems if one not in excused]
        if self.readmits:
            super()._readmit(expected)
            # What the pods held before the restart, they hold again.
            self.checker.now = held

    def _look_for_leftovers(self) -> None:
        """In an empty state directory no pod holds anything, though it may be on the node."""
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
    """Judges each answer of a session as it comes, and notes what is wrong at its exchange.

    Whether a pod is admitted is not a matter of taste, at any level: the few pods of the dialogue
    fit, or they do not. What else is compared depends on the level that the program claims. An
    `AnswerJudge` that itself finds nothing, so that the dialogue goes on.

    Args:
        session: whose answers are judged; it has the judges of a run of `check`.
        program: what is examined.

    Attributes:
        has_diverged: whether the node is no longer what the documents say it is, because of a wrong
            answer or none: nothing more is compared then.
    """

    def __init__(self, session: Session, program: Program) -> None:
        self._session = session
        self._program = program
        self._oracle, self._shadow_oracle = session.oracle, session.shadow_oracle
        self.has_diverged = False

    @property
    def answer(self) -> messages.Answer | None:
        """What the documents say to the last request."""
        judge = self._shadow_oracle or self._oracle
        return judge.answer if judge and not self.has_diverged else None

    def alter(self, change: Callable[[Path], object]) -> None:
        """Nothing: the dialogue changes no checkpoint by hand."""

    def disagreement(self, operation: str, args: messages.Args, answer: messages.Answer) -> None:
        """Notes what is wrong with an answer."""
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
            # Whether there is a quota is judged by an invariant.
            case _ if disagreement and not disagreement.rule.endswith(".quota"):
                claim = finding("level", level=level)
                disagreement = replace(disagreement, source="documents")
                moment.note_finding(disagreement, claim.right, before=claim.wrong)
            case _:
                return
        self.has_diverged = True

    def _check_optional_fields(self, moment: Moment, answer: messages.Answer) -> None:
        """Notes what an answer says unasked, and what it was asked for and does not say."""
        for path, of, is_told in optional_fields.places(answer):
            if is_told and of not in self._session.tell:
                moment.note("not-asked-for", path=path, of=of)
            elif of in self._session.tell and not is_told:
                moment.note("not-told", path=path, of=of, example=wording().optional_fields[of])

    def _look_at_reason(self, moment: Moment, reason: str) -> None:
        """Notes a reason that no document has; higher levels compare it."""
        if self._session.level == messages.LEVELS[0] and reason not in _REASONS:
            moment.note("unknown-reason" if reason else "no-reason", reason=reason)

    def _look_at_pool(self, moment: Moment, state: messages.State) -> None:
        """Notes a shared pool where nothing is pinned, which no level below placement compares."""
        session = self._session
        if session.start_answer and not is_static(session.config) and state.shared:
            advice = not applies("placement", session.level)
            moment.note("pool-under-none", shared=state.shared, advice=advice)

    def _look_at_containers(
        self, moment: Moment, pod: messages.Pod, answer: messages.Admitted
    ) -> None:
        """Notes what is wrong with an admission by itself, where no state will show it."""
        missing = [f"`{name}`" for name in containers(pod) if name not in answer.containers]
        if missing:
            moment.note("missing-containers", names=", ".join(missing))


def blame(moments: Sequence[Moment], first: int, calls: Sequence[Call], player: Player) -> None:
    """Notes at each exchange what was found about its call.

    What an answer alone breaks stands at its call; what only the state shows stands at the `state`
    that was asked for after it, unless it is not known what is on the node.

    Args:
        moments: the exchanges, one for each call.
        first: the number of the first.
        calls: with their problems.
        player: of which they are the last calls.
    """
    broken = {one.finding for one in player.violations}
    # Who claims to be a kubelet has its defects; for others, the player has asked the baselines.
    is_kubelet = player.baselines is None
    known = known_defects.known_defects(player.session.kubernetes) if is_kubelet else frozenset()
    explain = known_defects.explain
    excused = {one.finding for one, facts in player.broken_invariants if explain(one, facts, known)}
    shown: list[Judged] = []
    cause = ""
    for number, (moment, call) in enumerate(zip(moments, calls, strict=False), first):
        own = [one for one in dict.fromkeys(call.problems) if one not in excused]
        alone: set[Judged] = set()
        match call.answer:
            case None | messages.Fault():
                own = []  # that is one finding, which it has already
            case answer:
                on_answer = invariants.on_answer_alone(call.args, answer, player.session.level)
                alone = {one.finding for one in on_answer}
        # An expectation that is not met is the same mistake as any other.
        others = moment.findings or not broken.isdisjoint(own)
        unmet = [] if others else own
        after = cause if moment.step == "state" else ""
        for problem in (*shown, *(one for one in own if one in alone), *unmet):
            moment.note_finding(problem, after=after)
        shown = [
            one for one in own if one in broken and one not in alone and not player.out_of_step
        ]
        cause = f"{moment.step} ({number})"
