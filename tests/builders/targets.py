"""Implementations as the harness plays cases against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.execution.implementation import InProcess, handshake
from numaproof.conformance.execution.run import Target
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.protocol.messages import Level


def target_of(
    implementation: Implementation,
    *,
    kubernetes: str = "1.35",
    level: Level | None = None,
    oracle: bool = False,
    command: tuple[str, ...] = (),
    documented: bool = False,
    **hello: Any,
) -> Target:
    """A target made of an implementation, with some of its claims replaced.

    Args:
        implementation: what answers.
        kubernetes: the release that it is tested as.
        level: what it is compared at; what it claims, if None.
        oracle: whether it is compared with the reference.
        command: what started it.
        documented: whether it is compared with the documents, without any defects.
        hello: other claims.
    """
    claims = msgspec.structs.replace(handshake(implementation, "tests"), **hello)
    return Target(
        implementation,
        claims,
        kubernetes,
        level or claims.level,
        command=command,
        oracle=(lambda: InProcess(Reference)) if oracle else None,
        documented=documented,
    )
