"""What the documents say to the requests that a program is asked.

Whether a pod is admitted is not a matter of taste, at any level: the few pods of the dialogue fit,
or they do not. What else is compared depends on the level that the program claims.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.claims import command_line
from numaproof.conformance.diagnosis import told
from numaproof.conformance.judging.entitlement import exclusive_counts, is_static, pod_resources
from numaproof.conformance.judging.oracle import disagreement, without_path
from numaproof.conformance.judging.pods import read
from numaproof.inputs.plurals import counted, numbered
from numaproof.protocol import messages
from numaproof.protocol.discovery import discovers
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import NEWEST
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from numaproof.conformance.diagnosis.program import Moment, Program
    from numaproof.protocol.messages import Level

_EXACT: Level = "placement"
"""The highest level that the dialogue says anything about."""


_REASONS = ("UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError")
"""Why an admission may be refused."""


class Opinion:
    """Asks the program and the reference the same; an `Implementation`.

    Args:
        program: what is examined.
        hello: what it claims.
        state_dir: an empty folder for the reference, with a folder for each state directory.

    Attributes:
        agreed: the levels at which no answer differed so far.
    """

    def __init__(self, program: Program, hello: messages.Hello, state_dir: Path) -> None:
        self._program = program
        self._hello = hello
        self._documents = state_dir
        self._state_dir = state_dir
        self._reference = Reference(documented=hello.level != LEVELS[-1])
        self._start: messages.StartArgs | None = None
        self._started: messages.Started | None = None
        self._parted = False
        self.agreed: set[Level] = {"admission", _EXACT}

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The program's answer.

        Raises:
            CannotStartError: there is no such program.
            NoAnswer: it gave none that could be used.
        """
        asked = args
        if isinstance(args, messages.StartArgs):
            self._begin(Path(args.state_dir).name)
            asked = msgspec.structs.replace(args, state_dir=str(self._state_dir))
            config = command_line.in_force(args.config, args.flags, args.kubernetes or NEWEST)
            self._start = msgspec.structs.replace(args, config=config)
            self._started = None
        expected = without_path(self._reference.call(operation, asked), self._state_dir)
        answer = self._program.call(operation, args)
        moment = self._program.moments[-1]
        if isinstance(answer, messages.Fault):
            moment.wrong(
                f"the answer is a fault: {answer.message[:200]}",
                "a fault says that the program broke; a deliberate no is `refused`",
                log=answer.trace,
            )
            self._parted = True
        elif not isinstance(answer, messages.Unsupported):
            told.look(moment, args, answer, self._start)
            self._compare(moment, args, self._normal(answer), expected)
        if isinstance(answer, messages.Started):
            self._started = answer
        if isinstance(answer, messages.AdmissionRefused) and self._hello.level == LEVELS[0]:
            _look_at_reason(moment, answer.reason)
        if isinstance(answer, messages.State):
            self._look_at_pool(moment, answer)
        if isinstance(answer, messages.Admitted) and isinstance(args, messages.AdmitArgs):
            self._look_at(moment, args.pod, answer)
        return answer

    def close(self) -> None:
        """Ends the program."""
        self._program.close()

    def _begin(self, name: str) -> None:
        """A start in another state directory begins anew, whatever went wrong before."""
        if self._state_dir != self._documents / name:
            self._state_dir = self._documents / name
            self._state_dir.mkdir(exist_ok=True)
            self._parted = False

    def _normal(self, answer: messages.Answer) -> messages.Answer:
        return without_path(answer, Path(self._start.state_dir)) if self._start else answer

    def _compare(
        self,
        moment: Moment,
        args: messages.Args,
        answer: messages.Answer,
        expected: messages.Answer,
    ) -> None:
        if self._parted:
            return
        refusal = (messages.StartRefused, messages.AdmissionRefused)
        if isinstance(answer, refusal) != isinstance(expected, refusal):
            self._parted = True
            self.agreed.clear()
            moment.wrong(*_wrong_kind(answer, expected))
            return
        told.compare(moment, answer, expected, exact=self._hello.level == LEVELS[-1])
        if isinstance(answer, messages.Admitted):
            told.look_at_preferred(moment, answer, expected, self._start)
        answer, expected = told.without(answer), told.without(expected)
        for level in sorted(self.agreed):
            found = disagreement(args, answer, expected, level, discovers(self._hello))
            if found is None:
                continue
            self.agreed.discard(level)
            if applies(level, self._hello.level):
                claim = f"level {level} is claimed, and the documents say otherwise: "
                found = replace(found, source="documents")
                right = "answer as documented, or claim a lower level"
                moment.found(found, right, before=claim)

    def _look_at_pool(self, moment: Moment, state: messages.State) -> None:
        """Notes a shared pool where nothing is pinned, which no level below placement compares."""
        if self._start is not None and not is_static(self._start.config) and state.shared:
            moment.wrong(
                f"under CPU policy none `shared` is {state.shared}, and nothing is pinned",
                '`"shared": ""`, and `""` for the `cpus` of each container',
                advice=not applies(_EXACT, self._hello.level),
            )

    def _look_at(self, moment: Moment, pod: messages.Pod, answer: messages.Admitted) -> None:
        """Notes what is wrong with an admission by itself, where no state will show it."""
        spec = pod["spec"]
        names = [one["name"] for one in (*spec.get("initContainers", ()), *spec["containers"])]
        missing = [name for name in names if name not in answer.containers]
        if missing:
            listed = ", ".join(f"`{name}`" for name in missing)
            moment.wrong(
                f"`containers` lacks {listed}", "name every init and app container of the pod"
            )
        if "state" in self._hello.operations or self._start is None or self._started is None:
            return
        config = self._start.config
        whole = pod_resources(config, self._start.kubernetes or self._hello.kubernetes[-1])
        due = exclusive_counts(read(pod, whole)) if is_static(config) else {}
        cpus = self._started.cpus
        for name, container in answer.containers.items():
            if name in due and len(container.exclusive) != due[name]:
                moment.wrong(
                    f"`{name}` has {counted('exclusive CPU', container.exclusive)};"
                    f" it is due {due[name]}"
                )
            beyond = container.exclusive - cpus.allocatable
            if beyond:
                what = "reserved" if beyond.issubset(cpus.all) else "not on the machine"
                moment.wrong(f"`{name}` has exclusive {numbered('CPU', beyond)}, {what}")


def _look_at_reason(moment: Moment, reason: str) -> None:
    """Notes a reason that no document has; higher levels compare it."""
    if reason not in _REASONS:
        moment.wrong(
            f"no document has the reason {reason!r}" if reason else "the reason is empty",
            f"one of {', '.join(f'`{one}`' for one in _REASONS)}; from level admission on it is"
            " compared",
            advice=True,
        )


def _wrong_kind(answer: messages.Answer, expected: messages.Answer) -> tuple[str, str]:
    match expected:
        case messages.StartRefused():
            return (
                "this start must be refused",
                f'`{{"refused": {{"stage": "{expected.stage}", "message": "..."}}}}`',
            )
        case messages.AdmissionRefused():
            return (
                "this must be refused",
                f'`{{"refused": {{"reason": "{expected.reason}", "message": "..."}}}}`',
            )
        case _:
            assert isinstance(answer, messages.StartRefused | messages.AdmissionRefused)
            return f"this must not be refused: {answer.message[:200]}", "answer with `ok`"
