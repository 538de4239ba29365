"""Failures grouped by cause: one bug is one entry, and two bugs are two."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol.events import AnyEvent, CaseFinished, ReportedCall, ReportedFinding
from numaproof.reports.anchors import anchor
from numaproof.reports.consequences import leading_causes
from numaproof.reports.groups import causes
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from numaproof.reports.groups import FailureGroup

MakeRun = Callable[..., CaseFinished]
MakeStream = Callable[..., list[AnyEvent]]


def steps(count: int, *problems: str, **more: Any) -> tuple[ReportedCall, ...]:
    return (
        *(ReportedCall("state", {}, {}) for _ in range(count - 1)),
        ReportedCall("admit", {}, {}, problems, **more),
    )


def groups(stream: MakeStream, *runs: CaseFinished) -> tuple[FailureGroup, ...]:
    return causes(summarize(stream(*runs)))


def test_failures_with_one_signature_form_a_group(stream: MakeStream, run: MakeRun) -> None:
    runs = [
        run("fail", case=f"case-{number % 7}", machine=f"m{number}", signature="invariant one")
        for number in range(70)
    ]
    (group,) = groups(stream, *runs)
    assert (group.size, group.also()) == (70, "")
    assert group.elsewhere(2).startswith("and in 69 more case runs: case-1 (m1, m8, m15 …), case-2")


def test_the_smallest_case_on_the_smallest_machine_comes_first(
    stream: MakeStream, run: MakeRun
) -> None:
    machine = ReportedCall("start", {"machine": {"num_cores": 2}}, {})
    runs = [
        run("fail", case="long", signature="x", steps=steps(5)),
        run("fail", case="unknown", machine="m9", signature="x", steps=steps(2)),
        run("fail", case="large", machine="desktop", signature="x", steps=steps(2)),
        run("fail", case="own", machine="own", signature="x", steps=(machine, *steps(1))),
    ]
    (group,) = groups(stream, *runs)
    assert group.first.name == "own"
    assert [one.name for one in group.others] == ["long", "unknown", "large"]


@pytest.mark.parametrize("more", [2, 0])
def test_invariants_that_break_together_share_a_cause(
    stream: MakeStream, run: MakeRun, more: int
) -> None:
    shared, lost = (
        ReportedFinding("invariant", one) for one in ("exclusive-to-one", "no-cpu-lost")
    )
    both = steps(2, "a CPU of two", "a CPU is gone", findings=(shared, lost))
    alone = steps(2, "a CPU is gone", findings=(lost,))
    (group,) = groups(
        stream,
        run("fail", case="c", signature="invariant no-cpu-lost", steps=alone),
        run("fail", case="d", signature="invariant no-cpu-lost", steps=alone),
        *(
            run("fail", case=f"e{number}", signature="invariant exclusive-to-one", steps=both)
            for number in range(1 + more)
        ),
    )
    counts = {"invariant exclusive-to-one": 1 + more, "invariant no-cpu-lost": 2}
    largest = max(counts, key=counts.__getitem__)
    assert group.signatures == counts
    assert next(iter(group.signatures)) == largest
    assert group.first.name == ("e0" if more else "c")
    assert group.also().startswith("also seen as invariant ")


def test_invariants_of_one_result_share_a_cause(stream: MakeStream, run: MakeRun) -> None:
    names = ("preferred-if-all-agree", "narrowest-preferred-wins", "merged-of-one-hint-each")
    (group,) = groups(stream, *(run("fail", signature=f"invariant {name}") for name in names))
    assert list(group.signatures) == [f"invariant {name}" for name in names]


def test_differences_with_one_requirement_share_a_cause(stream: MakeStream, run: MakeRun) -> None:
    runs = [
        run("fail", signature="admit: containers.*.cpus differs"),
        run("fail", signature="invariant whole-cores-only"),
        run("fail", signature="start: cpus.allocatable differs", requirements=("NONE-1",)),
        run("crash", signature="crash at admit: exit code 1"),
    ]
    found = [(list(one.signatures), one.size) for one in groups(stream, *runs)]
    assert found == [
        (["invariant whole-cores-only", "admit: containers.*.cpus differs"], 2),
        (["start: cpus.allocatable differs"], 1),
        (["crash at admit: exit code 1"], 1),
    ]


def test_an_ambiguous_difference_is_a_separate_cause(stream: MakeStream, run: MakeRun) -> None:
    runs = [
        run("fail", signature="invariant one"),
        run("fail", signature="invariant two"),
        run("fail", signature="admit: containers.*.cpus differs"),
    ]
    assert [one.size for one in groups(stream, *runs)] == [1, 1, 1]


def test_a_case_whose_own_requirement_is_violated_comes_first(
    stream: MakeStream, run: MakeRun
) -> None:
    small = {"violated_requirements": ("NONE-1",), "steps": steps(2), "machine": "desktop"}
    runs = [
        run("fail", case="collateral", signature="x", **small),
        run("fail", case="own", signature="x", steps=steps(5), requirements=("NONE-1",)),
    ]
    (group,) = groups(stream, *runs)
    assert group.first.name == "own"


def test_examples_are_small_and_of_other_cases(stream: MakeStream, run: MakeRun) -> None:
    sizes = {"first": 1, "large": 4, "small": 2, "medium": 3}
    runs = [
        run("fail", case=name, machine=at, signature="x", steps=steps(size))
        for name, size in sizes.items()
        for at in ("desktop", "server")
    ]
    (group,) = groups(stream, *runs)
    assert [one.name for one in group.examples(2)] == ["small", "medium"]
    assert [one.name for one in group.examples(9)] == ["small", "medium", "large"]


def test_a_cause_may_disappear_with_a_larger_one(stream: MakeStream, run: MakeRun) -> None:
    runs = [
        *(run("fail", case="a", machine=f"m{n}", signature="invariant one") for n in range(3)),
        run("crash", case="a", machine="server", signature="same case"),
        run("crash", case="b", signature="same case"),
        run("crash", case="a", signature="crash at admit"),
        run("crash", case="c", signature="crash at start"),
    ]
    found = groups(stream, *runs)
    leading = dict(
        zip((next(iter(one.signatures)) for one in found), leading_causes(found), strict=True)
    )
    assert leading == {
        "invariant one": None,
        "same case": None,  # case b fails only there
        "crash at admit": 0,
        "crash at start": None,
    }


def test_ids_derive_from_names() -> None:
    assert anchor("failure", "static-one", "laptop-4c8t") == "failure/static-one/laptop-4c8t"
    odd = [anchor("cause", one) for one in ("a b", "a-b", "a  b", "x" * 100, "x" * 101, "\ud800")]
    assert len({*odd}) == len(odd)
    assert all(one.replace("/", "").replace("-", "").isalnum() for one in odd)
