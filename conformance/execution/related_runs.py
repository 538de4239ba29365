"""Starts nodes that are related to the one of a run, and compares the outcomes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.claims import needs
from numaproof.conformance.judging.invariants.view import Violation
from numaproof.conformance.judging.related_nodes import related_nodes
from numaproof.protocol import codec, messages
from numaproof.workdir.scratch import make_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numaproof.conformance.execution.session import Call, Session
    from numaproof.conformance.judging.related_nodes import RelatedNode

SHARE = 8
"""One in this many runs is compared with a related node. A finding's case always is."""

_QUESTIONS = frozenset({"state", "hints", "reconcile"})
"""Operations that don't change a node."""


def broken_relation(session: Session, state_dir: Path, share: int = SHARE) -> Violation | None:
    """Compares the beginning of a session with a related node.

    Args:
        session: the session.
        state_dir: the directory to create for the related node's state.
        share: one in this many runs is compared.

    Raises:
        ImplementationFailure: there was no answer.
    """
    start, admissions = _beginning(session.calls)
    if start is None or not admissions:
        return None
    number = zlib.crc32(codec.encode((start.config, [pod for pod, _ in admissions])))
    if number % share:
        return None
    nodes = [one for one in related_nodes(start, admissions) if _is_claimed(session, one)]
    if not nodes:
        return None
    make_folder(state_dir)
    return _difference(session, nodes[number // share % len(nodes)], state_dir)


def _beginning(
    calls: Sequence[Call],
) -> tuple[messages.StartArgs | None, list[tuple[messages.Pod, bool]]]:
    """The first start, if it was successful, and the first admissions after it."""
    start: messages.StartArgs | None = None
    admissions: list[tuple[messages.Pod, bool]] = []
    for call in calls:
        match call.args, call.answer:
            case messages.StartArgs() as args, messages.Started() if (
                start is None and not args.pods
            ):
                start = args
            case messages.AdmitArgs(pod=pod), messages.Admitted() | messages.AdmissionRefused():
                admissions.append((pod, isinstance(call.answer, messages.Admitted)))
            case _ if call.operation not in _QUESTIONS:
                break
        if call.before:
            break
    return start, admissions[:2]


def _is_claimed(session: Session, node: RelatedNode) -> bool:
    machine = node.start.machine
    if machine is None:
        return False
    return session.capabilities.makes(
        *needs.of_call("start", node.start, session.kubernetes, machine)
    )


def _difference(session: Session, node: RelatedNode, state_dir: Path) -> Violation | None:
    start = msgspec.structs.replace(node.start, state_dir=str(state_dir))
    if not isinstance(session.implementation.call("start", start), messages.Started):
        return _violation(node, "the node doesn't start") if node.must_start else None
    for pod, expected in zip(node.pods, node.outcomes, strict=True):
        answer = session.implementation.call("admit", messages.AdmitArgs(pod))
        if not isinstance(answer, messages.Admitted | messages.AdmissionRefused):
            return None
        if isinstance(answer, messages.Admitted) != expected:
            said = "admitted" if isinstance(answer, messages.Admitted) else "refused"
            return _violation(node, f"pod {pod['metadata']['uid']} is {said}")
    return None


def _violation(node: RelatedNode, what: str) -> Violation:
    message = f"with {node.difference} on an otherwise equal new node, {what}"
    return Violation(node.invariant, node.requirement, message)
