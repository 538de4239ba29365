"""Patterns that select cases: by id, requirement, area and document."""

from __future__ import annotations

import pytest

from numaproof.conformance.cases import loading
from numaproof.conformance.differential import recordings
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.selection import listing, needs
from numaproof.conformance.selection.listing import ListedId
from numaproof.conformance.selection.patterns import Selection, SelectionError

CASES = loading.bundled_cases()
REGISTRY = load_registry()


def selected_ids(*select: str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [case.id for case in Selection(select, exclude, REGISTRY, needs.features_of).of(CASES)]


def areas(ids: list[str]) -> set[str]:
    rows = REGISTRY.by_id()
    return {rows[one].area for case in CASES if case.id in ids for one in case.requirements}


def test_a_plain_glob_matches_current_and_earlier_ids() -> None:
    assert all(one.startswith("example-") for one in selected_ids("example-*"))
    assert selected_ids("dev-hint-wider-sets-before-1-36") == ["dev-hint-wider-sets"]
    assert selected_ids("id:dev-hint-wider-sets") == ["dev-hint-wider-sets"]


def test_a_plain_glob_also_matches_requirements() -> None:
    found = selected_ids("CPU-STATIC-009")
    assert found == [one.id for one in CASES if "CPU-STATIC-009" in one.requirements]
    assert found == selected_ids("requirement:CPU-STATIC-009")
    assert set(found) < set(selected_ids("CPU-STATIC-*"))


@pytest.mark.parametrize(
    "pattern", ["area:memory", "area:Memory Manager", "area:memory-manager", "area:MEMORY*"]
)
def test_an_area_matches_in_any_case_and_by_prefix(pattern: str) -> None:
    found = selected_ids(pattern)
    assert found == selected_ids("area:memory-manager")
    assert "Memory Manager" in areas(found)
    assert all(
        any(REGISTRY.by_id()[one].area == "Memory Manager" for one in case.requirements)
        for case in CASES
        if case.id in found
    )


def test_a_document_is_selected_by_key_or_title() -> None:
    by_key = selected_ids("document:topology-uk")
    assert 0 < len(by_key) < len(CASES)
    assert by_key == selected_ids("document:control topology management policies on a node")


def test_a_defect_selects_the_cases_that_show_it() -> None:
    found = selected_ids("defect:free-core-*")
    assert found == [case.id for case in CASES if case.defect == "free-core-by-average"]
    assert found


def test_a_feature_selects_the_cases_that_need_it() -> None:
    some = CASES[::12]

    def matching_ids(pattern: str) -> set[str]:
        return {case.id for case in Selection((pattern,), (), REGISTRY, needs.features_of).of(some)}

    needed = {case.id for case in some if "sidecars" in needs.features_of(case.id)}
    assert matching_ids("feature:sidecars") == needed
    assert set() < needed < matching_ids("feature:*")


def test_patterns_are_combined_and_exclusions_apply() -> None:
    assert len(selected_ids()) == len(CASES)
    both = selected_ids("area:topology-merge", "area:topology-hints")
    assert set(both) == {*selected_ids("area:topology-merge"), *selected_ids("area:topology-hints")}
    assert {*selected_ids("area:topology-merge")} < {*both} <= {*selected_ids("area:topology")}
    left = selected_ids("area:memory", exclude=("MEM-HUGE*", "*-restart-*"))
    assert left
    assert set(left) == set(selected_ids("area:memory")) - set(
        selected_ids("MEM-HUGE*", "*-restart-*")
    )


def test_recordings_are_selected_like_cases() -> None:
    kept = recordings.bundled_recordings("1.36")
    for pattern in ("recorded-*", "RECORDED", "area:recordings", "document:fixtures/*"):
        assert Selection((pattern,), (), REGISTRY, needs.features_of).of(kept) == kept
    assert Selection((), ("area:recordings",), REGISTRY, needs.features_of).of(kept) == ()


@pytest.mark.parametrize(
    ("select", "exclude", "complaint"),
    [
        (("statik-*",), (), "no case matches --select 'statik-*'; did you mean 'static-*'?"),
        (("CPU-STATIK-*",), (), "did you mean 'CPU-STATIC-*'"),
        (("example-*", "zzz"), (), "--select 'zzz'; see `numaproof case list`"),
        ((), ("area:memry",), "--exclude 'area:memry'; did you mean 'area:memory'"),
        (("document:zzz",), (), "; document can be "),
        (("requirement:CPU-STATIC-9",), (), "did you mean 'requirement:CPU-STATIC-"),
    ],
)
def test_a_pattern_without_a_match_is_an_error_with_the_nearest_names(
    select: tuple[str, ...], exclude: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(SelectionError) as error:
        Selection(select, exclude, REGISTRY, needs.features_of).check(CASES)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[" * 60_000, "is longer than 1000 characters"),
        ("aera:memory", "unknown key 'aera' in 'aera:memory'; did you mean area:memory?"),
        ("zzz:x", "unknown key 'zzz' in 'zzz:x'; the keys are id, requirement, "),
    ],
)
def test_an_unknown_key_is_an_error(text: str, complaint: str) -> None:
    with pytest.raises(SelectionError) as error:
        Selection((text,), (), REGISTRY, needs.features_of)
    assert complaint in str(error.value)


def test_the_values_of_a_key_can_be_listed() -> None:
    every = Selection((), (), REGISTRY, needs.features_of)
    assert "memory-manager" in every.values("area", CASES)
    assert every.values("lost", CASES) == ()


def test_the_listed_cases_equal_the_loaded_ones() -> None:
    loaded = [ListedId(case.id, case.title, case.aliases, case.requirements) for case in CASES]
    assert list(listing.cases()) == loaded


def test_the_listed_requirements_equal_the_registry() -> None:
    rows = REGISTRY.requirements
    assert list(listing.requirements()) == [ListedId(row.id, row.statement) for row in rows]
