"""What every correct implementation keeps: each invariant sees its own violation and no other.

A row of `invariants.yaml` is a node, or one that differs from another row's in some fields, and
what is broken there. Merges and assignments need no node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders.tables import Table
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.judging import invariants
from numaproof.conformance.judging.invariants.view import Arrival, View
from numaproof.protocol import codec, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Mapping

NODES = Table(__file__, "invariants.yaml")


def patched(value: Any, patch: Any) -> Any:
    """A value with other fields, without those that are `(gone)`."""
    if not isinstance(patch, dict):
        return patch
    base = value if isinstance(value, dict) else {}
    merged = {**base, **{name: patched(base.get(name), one) for name, one in patch.items()}}
    return {name: one for name, one in merged.items() if one != "(gone)"}


def view_of(plain: Mapping[str, Any]) -> View:
    """The view that a row describes."""
    return View(
        facts=Facts(codec.from_plain(plain["machine"], MachineInfo)),
        config=plain["config"],
        pods=plain["pods"],
        ended=frozenset((uid, name) for uid, name in plain["ended"]),
        started=codec.from_plain(plain["started"], messages.Started),
        state=codec.from_plain(plain["state"], messages.State),
        devices=codec.from_plain(plain["devices"], tuple[messages.DeviceResource, ...]),
        arrivals={uid: Arrival(*one) for uid, one in plain["arrivals"].items()},
        starts=plain["starts"],
        returned=frozenset(plain["returned"]),
        level=plain["level"],
    )


@NODES
def test_what_is_broken_on_a_node_is_named(row: dict[str, Any]) -> None:
    base = NODES.row(row["of"])["view"] if "of" in row else {}
    view = view_of(patched(base, row.get("view", {})))
    before = row.get("before", {})
    earlier = None if before is None else view_of(patched(base or row["view"], before))
    match row["at"]:
        case "admission":
            answer = codec.from_plain(row["answer"], messages.Admitted)
            found = invariants.on_admission(answer, earlier, view, row["uid"])
        case "change" | "refusal" as moment:
            assert earlier
            found = getattr(invariants, f"on_{moment}")(earlier, view)
        case moment:
            found = getattr(invariants, f"on_{moment}")(view)
    said = [f"{one.invariant} ({one.requirement}): {one.message}" for one in found]
    NODES.check(row, said)


def merge(policy: str, *providers: Any) -> messages.MergeArgs:
    plain = {"nodes": [0, 1], "policy": policy, "providers": providers}
    return codec.from_plain(plain, messages.MergeArgs)


def merged(*nodes: int, preferred: bool = True, admit: bool = True) -> messages.Merged:
    return messages.Merged(messages.Hint(NUMASet(nodes) if nodes else None, preferred), admit)


def of(*hints: Any) -> dict[str, Any]:
    return {"cpu": [{"numa": numa, "preferred": preferred} for numa, preferred in hints]}


BOTH = of(([0], True), ([1], True), ([0, 1], False))
LATER = of(([1], True), ([0, 1], False))
WIDE = of(([0, 1], True))


@pytest.mark.parametrize(
    ("args", "answer", "broken"),
    [
        (merge("restricted", BOTH, LATER), merged(1), None),
        (merge("restricted", BOTH, LATER), merged(0), "narrowest-preferred-wins"),
        (merge("restricted", BOTH), merged(0, 1), "narrowest-preferred-wins"),
        (merge("restricted", BOTH), merged(2), "merged-on-the-machine"),
        (merge("restricted", BOTH), merged(0, admit=False), "admitted-by-policy"),
        (
            merge("restricted", BOTH, WIDE),
            merged(0, preferred=True),
            "preferred-if-all-agree",
        ),
        (merge("best-effort", BOTH, WIDE), merged(0, preferred=False), None),
        (
            merge("restricted", BOTH, LATER),
            merged(1, preferred=False, admit=False),
            "preferred-if-all-agree",
        ),
        (
            merge("best-effort", of(([0], False)), of(([0, 1], False))),
            merged(1, preferred=False),
            "merged-of-one-hint-each",
        ),
        (merge("best-effort", of(([0], False))), merged(0, 1, preferred=False), None),
        (merge("restricted", None, {}, {"gpu": None}), merged(0, 1), None),
        (merge("restricted", {"gpu": []}), merged(0, 1, preferred=False, admit=False), None),
        (merge("single-numa-node", WIDE), merged(preferred=False, admit=False), None),
        (merge("single-numa-node", None), merged(), None),
        (merge("single-numa-node", BOTH), merged(0), None),
        (merge("none", BOTH), merged(1, preferred=False), None),
        (merge("restricted", of((None, True)), LATER), merged(1), None),
    ],
)
def test_a_merge_is_held_against_its_hints(
    args: messages.MergeArgs, answer: messages.Merged, broken: str | None
) -> None:
    found = [one.invariant for one in invariants.on_answer_alone(args, answer, "placement")]
    assert found[:1] == ([] if broken is None else [broken])
    assert list(invariants.on_answer_alone(args, answer, "admission")) == []


def test_an_assignment_has_the_count_and_comes_out_of_what_is_available() -> None:
    args = messages.AssignArgs(MachineInfo(), CPUSet.parse("0-3"), 2)

    def found(cpus: str) -> list[str]:
        answer = messages.Assigned(CPUSet.parse(cpus))
        return [one.invariant for one in invariants.on_answer_alone(args, answer, "invariants")]

    assert found("0-1") == []
    assert found("0-2") == ["assigned-count"]
    assert found("3-4") == ["assigned-out-of-available"]
