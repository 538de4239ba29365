"""Implementations as the harness plays cases against them, and small cases."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import InProcess, handshake
from numaproof.conformance.execution.run import Target, default_baseline, reference
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.protocol import messages
    from numaproof.protocol.events import BaselineChoice
    from numaproof.protocol.messages import Level


def case_of(text: str) -> Case:
    """The case that a text of steps describes."""
    body = textwrap.indent(textwrap.dedent(text).strip(), "  ")
    head = "cases:\n- id: test\n  title: A test\n  requirements: []\n"
    (case,) = loading.parse(head + body, "test.yaml")
    return case


class ChangedReference:
    """The reference with some of its answers changed, by operation; it can't be steered."""

    def __init__(self, **changes: Callable[[Any], Any]) -> None:
        self._reference = Reference()
        self._changes = changes

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The reference's answer, changed."""
        answer = self._reference.call(operation, args)
        change = self._changes.get(operation)
        return change(answer) if change else answer

    def close(self) -> None:
        """Keeps everything."""


class ProcessBacked:
    """What programs have for the harness besides answers; this one never fails and says nothing."""

    leftover_processes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Has nothing to forget."""

    def check_alive(self) -> None:
        """Is always fit."""

    def log(self) -> str:
        """Nothing."""
        return ""


def changed_reference(**changes: Callable[[Any], Any]) -> InProcess:
    """The same, started afresh when it ends."""
    return InProcess(lambda: ChangedReference(**changes))


def target_of(
    implementation: Implementation,
    *,
    kubernetes: str = "1.35",
    level: Level | None = None,
    oracle: bool = False,
    command: tuple[str, ...] = (),
    baseline: BaselineChoice | None = None,
    **hello: Any,
) -> Target:
    """A target made of an implementation, with some of its claims replaced.

    Args:
        implementation: what answers.
        kubernetes: the release that it is tested as.
        level: what it is compared at; what it claims, if None.
        oracle: whether it is compared with the reference.
        command: what started it.
        baseline: what is right where kubelets contradict their documents; by its claims, if None.
        hello: other claims.
    """
    claims = msgspec.structs.replace(handshake(implementation, "tests"), **hello)
    return Target(
        implementation,
        claims,
        kubernetes,
        level or claims.level,
        command=command,
        oracle=reference if oracle else None,
        baseline=baseline or default_baseline(claims),
    )
