"""Several programs as one implementation, each for the releases that it claims.

A kubelet is one release. When a node is upgraded, its kubelet ends and that of another release
starts on what it left in the state directory.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import msgspec

from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    Implementation,
    ProcessBacked,
    handshake,
)
from numaproof.protocol import discovery, messages
from numaproof.protocol.features import claimed_features

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


T = TypeVar("T", bound=msgspec.Struct)


class ByRelease:
    """An implementation whose starts choose, by their release, the program that runs.

    A start of another program ends the one that runs.

    Args:
        implementations: the programs; the first that claims a release answers for it.
        harness: how the harness introduces itself to them.

    Raises:
        ImplementationFailure: one did not answer `hello`.
    """

    def __init__(self, implementations: Sequence[Implementation], harness: str) -> None:
        """Greets them all; see the class."""
        greetings = [handshake(one, harness) for one in implementations]
        self._of_release: dict[str, Implementation] = {}
        for one, hello in zip(implementations, greetings, strict=True):
            for release in hello.kubernetes:
                self._of_release.setdefault(release, one)
        self._all = tuple(implementations)
        self._hello = reduce(_together, greetings)
        self._running = self._all[-1]

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The answer of the program for the release that a call names, else of the one that runs.

        Raises:
            ImplementationFailure: there was no answer.
        """
        if operation == "hello":
            return self._hello
        release = getattr(args, "kubernetes", None)
        if release is not None:
            called = self._of_release.get(release)
            if called is None:
                raise BrokeProtocol(f"no program claims Kubernetes {release}")
            if called is not self._running:
                self._running.close()
                self._running = called
        return self._running.call(operation, args)

    def begin(self) -> None:
        """Forgets what was logged: what follows belongs to another case."""
        for one in self._all:
            if isinstance(one, ProcessBacked):
                one.begin()

    def check_alive(self) -> None:
        """Makes sure that the program that runs is fit for another call.

        Raises:
            ImplementationFailure: it failed after its last answer.
        """
        if isinstance(self._running, ProcessBacked):
            self._running.check_alive()

    def log(self) -> str:
        """The standard error of the program that runs, since `begin`."""
        return self._running.log() if isinstance(self._running, ProcessBacked) else ""

    @property
    def leftover_processes(self) -> tuple[str, ...]:
        """The processes of any of them that could not be ended."""
        return tuple(
            name
            for one in self._all
            if isinstance(one, ProcessBacked)
            for name in one.leftover_processes
        )

    def close(self) -> None:
        """Ends them all."""
        for one in self._all:
            one.close()


def _together(first: messages.Hello, second: messages.Hello) -> messages.Hello:
    """What both claim, in the words of the second.

    Each release has options of its own: these add up.
    """
    return msgspec.structs.replace(
        second,
        kubernetes=_union(first.kubernetes, second.kubernetes),
        level=min(first.level, second.level, key=messages.LEVELS.index),
        operations=common(second.operations, first.operations),
        features=_features(first, second),
        discovers=discovery.common(first, second),
        policies=common_fields(second.policies, first.policies),
        options=type(second.options)(
            cpu=_union(first.options.cpu, second.options.cpu),
            topology=_union(first.options.topology, second.options.topology),
        ),
    )


def _features(first: messages.Hello, second: messages.Hello) -> tuple[str, ...] | None:
    """None, which leaves them to be assumed, if neither names any."""
    if first.features is None and second.features is None:
        return None
    return common(claimed_features(second), claimed_features(first))


def _union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def common(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, ...]:
    """What both lists have, in the order of ours."""
    return tuple(one for one in ours if one in theirs)


def common_fields(ours: T, theirs: T) -> T:
    """A message of lists with, in each, what both have."""
    names = ours.__struct_fields__
    kept = {name: common(getattr(ours, name), getattr(theirs, name)) for name in names}
    return msgspec.structs.replace(ours, **kept)
