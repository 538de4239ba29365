"""Each invariant detects its own violation and no other.

A row of `invariants.yaml` is a node, or the changes to another row's node, with the violations.
Merges and assignments need no node: `answers.yaml` has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from builders.answers import answer_in
from builders.tables import Table
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.judging import invariants
from numaproof.conformance.judging.invariants.view import Arrival, View
from numaproof.protocol import codec, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

NODES = Table(__file__, "invariants.yaml")
ANSWERS = Table(__file__, "answers.yaml")


def patch_value(value: Any, patch: Any) -> Any:
    """Returns a value with changed fields; `(gone)` removes one."""
    if not isinstance(patch, dict):
        return patch
    base = value if isinstance(value, dict) else {}
    merged = {**base, **{name: patch_value(base.get(name), one) for name, one in patch.items()}}
    return {name: one for name, one in merged.items() if one != "(gone)"}


def view_of(plain: Mapping[str, Any]) -> View:
    """Creates the view that a row describes."""
    return View(
        facts=Facts(codec.from_plain(plain["machine"], MachineInfo)),
        config=plain["config"],
        pods=plain["pods"],
        ended_containers=frozenset((uid, name) for uid, name in plain["ended"]),
        start_answer=codec.from_plain(plain["started"], messages.Started),
        state=codec.from_plain(plain["state"], messages.State),
        devices=codec.from_plain(plain["devices"], tuple[messages.DeviceResource, ...]),
        arrivals={uid: Arrival(*one) for uid, one in plain["arrivals"].items()},
        starts=plain["starts"],
        readmitted_pods=frozenset(plain["returned"]),
        level=plain["level"],
        admitted_pods=frozenset(plain.get("admitted", ())),
        check_node=plain.get("check_node", False),
    )


@NODES
def test_each_invariant_reports_its_own_violation(row: dict[str, Any]) -> None:
    base = NODES.row(row["of"])["view"] if "of" in row else {}
    view = view_of(patch_value(base, row.get("view", {})))
    before = row.get("before", {})
    earlier = None if before is None else view_of(patch_value(base or row["view"], before))
    match row["at"]:
        case "admission":
            answer = codec.from_plain(row["answer"], messages.Admitted)
            found = invariants.on_admission(answer, earlier, view, row["uid"])
        case "change" | "refusal" | "resize" as moment:
            assert earlier
            found = getattr(invariants, f"on_{moment}")(earlier, view)
        case moment:
            found = getattr(invariants, f"on_{moment}")(view)
    said = [f"{one.invariant} ({one.requirement}): {one.message}" for one in found]
    NODES.check(row, said)


@ANSWERS
def test_merges_and_assignments_are_checked_by_their_request(row: dict[str, Any]) -> None:
    operation: Any = OPERATIONS["merge" if "merge" in row else "assign"]
    plain = (
        {"nodes": [0, 1], **row["merge"]} if "merge" in row else {"machine": {}, **row["assign"]}
    )
    args = codec.from_plain(plain, operation.args)
    answer = answer_in(row)

    def broken_invariants(level: Any) -> list[str]:
        return [one.invariant for one in invariants.on_answer_alone(args, answer, level)]

    assert "merge" not in row or broken_invariants("admission") == []
    ANSWERS.check(row, broken_invariants("placement"))
