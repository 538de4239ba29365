"""The interface between the harness and an implementation.

`InProcess` calls a Python object; `Subprocess` (in `numaproof.conformance.execution.subprocesses`)
speaks the protocol with a program. Every kind of program failure is an `ImplementationFailure` with
its own outcome, so that a failure is never mistaken for an answer.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from numaproof.conformance.claims.names import problems
from numaproof.conformance.judging.finding import Finding
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.events import Outcome
    from numaproof.reference.choices import Choices
    from numaproof.workdir.state_directory import StateError


class ImplementationFailure(Exception):  # noqa: N818 - the run goes on; it is an outcome
    """An implementation failed to answer.

    Attributes:
        stderr: its standard error since the case began, possibly shortened in the middle.
        after_answer: whether it failed after its last answer, before it read the next request.
        words: the message, excluding the program's own output.
        ending: a description of the exit code or signal if the program ended.
        finding: the problem with its state directory, if there is one.
    """

    outcome: Outcome = "crash"
    finding: Finding | None = None

    def __init__(
        self,
        message: str,
        stderr: str = "",
        *,
        after_answer: bool = False,
        words: str = "",
        ending: str = "",
    ) -> None:
        super().__init__(message)
        self.stderr = stderr
        self.after_answer = after_answer
        self.words = words or message
        self.ending = ending


class Crashed(ImplementationFailure):
    """The program ended, or could not be started."""


class CannotStartError(Crashed):
    """The program does not exist or cannot be run."""


class TimedOut(ImplementationFailure):
    """The program did not answer in time."""

    outcome: Outcome = "time-out"


class BrokeProtocol(ImplementationFailure):
    """The program wrote something other than the answer to the request."""

    outcome: Outcome = "protocol error"


class SpoiledState(ImplementationFailure):
    """The program left something other than state files in its state directory."""

    outcome: Outcome = "fail"

    def __init__(self, error: StateError) -> None:
        super().__init__(str(error))
        self.finding = Finding("node", error.what, kind="statement", text=str(error))


class Implementation(Protocol):
    """The interface that the harness calls.

    After a failure or `close`, the next call starts the implementation again.
    """

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer to a request.

        Raises:
            ImplementationFailure: there was no answer.
        """

    def close(self) -> None:
        """Ends the implementation and cleans up."""


@runtime_checkable
class ProcessBacked(Protocol):
    """An implementation that is a program: it can fail between calls and write a log."""

    def begin(self) -> None:
        """Clears the log at the start of a case."""

    def check_alive(self) -> None:
        """Checks that the program can handle another call.

        Raises:
            ImplementationFailure: it failed after its last answer.
        """

    def log(self) -> str:
        """Its standard error since `begin`, possibly shortened in the middle."""

    @property
    def leftover_processes(self) -> tuple[str, ...]:
        """The processes that it started and that could not be killed, by id and command line."""


class Answering(Protocol):
    """A Python object that answers calls, such as `Reference`."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer to a request."""


class InProcess:
    """An implementation in this process; exceptions become faults.

    Pickling sends only the factory, so another process creates its own object.
    """

    def __init__(self, make: Callable[[], Answering]) -> None:
        self._make = make
        self._callee = make()

    def __reduce__(self) -> tuple[type[InProcess], tuple[Callable[[], Answering]]]:
        """Pickles the factory."""
        return InProcess, (self._make,)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the object's answer, or a fault if the object raises an exception."""
        try:
            return self._callee.call(operation, args)
        except Exception as error:  # noqa: BLE001 - any exception is the object's fault
            self._callee = self._make()
            return messages.Fault(f"{type(error).__name__}: {error}", traceback.format_exc())

    @property
    def is_reference(self) -> bool:
        """Whether the object is the reference."""
        return isinstance(self._callee, Reference)

    def prefer(self, choices: Choices) -> None:
        """Sets the choices that the reference makes; has no effect on other objects."""
        if isinstance(self._callee, Reference):
            self._callee.prefer(choices)

    def close(self) -> None:
        """Replaces the object with a new one."""
        self._callee = self._make()


FROM_OUTSIDE = frozenset({"crash", "time-out"})
"""Outcomes that may have external causes, such as somebody killing or suspending the program."""


def hello_args(harness: str) -> messages.HelloArgs:
    """The arguments of `hello`."""
    return messages.HelloArgs((messages.PROTOCOL_VERSION, messages.PROTOCOL_VERSION), harness)


def handshake(implementation: Implementation, harness: str) -> messages.Hello:
    """Sends `hello` to an implementation and checks the answer.

    Raises:
        ImplementationFailure: there was no valid answer, the protocol versions differ, or a claim
            is unknown.
    """
    answer = implementation.call("hello", hello_args(harness))
    match answer:
        case messages.Hello(protocol=messages.PROTOCOL_VERSION):
            wrong = "; ".join(problems(answer))
            if wrong:
                raise BrokeProtocol(f"hello: {wrong}")
            return answer
        case messages.Hello():
            own = messages.PROTOCOL_VERSION
            raise BrokeProtocol(
                f"it speaks protocol {answer.protocol}, but the harness speaks {own}"
            )
        case messages.Fault():
            raise Crashed(f"hello ended in a fault: {answer.message}", answer.trace)
        case _:
            raise BrokeProtocol(f"hello was answered with {type(answer).__name__}")


def patient_handshake(implementation: Implementation, harness: str) -> messages.Hello:
    """Sends `hello`, and retries once if a failure may have external causes.

    Raises:
        ImplementationFailure: the second attempt failed; see `handshake`.
    """
    try:
        return handshake(implementation, harness)
    except ImplementationFailure as failure:
        if failure.outcome not in FROM_OUTSIDE:
            raise
        return handshake(implementation, harness)


def leftovers_of(implementation: Implementation) -> tuple[str, ...]:
    """An implementation's processes that could not be killed, by id and command line."""
    return implementation.leftover_processes if isinstance(implementation, ProcessBacked) else ()
