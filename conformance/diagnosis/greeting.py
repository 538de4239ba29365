"""Whether the claims of ``hello`` are possible, and true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.claims.names import problems
from numaproof.protocol.messages import LEVELS, PROTOCOL_VERSION
from numaproof.protocol.operations import OPERATIONS
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from numaproof.conformance.diagnosis.program import Moment
    from numaproof.protocol import messages


def check(hello: messages.Hello, moment: Moment) -> None:
    """Notes what is wrong with the claims by themselves."""
    if hello.protocol != PROTOCOL_VERSION:
        moment.wrong(
            f"`protocol` is {hello.protocol}; the harness speaks {PROTOCOL_VERSION}",
            f'`"protocol": {PROTOCOL_VERSION}`',
        )
    for problem in problems(hello):
        moment.wrong(*_with_hint(problem))
    if not any(one in RELEASES for one in hello.kubernetes):
        moment.wrong(
            "`kubernetes` names no release that numaproof knows",
            f"one or more of {', '.join(RELEASES)}",
        )
    _operations(hello, moment)


def _operations(hello: messages.Hello, moment: Moment) -> None:
    claimed = set(hello.operations)
    if not claimed & OPERATIONS.keys() - {"hello"}:
        moment.wrong("`operations` names nothing to ask for", '`["start", "admit", "state"]`')
    needing = [name for name in hello.operations if name in OPERATIONS]
    needing = [name for name in needing if OPERATIONS[name].needs_start]
    if needing and "start" not in claimed:
        named = ", ".join(f"`{name}`" for name in needing)
        moment.wrong(f"{named} can't be asked for without `start`", "claim `start` too")
    if "start" in claimed and "state" not in claimed:
        level = "" if hello.level == LEVELS[0] else f" (level {hello.level} is claimed)"
        moment.wrong(
            f"without `state` most of what every implementation must keep is not checked{level}",
            "implement `state`: what each pod holds, and the shared pool",
            advice=True,
        )


def _with_hint(problem: str) -> tuple[str, str]:
    """A problem, and the part of its sentence that says what is right."""
    wrong, _, right = problem.partition("; ")
    return wrong, right


def unsupported(moment: Moment) -> None:
    """Notes an operation that is claimed and was answered ``unsupported``."""
    moment.wrong(
        f"`hello` claims this, and the answer to `{moment.step}` is `unsupported`",
        "implement it, or claim less: a smaller claim is never a failure",
    )
