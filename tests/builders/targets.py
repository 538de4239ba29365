"""Implementations as targets of the harness, and small cases."""

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
    """Parses a case from its steps."""
    body = textwrap.indent(textwrap.dedent(text).strip(), "  ")
    head = "cases:\n- id: test\n  title: A test\n  requirements: []\n"
    (case,) = loading.parse(head + body, "test.yaml")
    return case


class ChangedReference:
    """A reference with changed answers by operation, which can't be steered."""

    def __init__(self, **changes: Callable[[Any], Any]) -> None:
        self._reference = Reference()
        self._changes = changes

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the reference's changed answer."""
        answer = self._reference.call(operation, args)
        change = self._changes.get(operation)
        return change(answer) if change else answer

    def close(self) -> None:
        """Ignores preferred devices."""


class ProcessBacked:
    """The methods of a program apart from calls, for one that never fails and logs nothing."""

    leftover_processes: tuple[str, ...] = ()

    def begin(self) -> None:
        """Does nothing."""

    def check_alive(self) -> None:
        """Returns that the program can be used."""

    def log(self) -> str:
        """Returns no log."""
        return ""


def changed_reference(**changes: Callable[[Any], Any]) -> InProcess:
    """The same, restarted when it is closed."""
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
    """Creates a target from an implementation, optionally with other claims.

    Args:
        implementation: the implementation.
        kubernetes: the release to test.
        level: the level of comparison; None for the claimed one.
        oracle: whether to compare with the reference.
        command: the command that started it.
        baseline: what is right for named defects; None to derive it from the claims.
        hello: claims to replace.
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
