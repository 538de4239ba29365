"""`numaproof gauntlet`: which cases and scenarios catch a seeded bug."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from numaproof.conformance.seeded_bugs import catalogue, kill_matrix
from numaproof.conformance.seeded_bugs.catalogue import BUGS
from numaproof.conformance.seeded_bugs.seeding import Bug

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

FEW = ("--jobs", "1", "--examples", "20")
CAUGHT = "reconcile-tells-nobody"


def without_times(text: str) -> Any:
    told = json.loads(text)
    del told["seconds"]
    return told


def test_a_bug_is_caught_by_a_case_and_by_a_shrunk_scenario(command: Callable[..., Any]) -> None:
    ended = command("gauntlet", "--select", CAUGHT, *FEW, "--quick", "--json")
    assert ended.code == 0
    (hunt,) = ended.json()["hunts"]
    assert hunt["bug"] == CAUGHT
    assert len(hunt["cases"]) == 1
    assert hunt["example"]["number"] <= 20
    assert hunt["example"]["pods"] <= 3
    assert ended.json()["complete"]


def test_the_matrix_is_the_same_each_time_but_for_the_seconds(command: Callable[..., Any]) -> None:
    words = ("gauntlet", "--select", CAUGHT, *FEW, "--fuzz-only", "--seed", "3", "--json")
    first, second = command(*words), command(*words)
    assert without_times(first.out) == without_times(second.out)
    assert first.json()["seconds"].keys() == {CAUGHT}


def test_what_is_printed_is_written_too(command: Callable[..., Any], tmp_path: Path) -> None:
    ended = command("gauntlet", "--select", CAUGHT, *FEW, "--fuzz-only", "--out", tmp_path / "out")
    assert f"caught    {CAUGHT}" in ended.out
    assert "1 seeded bug, 0 survived" in ended.out
    page = (tmp_path / "out" / "gauntlet.md").read_text(encoding="utf-8")
    assert f"<code>{CAUGHT}</code>" in page
    assert (tmp_path / "out" / "gauntlet.json").exists()


def test_a_bug_that_survives_makes_it_fail(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    harmless = Bug("harmless", "cpus", ("CPU-POOL-005",), lambda changes: None)
    monkeypatch.setattr(kill_matrix, "BUGS", (harmless,))
    monkeypatch.setattr(catalogue, "BUGS", (harmless,))
    ended = command("gauntlet", "--jobs", "1", "--examples", "2", "--fuzz-only")
    assert ended.code == 1
    assert "SURVIVED  harmless: not caught by 2 examples" in ended.out
    assert "survived: harmless" in ended.out


def test_several_processes_find_what_one_finds(command: Callable[..., Any]) -> None:
    words = ("gauntlet", "--select", CAUGHT, "--examples", "20", "--fuzz-only", "--json")
    one, two = command(*words, "--jobs", "1"), command(*words, "--jobs", "2")
    assert without_times(one.out) == without_times(two.out)


def test_options_that_make_no_sense_are_refused(command: Callable[..., Any]) -> None:
    assert command("gauntlet", "--select", "no-such-bug").code == 2
    both = command("gauntlet", "--table-only", "--fuzz-only")
    assert both.code == 2
    assert "not both" in both.err


def test_the_quick_form_fuzzes_for_a_sample_that_the_seed_chooses() -> None:
    bugs = [bug.id for bug in BUGS]

    def quick(seed: int) -> kill_matrix.Plan:
        return kill_matrix.Plan.quick(bugs, table=True, fuzz=True, examples=2000, seed=seed)

    assert len(quick(0).fuzzed) == kill_matrix.QUICK_SAMPLE
    assert quick(0) == quick(0)
    assert quick(0).fuzzed != quick(1).fuzzed
    assert not quick(0).whole
