"""The examination of a program: the dialogue played, every exchange judged."""

from __future__ import annotations

import re
import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.diagnosis import claimed, dialogue, greeting, later, prescription
from numaproof.conformance.diagnosis.attendant import Attendant
from numaproof.conformance.diagnosis.opinion import Opinion
from numaproof.conformance.diagnosis.program import GaveUp, NoAnswer, Program
from numaproof.conformance.execution.capabilities import Capabilities, NotSupportedError
from numaproof.conformance.execution.implementation import SpoiledState, hello_args
from numaproof.conformance.execution.session import Session
from numaproof.conformance.judging.invariant_checker import InvariantChecker
from numaproof.folders.state_directory import StateDirectory
from numaproof.protocol import messages
from numaproof.protocol.diagnosis import Diagnosis
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numaproof.conformance.diagnosis.program import Moment
    from numaproof.protocol.messages import Level

_TRACE = re.compile(r'"trace":\s*"(?:\\.|[^"\\])*"')
_TREE = "laptop-4c8t"


def examine(command: tuple[str, ...], timeout: float, harness: str, scratch: Path) -> Diagnosis:
    """What is wrong with a program.

    Args:
        command: the program and its arguments.
        timeout: seconds that one answer may take.
        harness: how the harness introduces itself.
        scratch: an empty folder.

    Raises:
        CannotStartError: there is no such program.
    """
    began = time.monotonic()
    temporary = scratch / "tmp"
    temporary.mkdir()
    program = Program(command, timeout, temporary)
    examination = Examination(program, harness, scratch)
    examination.run()
    exchanges = [moment.exchange(at) for at, moment in enumerate(program.moments, 1)]
    findings = [one for exchange in exchanges for one in exchange.findings]
    steps = prescription.next_steps(
        shlex.join(command), exchanges, examination.hello, examination.agreed
    )
    return Diagnosis(
        command=shlex.join(command),
        name=examination.hello.name if examination.hello else "",
        healthy=all(one.advice for one in findings),
        seconds=round(time.monotonic() - began, 3),
        exchanges=tuple(exchanges),
        not_claimed=examination.not_claimed(),
        next_steps=tuple(map(str, steps)),
        next_findings=tuple(None if isinstance(one, str) else one for one in steps),
    )


