"""What the answers of a program reveal: about its claims, and where they are not as documented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.claims.names import problems
from numaproof.conformance.execution.player import Player
from numaproof.conformance.judging import invariants
from numaproof.conformance.judging.entitlement import is_static
from numaproof.conformance.judging.oracle import DIFFERS
from numaproof.inputs.plurals import counted, numbered
from numaproof.protocol import messages, told
from numaproof.protocol.messages import LEVELS, PROTOCOL_VERSION
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Expectation
    from numaproof.conformance.diagnosis.program import Moment, Program
    from numaproof.conformance.execution.session import Call, Session

_REASONS = ("UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError")
"""Why an admission may be refused."""

_TOLD: dict[str, str] = {
    "quota": '{"quota": true}',
    "effective-configuration": '{"config": {"cpuManagerPolicy": "static", "...": "..."}}',
    "refused-pods": (
        '{"pod": {"phase": "Failed", "reason": "...", "message": "...", "event": "..."}}'
    ),
}
"""What an answer looks like with what a start may ask for."""


def judge_hello(hello: messages.Hello, moment: Moment) -> None:
    """Notes what is wrong with the claims by themselves."""
    if hello.protocol != PROTOCOL_VERSION:
        moment.wrong(
            f"`protocol` is {hello.protocol}; the harness speaks {PROTOCOL_VERSION}",
            f'`"protocol": {PROTOCOL_VERSION}`',
        )
    for problem in problems(hello):
        wrong, _, right = problem.partition("; ")
        moment.wrong(wrong, right)
    if not any(one in RELEASES for one in hello.kubernetes):
        moment.wrong(
            "`kubernetes` names no release that numaproof knows",
            f"one or more of {', '.join(RELEASES)}",
        )
    claimed = set(hello.operations)
    if not claimed & OPERATIONS.keys() - {"hello"}:
        moment.wrong("`operations` names nothing to ask for", '`["start", "admit", "state"]`')
    needing = [one for one in hello.operations if one in OPERATIONS and OPERATIONS[one].needs_start]
    if needing and "start" not in claimed:
        named = ", ".join(f"`{name}`" for name in needing)
        moment.wrong(f"{named} can't be asked for without `start`", "claim `start` too")
    if "start" in claimed and "state" not in claimed:
        level = "" if hello.level == LEVELS[0] else f" (level {hello.level} is claimed)"
        moment.wrong(
            f"without `state` most of what every implementation must keep is not checked{level}",
            "implement `state`: what each pod holds, and the shared pool",
            advice=True,
        )


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
        level: messages.Level = "placement"
        return cls(other.case, other.session, other.facts, level, other.checker, other.sides)

    def step(self, step: Any) -> None:
        """Plays a step if it makes sense; errors are those of `Player`."""
        if self._makes_sense(step, step.verb):
            super().step(step)

    def _readmit(self, expected: Expectation) -> None:
        held, session = self.checker.now, self.session
        if session.pods and held is None:
            self._look_for_leftovers()
        elif session.pods and session.started is not None:
            start = session.calls[-1]
            super()._judge(session.started, expected)
            if self.checker.now is not None:
                # Hints are in memory alone: they come back as the pods are admitted again.
                excused = {one.sentence for one in invariants.on_affinity(self.checker.now)}
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
        self.session.calls[-1].problems += [
            f"container {name} of {uid} holds {numbered('CPU', container.exclusive)}, but the state"
            " directory was empty and no pod has been admitted since: that is of an earlier start"
            for uid, containers in (state.pods if isinstance(state, messages.State) else {}).items()
            for name, container in containers.items()
            if container.exclusive
        ]

    def _judge(self, answer: messages.Answer, expected: Expectation, uid: str = "") -> None:
        looked = self.session.calls[-1].operation == "state"
        if not (looked and isinstance(answer, messages.Started)):
            super()._judge(answer, expected, uid)


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
        parted: whether the node is no longer what the documents say it is, because of a wrong
            answer or none: nothing more is compared then.
    """

    def __init__(self, session: Session, program: Program) -> None:
        self._session = session
        self._program = program
        self._compared, self._silent = session.oracle, session.silent
        self.parted = False

    @property
    def answer(self) -> messages.Answer | None:
        """What the documents say to the last request."""
        judge = self._silent or self._compared
        return judge.answer if judge and not self.parted else None

    def alter(self, change: Callable[[Path], object]) -> None:
        """Changes a checkpoint by hand."""
        for judge in filter(None, (self._compared, self._silent)):
            judge.alter(change)

    def disagreement(self, operation: str, args: messages.Args, answer: messages.Answer) -> None:
        """Notes what is wrong with an answer."""
        moment = self._program.moments[-1]
        judges = () if self.parted else filter(None, (self._compared, self._silent))
        found = [judge.disagreement(operation, args, answer) for judge in judges]
        self._look_at_told(moment, answer)
        match answer:
            case messages.Unsupported():
                return
            case messages.Fault():
                moment.wrong(
                    f"the answer is a fault: {answer.message[:200]}",
                    "a fault says that the program broke; a deliberate no is `refused`",
                    log=answer.trace,
                )
                self.parted = True
                return
            case messages.AdmissionRefused():
                self._look_at_reason(moment, answer.reason)
            case messages.State():
                self._look_at_pool(moment, answer)
            case messages.Admitted() if isinstance(args, messages.AdmitArgs):
                self._look_at_containers(moment, args.pod, answer)
        self._compare(moment, answer, found[0] if found else None)

    def _compare(self, moment: Moment, answer: messages.Answer, found: str | None) -> None:
        right, level = self.answer, self._session.level
        if right is None or isinstance(right, messages.Unsupported | messages.Fault):
            return
        if _is_refusal(answer) != _is_refusal(right):
            moment.wrong(*_wrong_kind(answer, right))
            self.parted = True
        elif found and not found.partition("\n")[0].endswith(".quota"):  # an invariant judges that
            claim = f"level {level} is claimed, and the documents say otherwise: "
            right_is = "answer as documented, or claim a lower level"
            moment.wrong(claim + found.removeprefix(DIFFERS), right_is)
            self.parted = True

    def _look_at_told(self, moment: Moment, answer: messages.Answer) -> None:
        """Notes what an answer says unasked, and what it was asked for and does not say."""
        for place in told.places(answer):
            if place.told and place.of not in self._session.tell:
                moment.wrong(
                    f"`{place.path}` was not asked for",
                    f'leave it out unless `tell` of the start has "{place.of}"',
                )
            elif place.of in self._session.tell and not place.told:
                moment.wrong(
                    f'`{place.path}` is missing: `tell` of the start has "{place.of}"',
                    f"`{_TOLD[place.of]}`",
                )

    def _look_at_reason(self, moment: Moment, reason: str) -> None:
        """Notes a reason that no document has; higher levels compare it."""
        if self._session.level == LEVELS[0] and reason not in _REASONS:
            moment.wrong(
                f"no document has the reason {reason!r}" if reason else "the reason is empty",
                f"one of {', '.join(f'`{one}`' for one in _REASONS)}; from level admission on it is"
                " compared",
                advice=True,
            )

    def _look_at_pool(self, moment: Moment, state: messages.State) -> None:
        """Notes a shared pool where nothing is pinned, which no level below placement compares."""
        if self._session.started and not is_static(self._session.config) and state.shared:
            moment.wrong(
                f"under CPU policy none `shared` is {state.shared}, and nothing is pinned",
                '`"shared": ""`, and `""` for the `cpus` of each container',
                advice=not applies("placement", self._session.level),
            )

    def _look_at_containers(
        self, moment: Moment, pod: messages.Pod, answer: messages.Admitted
    ) -> None:
        """Notes what is wrong with an admission by itself, where no state will show it."""
        spec = pod["spec"]
        names = [one["name"] for one in (*spec.get("initContainers", ()), *spec["containers"])]
        if missing := [f"`{name}`" for name in names if name not in answer.containers]:
            moment.wrong(
                f"`containers` lacks {', '.join(missing)}",
                "name every init and app container of the pod",
            )
        session, right = self._session, self.answer
        if session.capabilities.has("state") or not session.started:
            return
        due = right.containers if isinstance(right, messages.Admitted) else {}
        for name, container in answer.containers.items():
            if name in due and len(container.exclusive) != len(due[name].exclusive):
                moment.wrong(
                    f"`{name}` has {counted('exclusive CPU', container.exclusive)};"
                    f" it is due {len(due[name].exclusive)}"
                )
            if beyond := container.exclusive - session.started.cpus.allocatable:
                what = (
                    "reserved"
                    if beyond.issubset(session.started.cpus.all)
                    else "not on the machine"
                )
                moment.wrong(f"`{name}` has exclusive {numbered('CPU', beyond)}, {what}")


