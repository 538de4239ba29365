"""How the harness calls an implementation: one interface, in process or as a program.

`InProcess` calls a Python object; `Subprocess` (in
`numaproof.conformance.execution.subprocesses`) speaks the protocol with a program.
Each way in which a program can fail is an `ImplementationFailure` with an outcome of its own, so it
is never mistaken for an answer.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from numaproof.conformance.claims.names import problems
from numaproof.conformance.judging.finding import Finding
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.protocol.events import Outcome
    from numaproof.workdir.state_directory import StateError


class ImplementationFailure(Exception):  # noqa: N818 - the run goes on; it is an outcome
    """An implementation failed to answer.

    Attributes:
        stderr: its standard error since the case began, of which the middle may be left out.
        after_answer: whether it failed after its last answer, before it read the next request.
        words: the message without what the program wrote instead of an answer.
        ending: the exit code or signal of a program that ended, in words.
        finding: what it left in its state directory, if that is why.
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
    """The program left something in its state directory that is no file of state."""

    outcome: Outcome = "fail"

    def __init__(self, error: StateError) -> None:
        super().__init__(str(error))
        self.finding = Finding("node", error.what, kind="statement", text=str(error))


class Implementation(Protocol):
    """What the harness calls. After a failure or a `close`, the next call starts it afresh."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The answer to one request.

        Raises:
            ImplementationFailure: there was no answer.
        """

    def close(self) -> None:
        """Ends it and leaves nothing behind."""


@runtime_checkable
class ProcessBacked(Protocol):
    """An implementation that may fail between two calls, or write a log: a program."""

    def begin(self) -> None:
        """Forgets what was logged: what follows belongs to another case."""

    def check_alive(self) -> None:
        """Makes sure that it is fit for another call.

        Raises:
            ImplementationFailure: it failed after its last answer.
        """

    def log(self) -> str:
        """Its standard error since `begin`, of which the middle may be left out."""

    @property
    def leftover_processes(self) -> tuple[str, ...]:
        """The processes that it has started and that could not be ended, by id and command line."""


class Answering(Protocol):
    """A Python object that answers calls, as `Reference` does."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The answer to one request."""


class InProcess:
    """An implementation in the same process; an exception in it is a fault.

    Sent to another process, it is made anew there.
    """

    def __init__(self, make: Callable[[], Answering]) -> None:
        self._make = make
        self._callee = make()

    def __reduce__(self) -> tuple[type[InProcess], tuple[Callable[[], Answering]]]:
        """What makes another one."""
        return InProcess, (self._make,)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The object's answer; a fault where it raises."""
        try:
            return self._callee.call(operation, args)
        except Exception as error:  # noqa: BLE001 - any exception is the object's fault
            self._callee = self._make()
            return messages.Fault(f"{type(error).__name__}: {error}", traceback.format_exc())

    @property
    def is_reference(self) -> bool:
        """Whether the object is the reference."""
        return isinstance(self._callee, Reference)

    def prefer_devices(self, devices: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Steers the reference to these devices, by container and resource, where any would do.

        Any other object chooses for itself.
        """
        if isinstance(self._callee, Reference):
            self._callee.prefer_devices(devices)

    def close(self) -> None:
        """Ends the object; the next call reaches a new one."""
        self._callee = self._make()


FROM_OUTSIDE = frozenset({"crash", "time-out"})
"""Outcomes that may come from outside, from whoever kills a program or stops it for a while."""


def hello_args(harness: str) -> messages.HelloArgs:
    """How the harness introduces itself."""
    return messages.HelloArgs((messages.PROTOCOL_VERSION, messages.PROTOCOL_VERSION), harness)


def handshake(implementation: Implementation, harness: str) -> messages.Hello:
    """Says hello to an implementation.

    Raises:
        ImplementationFailure: it did not answer, or not with a result, it speaks another version
            of the protocol, or it claims what does not exist.
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
            raise BrokeProtocol(f"it speaks protocol {answer.protocol}, the harness {own}")
        case messages.Fault():
            raise Crashed(f"hello ended in a fault: {answer.message}", answer.trace)
        case _:
            raise BrokeProtocol(f"hello was answered with {type(answer).__name__}")


def patient_handshake(implementation: Implementation, harness: str) -> messages.Hello:
    """Says hello, and once more where what went wrong may have come from outside.

    Raises:
        ImplementationFailure: as for `handshake`, the second time.
    """
    try:
        return handshake(implementation, harness)
    except ImplementationFailure as failure:
        if failure.outcome not in FROM_OUTSIDE:
            raise
        return handshake(implementation, harness)


def leftovers_of(implementation: Implementation) -> tuple[str, ...]:
    """The processes of an implementation that could not be ended, by id and command line."""
    return implementation.leftover_processes if isinstance(implementation, ProcessBacked) else ()
