"""Combines programs into one implementation; each is used for the releases that it claims.

A kubelet has a single release. Upgrading a node ends the running kubelet and starts the new release
with the existing state directory.
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
    """An implementation that starts a different program for each release.

    Starting a program ends the running one.

    Args:
        implementations: the programs. If several programs claim a release, the first one is used.
        harness: the harness's name in `hello`.

    Raises:
        ImplementationFailure: a program didn't answer `hello`.
    """

    def __init__(self, implementations: Sequence[Implementation], harness: str) -> None:
        """Sends `hello` to all programs."""
        greetings = [handshake(one, harness) for one in implementations]
        self._of_release: dict[str, Implementation] = {}
        for one, hello in zip(implementations, greetings, strict=True):
            for release in hello.kubernetes:
                self._of_release.setdefault(release, one)
        self._all = tuple(implementations)
        self._hello = reduce(_together, greetings)
        self._running = self._all[-1]

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer from the program for the call's release, or from the running program.

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
        """Clears the logs at the start of a case."""
        for one in self._all:
            if isinstance(one, ProcessBacked):
                one.begin()

    def check_alive(self) -> None:
        """Checks that the running program can handle another call.

        Raises:
            ImplementationFailure: it failed after its last answer.
        """
        if isinstance(self._running, ProcessBacked):
            self._running.check_alive()

    def log(self) -> str:
        """The standard error of the running program since `begin`."""
        return self._running.log() if isinstance(self._running, ProcessBacked) else ""

    @property
    def leftover_processes(self) -> tuple[str, ...]:
        """All processes, of any of the programs, that could not be killed."""
        return tuple(
            name
            for one in self._all
            if isinstance(one, ProcessBacked)
            for name in one.leftover_processes
        )

    def close(self) -> None:
        """Ends all programs."""
        for one in self._all:
            one.close()


def _together(first: messages.Hello, second: messages.Hello) -> messages.Hello:
    """Combines the claims of two programs, under the second one's name.

    Releases and options are combined, because each release has its own options. Other claims must
    be common to both.
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
    """The common features; None (they are implied) if neither program lists any."""
    if first.features is None and second.features is None:
        return None
    return common(claimed_features(second), claimed_features(first))


def _union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def common(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, ...]:
    """The items that are in both lists, in the order of the first list."""
    return tuple(one for one in ours if one in theirs)


def common_fields(ours: T, theirs: T) -> T:
    """A message whose lists contain only the items that are in both messages."""
    names = ours.__struct_fields__
    kept = {name: common(getattr(ours, name), getattr(theirs, name)) for name in names}
    return msgspec.structs.replace(ours, **kept)
