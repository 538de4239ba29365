"""The examination of a program: the dialogue played, every exchange judged."""

from __future__ import annotations

import re
import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.diagnosis import judgement, prescription
from numaproof.conformance.diagnosis.dialogue import claimed_cases
from numaproof.conformance.diagnosis.judgement import DoctorsPlayer, Judgement
from numaproof.conformance.diagnosis.program import GaveUp, NoAnswer, Program
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.execution.implementation import SpoiledState, hello_args
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, Target, reference, usual
from numaproof.protocol import messages
from numaproof.protocol.diagnosis import Diagnosis
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.diagnosis.dialogue import DialogueCase

_TRACE = re.compile(r'"trace":\s*"(?:\\.|[^"\\])*"')
_DISCOVERED = "laptop-4c8t"
"""The machine whose tree is discovered."""

_GREETINGS = {
    "hello": "the harness may say hello at any time; nothing changes",
    "process": "a new process",
}


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
    examination = _Examination(program, harness, scratch)
    try:
        with suppress(GaveUp):
            examination.talk()
    finally:
        program.close()
        program.look_around()
    hello = examination.hello
    exchanges = [moment.exchange(at) for at, moment in enumerate(program.moments, 1)]
    findings = [one for exchange in exchanges for one in exchange.findings]
    claimed = hello.operations if hello else OPERATIONS
    return Diagnosis(
        command=shlex.join(command),
        name=hello.name if hello else "",
        healthy=all(one.advice for one in findings),
        seconds=round(time.monotonic() - began, 3),
        exchanges=tuple(exchanges),
        not_claimed=tuple(name for name in OPERATIONS if name not in {*claimed, "hello"}),
        next_steps=prescription.next_steps(
            shlex.join(command), exchanges, hello, examination.agreed
        ),
    )


class _Examination:
    """One dialogue with a program.

    Args:
        program: what is examined.
        harness: how the harness introduces itself.
        scratch: an empty folder for state directories and a machine's tree.

    Attributes:
        hello: what the program claims; None if it did not say.
        agreed: the highest level at which no answer differed from the documents.
    """

    def __init__(self, program: Program, harness: str, scratch: Path) -> None:
        self._program = program
        self._harness = harness
        self._scratch = scratch
        profile = fakesys.load_profile(_DISCOVERED)
        self._tree = ProfileMachine(profile, scratch / "trees").tree
        self.hello: messages.Hello | None = None
        self.agreed = LEVELS[-1]

    def talk(self) -> None:
        """Has the whole dialogue, as far as the program takes part in it.

        Raises:
            CannotStartError: there is no such program.
            GaveUp: there is no use in asking more.
        """
        self._greet("the harness introduces itself")
        if self.hello is None:
            return
        known = [one for one in RELEASES if one in self.hello.kubernetes]
        target = Target(
            implementation=self._program,
            hello=self.hello,
            kubernetes=known[-1] if known else NEWEST,
            level=self.hello.level,
            oracle=reference,
            judged_as=usual(self.hello),
        )
        played: dict[str, DoctorsPlayer] = {}
        for case in claimed_cases(target.capabilities):
            machine = case.machine or MachineInfo()
            run = Run(target, case, machine, self._tree, self._scratch / case.id)
            player = played[case.id] = DoctorsPlayer.of(run.player)
            if case.after:
                player.session.pods.update(played[case.after].session.pods)
            self._play(player, case)
            if case.id == "no-node":
                self._ask_without_node(player)
            self.agreed = min(self.agreed, player.session.agreed, key=LEVELS.index)

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
                    judgement.judge_hello(hello, moment)
                elif hello != self.hello:
                    moment.wrong("this `hello` differs from the first", "always claim the same")
            case messages.Fault():
                moment.wrong(f"`hello` ended in a fault: {hello.message}", log=hello.trace)
            case _:
                moment.wrong("`hello` must be answered with `ok`", "say who you are")

    def _play(self, player: DoctorsPlayer, case: DialogueCase) -> None:
        """Plays a case; a step that fails does not keep the next ones from being played."""
        session = player.session
        judge = Judgement(session, self._program)
        session.oracle, session.silent = judge, None
        for step in case.steps:
            if step.before and session.started is None:
                continue
            if step.before == "process":
                self._program.close()
            if step.before:
                self._greet(_GREETINGS[step.before])
            self._program.about = step.about
            player.readmits = step.readmit
            said, called = len(self._program.moments), len(session.calls)
            try:
                player.step(step)
            except NotSupportedError:
                judgement.judge_unsupported(self._program.moments[said:])
            except SpoiledState as spoiled:
                self._program.moments[-1].wrong(str(spoiled), "leave the directory where it is")
            except GaveUp:
                raise
            except NoAnswer:
                judge.parted = True
            finally:
                moments = self._program.moments[said:]
                judgement.blame(moments, said + 1, session.calls[called:], player)

    def _ask_without_node(self, player: DoctorsPlayer) -> None:
        """A start that is refused leaves no node, not even the one before it."""
        answer = self._program.moments[-1].answer
        refused = isinstance(answer, messages.StartRefused)
        if not refused or not player.session.capabilities.has("state"):
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
