"""Implementations as the harness plays cases against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.execution.implementation import handshake
from numaproof.conformance.execution.run import Target, reference, usual

if TYPE_CHECKING:
    from numaproof.conformance.execution.implementation import Implementation
    from numaproof.protocol.events import JudgedAs
    from numaproof.protocol.messages import Level


def target_of(
    implementation: Implementation,
    *,
    kubernetes: str = "1.35",
    level: Level | None = None,
    oracle: bool = False,
    command: tuple[str, ...] = (),
    judged_as: JudgedAs | None = None,
    **hello: Any,
) -> Target:
    """A target made of an implementation, with some of its claims replaced.

    Args:
        implementation: what answers.
        kubernetes: the release that it is tested as.
        level: what it is compared at; what it claims, if None.
        oracle: whether it is compared with the reference.
        command: what started it.
        judged_as: what is right where kubelets contradict their documents; by its claims, if None.
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
        judged_as=judged_as or usual(claims),
    )
