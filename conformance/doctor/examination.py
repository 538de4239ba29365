"""Examines a program: plays the dialogue, judges the exchanges and suggests next steps."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from numaproof import fakesys
from numaproof.conformance.doctor.dialogue import DialogueCase, claimed_cases
from numaproof.conformance.doctor.judgement import DoctorsPlayer, Judgement, blame, judge_hello
from numaproof.conformance.doctor.program import NoAnswer, ProbeAborted, Program
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run, Target, default_baseline, reference
from numaproof.inputs.plurals import plural
from numaproof.inputs.shell_words import quote_words
from numaproof.protocol import messages
from numaproof.protocol.diagnosis import Diagnosis, Exchange
from numaproof.protocol.events import Sentence, headline
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def next_steps(
    command: str,
    exchanges: Sequence[Exchange],
    hello: messages.Hello | None,
    agreed_level: messages.Level,
) -> tuple[Sentence, ...]:
    """What to do next, most urgent first; `agreed_level` is one at which all answers agree."""
    wrong = _wrong(exchanges)
    if wrong:
        return (*wrong, f"run it again: numaproof doctor {_shell_quote(command)}")
    return (*_ready(command, hello), *_claimable(hello, agreed_level))


def _wrong(exchanges: Sequence[Exchange]) -> list[Sentence]:
    """All problems in order, each listed once, at its first exchange."""
    counts = Counter(
        finding.cause for one in exchanges for finding in one.findings if not finding.advice
    )
    found: dict[str, Sentence] = {}
    for one in exchanges:
        for finding in one.findings:
            if finding.advice or finding.cause in found:
                continue
            more = counts[finding.cause] - 1
            again = f" (and {plural(more, 'more time')})" if more else ""
            right = f" → {finding.right}" if finding.right else ""
            shown = f"shown by {one.step} ({one.number}), after {finding.after}"
            where = shown if finding.after else f"{one.step} ({one.number})"
            lines = finding.log.strip().splitlines()
            said = f"; its standard error ends with: {lines[-1].strip()[:200]}" if lines else ""
            what = f"{where}: {headline(finding.sentence)}{said}{again}{right}"
            sides = finding.sentence
            found[finding.cause] = what if isinstance(sides, str) else replace(sides, what=what)
    return list(found.values())


def _ready(command: str, hello: messages.Hello | None) -> Iterator[str]:
    given = f"--implementation {_shell_quote(command)}"
    operations = hello.operations if hello else ()
    yield f"run all cases: numaproof check {given}"
    if "start" in operations:
        yield f"generate node lifetimes: numaproof fuzz {given} --max-time 5m"
    elif "merge" in operations or "assign" in operations:
        yield f"generate calls: numaproof fuzz {given} --max-time 5m"
    else:
        yield f"generate machines: numaproof diff --kind tree --right {_shell_quote(command)}"


def _shell_quote(command: str) -> str:
    """Quotes the command as a single shell word, preferably in double quotes."""
    plain = command.isprintable() and not set(command) & set('"$`\\!')
    return f'"{command}"' if plain else quote_words((command,))


def _claimable(hello: messages.Hello | None, agreed_level: messages.Level) -> tuple[str, ...]:
    """Suggests the next level if all answers agree at that level."""
    if hello is None or hello.level not in messages.LEVELS[:2] or "start" not in hello.operations:
        return ()
    level = messages.LEVELS[messages.LEVELS.index(hello.level) + 1]
    if messages.LEVELS.index(agreed_level) < messages.LEVELS.index(level):
        return ()
    claim = f'try `"level": "{level}"` in `hello`, and run it again'
    return (f"every answer here matches the documentation: {claim}",)


_CHANGING = frozenset({"start", "admit", "resize", "remove", "devices"})

_GREETINGS = {
    "hello": "the harness may send `hello` at any time; nothing changes",
    "process": "a new process",
}


def examine(command: tuple[str, ...], timeout: float, harness: str, scratch: Path) -> Diagnosis:
    """Examines a program.

    Args:
        command: the program and its arguments.
        timeout: the time limit for an answer, in seconds.
        harness: the harness's name in `hello`.
        scratch: an empty folder.

    Raises:
        CannotStartError: the program can't be started.
    """
    began = time.monotonic()
    temporary = scratch / "tmp"
    temporary.mkdir()
    program = Program(command, timeout, temporary)
    examination = _Examination(program, harness, scratch)
    try:
        with suppress(ProbeAborted):
            examination.talk()
    finally:
        program.close()
        program.look_around()
    hello = examination.hello
    exchanges = [moment.exchange(at) for at, moment in enumerate(program.moments, 1)]
    findings = [one for exchange in exchanges for one in exchange.findings]
    claimed = hello.operations if hello else OPERATIONS
    words = shlex.join(command)
    steps = next_steps(words, exchanges, hello, examination.agreed_level)
    return Diagnosis(
        command=words,
        name=hello.name if hello else "",
        healthy=all(one.advice for one in findings),
        seconds=round(time.monotonic() - began, 3),
        exchanges=tuple(exchanges),
        not_claimed=tuple(name for name in OPERATIONS if name not in {*claimed, "hello"}),
        next_steps=tuple(map(str, steps)),
        next_findings=tuple(None if isinstance(one, str) else one for one in steps),
    )


@dataclass
class _Examination:
    """A dialogue with a program.

    Attributes:
        program: the program under examination.
        harness: the harness's name in `hello`.
        scratch: an empty folder for state directories and the machine's tree.
        hello: the program's claims; None if unknown.
        agreed_level: the highest level at which all answers so far agree with the documentation.
    """

    program: Program
    harness: str
    scratch: Path
    hello: messages.Hello | None = None
    agreed_level: messages.Level = messages.LEVELS[-1]

    def talk(self) -> None:
        """Plays the dialogue as far as possible.

        Raises:
            CannotStartError: the program can't be started.
            ProbeAborted: the examination can't continue.
        """
        self._say_hello("the harness introduces itself")
        if self.hello is None:
            return
        known = [one for one in RELEASES if one in self.hello.kubernetes]
        target = Target(
            implementation=self.program,
            hello=self.hello,
            kubernetes=known[-1] if known else NEWEST,
            level=self.hello.level,
            oracle=reference,
            baseline=default_baseline(self.hello),
        )
        profile = fakesys.load_profile("laptop-4c8t")
        tree = ProfileMachine(profile, self.scratch / "trees").tree
        played: dict[str, DoctorsPlayer] = {}
        for case in claimed_cases(target.capabilities):
            assert case.machine is not None
            run = Run(target, case, case.machine, tree, self.scratch / case.id)
            player = played[case.id] = DoctorsPlayer.of(run.player)
            player.session.root = tree.directory
            if case.after:
                player.session.pods.update(played[case.after].session.pods)
            self._play(player, case)
            if case.id == "no-node":
                self._ask_without_node(player)
            self.agreed_level = min(
                self.agreed_level, player.session.agreed_level, key=messages.LEVELS.index
            )

    def _say_hello(self, about: str, *, new_process: bool = False) -> None:
        if new_process:
            self.program.close()
        self.program.about = about
        try:
            hello = self.program.call("hello", hello_args(self.harness))
        except NoAnswer:
            return
        moment = self.program.moments[-1]
        match hello:
            case messages.Hello():
                self.hello = self.hello or hello
                judge_hello(hello, self.hello, moment)
            case messages.Fault():
                moment.note("hello-fault", message=hello.message, log=hello.trace)
            case _:
                moment.note("hello-not-ok")

    def _play(self, player: DoctorsPlayer, case: DialogueCase) -> None:
        """Plays a case and continues after failing steps."""
        session = player.session
        judge = Judgement(session, self.program)
        session.oracle, session.shadow_oracle = judge, None
        for step in case.steps:
            if step.before and session.start_answer is None:
                continue
            if step.before:
                self._say_hello(_GREETINGS[step.before], new_process=step.before == "process")
            self.program.about = step.about
            player.readmits = step.readmit
            said, called = len(self.program.moments), len(session.calls)
            try:
                player.step(step)
            except NotSupportedError:
                for moment in self.program.moments[said:]:
                    if isinstance(moment.answer, messages.Unsupported):
                        moment.note("unsupported", operation=moment.step)
            except NoAnswer:
                judge.has_diverged = True
                # From here on, the pods on the node are unknown.
                player.out_of_step |= self.program.moments[-1].step in _CHANGING
            finally:
                moments = self.program.moments[said:]
                blame(moments, said + 1, session.calls[called:], player)

    def _ask_without_node(self, player: DoctorsPlayer) -> None:
        """After a refused start, there is no node, not even the previous one."""
        refused = isinstance(self.program.moments[-1].answer, messages.StartRefused)
        if not refused or not player.session.capabilities.has("state"):
            return
        self.program.about = "the start was refused, so there is no node"
        with suppress(NoAnswer):
            if not isinstance(self.program.call("state", messages.NoArgs()), messages.Fault):
                self.program.moments[-1].note("node-after-refusal")