def _wrong_kind(answer: messages.Answer, right: messages.Answer) -> tuple[str, str]:
    match right:
        case messages.StartRefused(stage=word):
            body = f'"stage": "{word}"'
        case messages.AdmissionRefused(reason=word):
            body = f'"reason": "{word}"'
        case _:
            message = getattr(answer, "message", "")
            return f"this must not be refused: {message[:200]}", "answer with `ok`"
    what = "this start must be refused" if '"stage"' in body else "this must be refused"
    return what, f'`{{"refused": {{{body}, "message": "..."}}}}`'


def judge_unsupported(moments: Iterable[Moment]) -> None:
    """Notes each operation that is claimed and was answered ``unsupported``."""
    for moment in moments:
        if isinstance(moment.answer, messages.Unsupported):
            moment.wrong(
                f"`hello` claims this, and the answer to `{moment.step}` is `unsupported`",
                "implement it, or claim less: a smaller claim is never a failure",
            )


def blame(moments: Sequence[Moment], first: int, calls: Sequence[Call], player: Player) -> None:
    """Notes at each exchange what was found about its call.

    What an answer alone breaks stands at its call; what only the state shows stands at the `state`
    that was asked for after it.

    Args:
        moments: the exchanges, one for each call.
        first: the number of the first.
        calls: with their problems.
        player: of which they are the last calls.
    """
    broken = {one.sentence for one in player.violations}
    shown: list[str] = []
    cause = ""
    for number, (moment, call) in enumerate(zip(moments, calls, strict=False), first):
        own, alone = dict.fromkeys(call.problems), set()
        match call.answer:
            case None | messages.Fault():
                own = {}  # that is one finding, which it has already
            case answer:
                on_answer = invariants.on_answer_alone(call.args, answer, player.session.level)
                alone = {one.sentence for one in on_answer}
        # An expectation that is not met is the same mistake as one that stands there already.
        unmet = [one for one in own if one not in broken and not moment.findings]
        for problem in (*shown, *alone.intersection(own), *unmet):
            moment.wrong(problem, after=cause if moment.step == "state" else "")
        shown = [one for one in own if one in broken and one not in alone]
        cause = f"{moment.step} ({number})"
