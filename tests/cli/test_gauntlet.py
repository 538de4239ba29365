"""`numaproof gauntlet`: which cases and scenarios catch a seeded bug."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.conformance.seeded_bugs import catalogue, kill_matrix, requirement_hunt
from numaproof.conformance.seeded_bugs.catalogue import BUGS
from numaproof.conformance.seeded_bugs.seeding import Bug
from numaproof.protocol.requirement_proofs import Proof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

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


RECONCILE = ("gauntlet", "--requirements", "--select", "CPU-RECONCILE-005", "--jobs", "1")


def test_a_violator_of_a_requirement_is_caught_by_its_cases(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    words = ("gauntlet", "--requirements", "--select", "reconcile-repeats-itself", "--jobs", "1")
    ended = command(*words, "--out", tmp_path / "out", "--json")
    assert ended.code == 0
    (proof,) = ended.json()["proofs"]
    assert proof["requirement"] == "CPU-RECONCILE-005"
    assert proof["catch"]["case"].startswith("reconcile")
    page = (tmp_path / "out" / "requirements.md").read_text(encoding="utf-8")
    assert "1 requirement, 1 proven" in page
    assert "<code>reconcile-repeats-itself</code>" in page
    assert (tmp_path / "out" / "requirements.json").exists()


def test_a_violator_that_is_let_through_makes_it_fail(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missed(wanted: Sequence[tuple[str, str]], jobs: int) -> Iterator[Proof]:
        del jobs
        for requirement, violator in wanted:
            yield Proof(requirement, "placement", violator, 4)

    monkeypatch.setattr(requirement_hunt, "proofs", missed)
    ended = command(*RECONCILE, "--out", tmp_path / "out")
    assert ended.code == 1
    assert "LET THROUGH  CPU-RECONCILE-005: reconcile-repeats-itself, by 4 case runs" in ended.out
    assert "1 requirement, 0 proven" in ended.out
    assert "**none**" in (tmp_path / "out" / "requirements.md").read_text(encoding="utf-8")


def test_a_requirement_without_a_violator_makes_it_fail(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        requirement_hunt, "without_violator", lambda registry: ("CPU-RECONCILE-005",)
    )
    ended = command(*RECONCILE, "--out", tmp_path / "out")
    assert ended.code == 1
    assert "without a violator: CPU-RECONCILE-005" in ended.out


def test_an_interrupted_proof_tells_what_it_has(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(wanted: Sequence[tuple[str, str]], jobs: int) -> Iterator[Proof]:
        del wanted, jobs
        yield Proof("CPU-RECONCILE-005", "placement", "reconcile-repeats-itself", 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(requirement_hunt, "proofs", interrupted)
    ended = command(*RECONCILE, "--out", tmp_path / "out")
    assert ended.code == 3
    assert "INCOMPLETE" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--select", "CPU-RECONCILE-05"), "did you mean"),
        (("--quick",), "--requirements or --quick, not both"),
        (("--table-only",), "--requirements or --table-only, not both"),
        (("--fuzz-only",), "--requirements or --fuzz-only, not both"),
    ],
)
def test_proofs_that_make_no_sense_are_refused(
    command: Callable[..., Any], words: tuple[str, ...], said: str
) -> None:
    ended = command("gauntlet", "--requirements", *words)
    assert ended.code == 2
    assert said in ended.err
