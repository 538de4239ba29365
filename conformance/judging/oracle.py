"""The oracle: makes the same calls to the reference and compares the answers.

Where a kubelet may do one thing or another, the reference is steered the way the implementation
went, or the answers are compared in a form that is the same either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import msgspec

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging import discovered
from numaproof.conformance.judging.comparison import (
    any_gate,
    any_option,
    any_resource,
    difference,
)
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from numaproof.conformance.judging.finding import Finding


class SteeredImplementation(Protocol):
    """An implementation that can be steered: the reference in this process."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The answer to one request."""

    def favour(self, devices: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Says which devices to take where any would do, by container and resource."""


Meets = Callable[[messages.Answer, messages.State | None], bool]
"""Whether an answer, with the state after it, meets an expectation."""


class AnswerJudge(Protocol):
    """What a session asks about each answer."""

    @property
    def answer(self) -> messages.Answer | None:
        """The answer to the last call that would have been right."""

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How `answer` differs from the right one; None if it does not."""

    def alter(self, change: Callable[[Path], object]) -> None:
        """Changes a checkpoint by hand, given the state directory that it is in."""


@dataclass
class Oracle:
    """The reference, in a state directory of its own.

    It keeps in step with the implementation: a call that this does not support changes nothing
    here either. Once the reference itself does not support a call it is `silent`, for what it knows
    of the node is no longer so.

    Attributes:
        level: how much of the answers is compared.
        discovers: what is compared of a discovered machine; None for all of it.
        answer: its last answer; None before the first and where it made no call.
    """

    reference: SteeredImplementation
    state_dir: Path
    level: messages.Level
    discovers: Collection[str] | None = None
    silent: bool = False
    answer: messages.Answer | None = None

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How the reference's answer to a call differs from `answer`; None if it does not."""
        right = self.respond(operation, args, answer)
        if right is None:
            return None
        found = disagreement(args, answer, right, self.level, self.discovers)
        return replace(found, source="reference") if found else None

    def respond(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> messages.Answer | None:
        """The reference's answer to a call that was answered `answer`; None if it makes no call.

        A kubelet takes any of several equally good devices: the reference takes the same ones if
        it may.
        """
        self.answer = None
        if self.silent or isinstance(answer, messages.Unsupported):
            return None
        if isinstance(args, messages.StartArgs):
            args = msgspec.structs.replace(args, state_dir=str(self.state_dir))
        if isinstance(answer, messages.Admitted):
            self.reference.favour(
                {name: one.devices or {} for name, one in answer.containers.items()}
            )
        self.answer = without_path(self.reference.call(operation, args), self.state_dir)
        self.silent = operation in _CHANGES and isinstance(self.answer, messages.Unsupported)
        return self.answer

    def alter(self, change: Callable[[Path], object]) -> None:
        """Changes a checkpoint of its own."""
        change(self.state_dir)


_CHANGES = frozenset({"start", "admit", "remove", "devices"})
"""Operations that change the node."""


def disagreement(
    args: messages.Args,
    got: messages.Answer,
    expected: messages.Answer,
    level: messages.Level,
    discovers: Collection[str] | None = None,
) -> Finding | None:
    """How an answer to a call differs from the expected one; None if they agree.

    Of several refusals that a kubelet may give, any one is as good as another. Of discovered
    machines it is compared what `discovers` names; None stands for all.
    """
    if isinstance(got, MachineInfo) and isinstance(expected, MachineInfo) and discovers is not None:
        seen = discovered.difference(got, expected, discovers)
        return seen if applies("placement", level) else None
    if _has_several_options(args):
        got, expected = any_option(got), any_option(expected)
    if isinstance(args, messages.StartArgs) and _is_several(args.config.get("featureGates")):
        got, expected = any_gate(got), any_gate(expected)
    if _asks_for_several_devices(args):
        got, expected = any_resource(got), any_resource(expected)
    return difference(got, expected, level)


STATE_DIR = "$STATE_DIR"
"""Replaces the state directory in everything that is compared or shown."""


def without_path(answer: messages.Answer, state_dir: Path) -> messages.Answer:
    """An answer with the state directory written as `STATE_DIR`."""
    if isinstance(answer, messages.StartRefused):
        message = answer.message.replace(str(state_dir), STATE_DIR)
        return msgspec.structs.replace(answer, message=message)
    return answer


def _has_several_options(args: messages.Args) -> bool:
    match args:
        case messages.StartArgs():
            names = ("cpuManagerPolicyOptions", "topologyManagerPolicyOptions")
            return any(_is_several(args.config.get(name)) for name in names)
        case messages.AssignArgs():
            return _is_several(args.options)
        case _:
            return False


def _is_several(entries: object) -> bool:
    """Whether a field of a configuration, which may hold anything, is a map of several entries."""
    return isinstance(entries, dict) and len(entries) > 1


def _asks_for_several_devices(args: messages.Args) -> bool:
    if not isinstance(args, messages.AdmitArgs):
        return False
    return any(sum("/" in resource for resource in limits) > 1 for limits in _limits(args.pod))


def _limits(pod: messages.Pod) -> Iterator[Mapping[str, object]]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield (container.get("resources") or {}).get("limits") or {}
