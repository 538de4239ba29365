"""Invariants of answers that need no node: merged hints and assigned CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging.invariants.view import Violation, nodes_of
from numaproof.inputs.plurals import format_count, format_numbers, plural
from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.protocol.messages import Level

_SINGLE = "single-numa-node"


def on_answer(args: messages.Args, answer: messages.Answer, level: Level) -> Iterator[Violation]:
    """Checks an answer that needs no node."""
    match args, answer:
        case messages.MergeArgs(), messages.Merged():
            if args.policy != "none" and applies("placement", level):
                yield from _check_merge(args, answer)
        case messages.AssignArgs(), messages.Assigned():
            yield from _check_assignment(args, answer)


def _check_assignment(args: messages.AssignArgs, answer: messages.Assigned) -> Iterator[Violation]:
    if len(answer.cpus) != args.count:
        message = (
            f"expected {plural(args.count, 'CPU')}, but the answer assigns"
            f" {format_count('CPU', answer.cpus)}"
        )
        yield Violation("assigned-count", "CPU-STATIC-002", message, answer.cpus)
    if beyond := answer.cpus - args.available:
        message = f"the answer assigns {format_numbers('CPU', beyond)}, outside the available ones"
        yield Violation("assigned-out-of-available", "CPU-STATIC-003", message, beyond)


def _check_merge(args: messages.MergeArgs, answer: messages.Merged) -> Iterator[Violation]:
    every = NUMASet(args.nodes)
    lists = list(_lists(args))
    # Under single-numa-node, all nodes are reported as no affinity.
    nodes = every if answer.hint.numa is None else answer.hint.numa
    if not nodes.issubset(every):
        message = f"the merged hint has {nodes_of(nodes)}, but the machine has {nodes_of(every)}"
        yield Violation("merged-on-the-machine", "TOPO-MERGE-014", message)
    if answer.admit != (answer.hint.preferred or args.policy == "best-effort"):
        message = (
            f"{args.policy} {'admits' if answer.admit else 'refuses'} a hint that is"
            f" {_preferred(answer.hint)}"
        )
        yield Violation("admitted-by-policy", "TOPO-POLICY-003", message)
    agreed = _common_preferences(lists, every)
    if answer.hint.preferred != bool(agreed):
        message = (
            f"all providers prefer nodes {_hints(agreed)}, but the merged hint {nodes} is"
            f" {_preferred(answer.hint)}"
        )
        yield Violation("preferred-if-all-agree", "TOPO-MERGE-004", message)
    elif agreed and (nodes not in agreed or len(nodes) > min(map(len, agreed))):
        message = f"all providers prefer nodes {_hints(agreed)}, but the merged hint is {nodes}"
        yield Violation("narrowest-preferred-wins", "TOPO-MERGE-003", message)
    elif not agreed and nodes != every and not _within(nodes, lists):
        message = f"the merged hint {nodes} is not within a hint of every provider"
        yield Violation("merged-of-one-hint-each", "TOPO-MERGE-009", message)


def _lists(args: messages.MergeArgs) -> Iterator[list[messages.Hint]]:
    """The hints for each resource that the policy considers."""
    for provider in args.providers:
        for hints in (provider or {}).values():
            if hints is None:
                continue
            if args.policy != _SINGLE:
                yield list(hints) or [messages.Hint(None, preferred=False)]
                continue
            yield [
                hint
                for hint in hints
                if hint.preferred and (hint.numa is None or len(hint.numa) == 1)
            ]


def _common_preferences(lists: list[list[messages.Hint]], every: NUMASet) -> set[NUMASet]:
    """The sets of nodes that every list prefers; a hint without nodes matches any."""
    found: set[NUMASet] | None = None
    for hints in lists:
        preferred = {hint.numa for hint in hints if hint.preferred}
        if None in preferred:
            continue
        some = {numa for numa in preferred if numa is not None}
        found = some if found is None else found & some
    if found is None:
        preferred = {hint.numa for hints in lists for hint in hints if hint.preferred}
        some = {numa for numa in preferred if numa is not None}
        found = {every} if all(hints for hints in lists) else set()
        found |= some if found else set()
    return {numa & every for numa in found if numa & every}


def _within(nodes: NUMASet, lists: list[list[messages.Hint]]) -> bool:
    return all(
        any(hint.numa is None or nodes.issubset(hint.numa) for hint in hints) for hints in lists
    )


def _preferred(hint: messages.Hint) -> str:
    return "preferred" if hint.preferred else "not preferred"


def _hints(hints: Iterable[NUMASet]) -> str:
    return " or ".join(sorted(map(str, hints))) or "none"
