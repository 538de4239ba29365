"""Properties of merging that hold for any implementation, shown on the reference.

The oracle folds the providers over all distinct results, one provider after the other, and takes
the best of them by the rules as they are written down. It knows nothing of how the reference looks
for the winner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numaproof.conformance.execution.implementation import InProcess
from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference.implementation import Reference
from quality.catalogue import BUGS

if TYPE_CHECKING:
    from numaproof.conformance.execution.implementation import Implementation

POLICIES = ("best-effort", "restricted", "single-numa-node")
EXAMPLES = settings(max_examples=80, derandomize=True, deadline=None)

Hints = tuple[messages.Hint, ...]


@st.composite
def merges(draw: st.DrawFn, policy: str | None = None) -> messages.MergeArgs:
    """Merges on up to five nodes, ids with gaps among them, with up to four providers."""
    nodes = tuple(
        draw(st.sampled_from(((0, 1), (0, 1, 2), (0, 2, 5), (0, 1, 2, 3), (0, 1, 2, 3, 4))))
    )
    some = st.sets(st.sampled_from(nodes), min_size=1).map(NUMASet)
    hint = st.builds(messages.Hint, some, st.booleans())
    hints = st.one_of(st.none(), st.lists(hint, max_size=5).map(tuple))
    provider = st.one_of(
        st.none(), st.dictionaries(st.sampled_from(("cpu", "gpu", "nic")), hints, max_size=2)
    )
    rows = {
        str(one): tuple(
            10 if one == other else draw(st.sampled_from((11, 12, 20))) for other in nodes
        )
        for one in nodes
    }
    closest = draw(st.booleans())
    return messages.MergeArgs(
        nodes=nodes,
        policy=policy or draw(st.sampled_from(POLICIES)),
        providers=tuple(draw(st.lists(provider, max_size=4))),
        options={"prefer-closest-numa-nodes": "true"} if closest else {},
        distances=rows,
    )


def merge(
    args: messages.MergeArgs, implementation: Implementation | None = None
) -> messages.Merged:
    """An implementation's answer, the reference's when none is given."""
    answer = (implementation or InProcess(Reference)).call("merge", args)
    assert isinstance(answer, messages.Merged), answer
    return answer


def lists_of(args: messages.MergeArgs) -> list[Hints]:
    """The hints of every resource that has a preference, with single-numa-node's filter.

    What nothing can satisfy goes with any nodes, and is never preferred.
    """
    given_ones: list[Hints] = [
        hints or (messages.Hint(None, preferred=False),)
        for provider in args.providers
        for hints in (provider or {}).values()
        if hints is not None
    ]
    if args.policy != "single-numa-node":
        return given_ones
    return [
        tuple(hint for hint in hints if hint.preferred and len(hint.numa or ()) == 1)
        for hints in given_ones
    ]


# The oracle


def folded(args: messages.MergeArgs) -> messages.Merged:
    """What the definition gives."""
    every = NUMASet(args.nodes)
    lists = lists_of(args)
    unmet = messages.Hint(every, preferred=False)
    results = {(every, True, None)}
    for hints in lists:
        results = {
            (mask & (hint.numa or every), sound and hint.preferred, _common(first, hint.numa))
            for mask, sound, first in results
            for hint in hints
        }
    possible = {
        messages.Hint(mask, sound and first is not False) for mask, sound, first in results if mask
    }
    needed = max(
        (min((len(hint.numa or ()) for hint in hints), default=0) for hints in lists), default=0
    )
    best = min(possible, key=lambda hint: _rank(args, hint, needed), default=unmet)
    admit = best.preferred or args.policy == "best-effort"
    if args.policy == "single-numa-node" and best.numa == every:
        best = messages.Hint(None, best.preferred)
    return messages.Merged(best, admit)


def _common(first: Any, numa: NUMASet | None) -> Any:
    """The set that all hints so far name; None for none yet, False for several."""
    if first is None or first == numa:
        return numa
    return False


def _rank(args: messages.MergeArgs, hint: messages.Hint, needed: int) -> tuple[Any, ...]:
    """The less, the better."""
    assert hint.numa is not None
    size = len(hint.numa)
    fitness = (size, _distance(args, hint.numa), hint.numa.mask)
    if hint.preferred:
        return 0, 0, 0, *fitness
    if size == needed:
        return 1, 0, 0, *fitness
    return 1, (1 if size < needed else 2), abs(size - needed), *fitness


def _distance(args: messages.MergeArgs, nodes: NUMASet) -> float:
    if not args.options:
        return 0
    assert args.distances is not None
    place = {node: number for number, node in enumerate(args.nodes)}
    apart = [args.distances[str(one)][place[other]] for one in nodes for other in nodes]
    return sum(apart) / len(apart)


# Properties


@EXAMPLES
@given(merges())
def test_a_merge_is_what_the_definition_gives(args: messages.MergeArgs) -> None:
    assert merge(args) == folded(args)


def test_every_bug_of_merging_is_seen_by_the_definition() -> None:
    wrong = ("the-last-provider-is-not-heard", "preferred-hints-need-not-be-equal")
    near = {"cpu": (messages.Hint(NUMASet([0]), preferred=True),)}
    far = {"gpu": (messages.Hint(NUMASet([0, 1]), preferred=True),)}
    args = messages.MergeArgs((0, 1), "restricted", (near, far))
    seen = [merge(args, bug.implementation()) for bug in BUGS if bug.id in wrong]
    assert len(seen) == len(wrong)
    assert all(answer != folded(args) for answer in seen)