class Examination:
    """One dialogue with a program.

    Args:
        program: what is examined.
        harness: how the harness introduces itself.
        scratch: an empty folder for state directories and a machine's tree.

    Attributes:
        hello: what the program claims; None if it did not say.
        opinion: what the documents say to the same requests; None before the program has said
            what it claims.
    """

    def __init__(self, program: Program, harness: str, scratch: Path) -> None:
        self._program = program
        self._harness = harness
        self._scratch = scratch
        self.hello: messages.Hello | None = None
        self.opinion: Opinion | None = None

    def run(self) -> None:
        """Has the whole dialogue, or as much of it as the program takes part in.

        Raises:
            CannotStartError: there is no such program.
        """
        try:
            self._talk()
        except GaveUp:
            pass
        finally:
            self._program.close()
            self._program.look_around()

    @property
    def agreed(self) -> frozenset[Level]:
        """The levels above `invariants` at which all answers were as documented."""
        return frozenset(self.opinion.agreed) if self.opinion else frozenset()

    def not_claimed(self) -> tuple[str, ...]:
        """The operations that `hello` does not claim."""
        claimed = self.hello.operations if self.hello else OPERATIONS
        return tuple(name for name in OPERATIONS if name not in {*claimed, "hello"})

    def _talk(self) -> None:
        self._greet("the harness introduces itself")
        if self.hello is None:
            return
        policies = dialogue.Chosen.of(self.hello)
        release = next((one for one in reversed(RELEASES) if one in self.hello.kubernetes), NEWEST)
        self.opinion = Opinion(self._program, self.hello, _made(self._scratch / "documents"))
        # Each of these begins with a start of its own, or has none; no state is asked for without.
        self._play(self._player("refused", release), dialogue.refused(policies))
        node = self._player("node", release)
        self._play(node, dialogue.arrivals(policies))
        if node.session.started is not None:
            self._greet("the harness may say hello at any time; nothing changes")
        self._play(node, dialogue.departures(policies))
        if (
            node.session.started is not None
            and "feature restart" in node.session.capabilities.claims
        ):
            self._program.close()
            self._greet("a new process")
            self._play(node, dialogue.again(policies))
        for another in (
            *claimed.nodes(self.hello, policies, release),
            *later.nodes(self.hello, policies),
        ):
            player = self._player(another, release)
            if another.inherits:
                player.session.pods.update(node.session.pods)
            self._play(player, another.lines)
        self._after_refusal(release)
        self._play(self._player("alone", release), dialogue.alone(policies))

    def _greet(self, about: str) -> None:
        self._program.about = about
        try:
            hello = self._program.call("hello", hello_args(self._harness))
        except GaveUp:
            raise
        except NoAnswer:
            return
        moment = self._program.moments[-1]
        match hello:
            case messages.Hello():
                if self.hello is None:
                    self.hello = hello
                    greeting.check(hello, moment)
                elif hello != self.hello:
                    moment.wrong("this `hello` differs from the first", "always claim the same")
            case messages.Fault():
                moment.wrong(f"`hello` ended in a fault: {hello.message}", log=hello.trace)
            case _:
                moment.wrong("`hello` must be answered with `ok`", "say who you are")

    def _after_refusal(self, release: str) -> None:
        """A start that is refused leaves no node, not even the one before it."""
        assert self.hello is not None
        player = self._player("no-node", release)
        lines = dialogue.refused(dialogue.Chosen.of(self.hello))
        self._play(player, lines)
        moment = self._program.moments[-1]
        if not isinstance(moment.answer, messages.StartRefused) or not (
            player.session.capabilities.has("state")
        ):
            return
        self._program.about = "the start was refused: there is no node"
        with suppress(NoAnswer):
            answer = self._program.call("state", messages.NoArgs())
            moment = self._program.moments[-1]
            # Where a fault is right, nobody needs to know where it came from.
            moment.response = _TRACE.sub('"trace":"..."', moment.response)
            if not isinstance(answer, messages.Fault):
                moment.wrong(
                    "the start before this was refused, and the answer is no `fault`",
                    '`{"fault": {"message": "not started"}}`; forget the earlier node',
                )

    def _player(self, node: str | claimed.ClaimedNode, release: str) -> Attendant:
        """A player with a state directory of its own; nothing has started.

        A node that is but a name is like the first.
        """
        assert self.hello is not None
        assert self.opinion is not None
        hello, policies = self.hello, dialogue.Chosen.of(self.hello)
        if isinstance(node, str):
            node = claimed.ClaimedNode(node, ())
        facts = Facts(node.machine)
        session = Session(
            implementation=self.opinion,
            capabilities=Capabilities(hello, release),
            state_dir=self._state(node.name),
            kubernetes=release,
            machine=node.machine,
            level=hello.level,
            root=self._tree,
            tell=node.tell,
        )
        checker = InvariantChecker(hello.level)
        case = dialogue.case_of(node.config or policies.config(), node.preferred)
        return Attendant(case, session, facts, hello.level, checker)

    def _state(self, name: str) -> StateDirectory:
        """A state directory, which several nodes may share."""
        folder = self._scratch / name
        return StateDirectory(folder) if folder.exists() else StateDirectory.made(folder)

    def _tree(self) -> Path:
        folder = self._scratch / "tree"
        if not folder.exists():
            fakesys.write_directory(fakesys.build_tree(fakesys.load_profile(_TREE)), folder)
        return folder

    def _play(self, player: Attendant, steps: Iterable[dialogue.Line]) -> None:
        """Plays steps; one that fails does not keep the next ones from being played."""
        for line in steps:
            self._program.about = line.about
            player.readmits = line.readmits
            said, called = len(self._program.moments), len(player.session.calls)
            try:
                player.step(line.step)
            except NotSupportedError:
                self._unsupported(self._program.moments[said:])
            except GaveUp:
                self._judged(player, said, called)
                raise
            except NoAnswer:
                pass
            except SpoiledState as spoiled:
                self._program.moments[-1].wrong(str(spoiled), "leave the directory where it is")
            self._judged(player, said, called)

    def _unsupported(self, moments: list[Moment]) -> None:
        for moment in moments:
            if isinstance(moment.answer, messages.Unsupported):
                greeting.unsupported(moment)

    def _judged(self, player: Attendant, said: int, called: int) -> None:
        """Notes at each exchange since then what the invariants have found about its call."""
        moments = self._program.moments[said:]
        cause = ""
        for at, (moment, call) in enumerate(
            zip(moments, player.session.calls[called:], strict=False), said + 1
        ):
            # A fault is one finding, which it has already.
            fault = isinstance(moment.answer, messages.Fault)
            for problem in () if fault else call.problems:
                after = cause if moment.step == "state" else ""
                moment.found(problem, after=after)
            cause = f"{moment.step} ({at})"


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder
