"""The board's data, computed from runs before pages are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.machines import regular
from numaproof.protocol.campaign import (
    CampaignPlanned,
    Configuration,
    ScenarioFailed,
    Seeds,
    UnitFinished,
)
from numaproof.protocol.events import CaseFinished, DivergenceFound, ReportedRequirement, RunEnded
from numaproof.protocol.messages import Hello, Options, Policies
from numaproof.reports.board.context import RunContext
from numaproof.reports.board.data import (
    KINDS,
    Author,
    BoardData,
    BoardFinding,
    FoundIn,
    RunData,
    data_name,
    encode_board_data,
)
from numaproof.reports.board.digest import run_data, summaries
from numaproof.reports.board.reading import RunsRead
from numaproof.reports.board.standing import implementations
from numaproof.reports.board.views import VersionChange, changes, met_text, shown_findings
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from conftest import MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.campaign import CampaignEvent
    from numaproof.protocol.events import AnyEvent


def no_text(_name: str) -> str:
    return ""


def digest(events: list[AnyEvent]) -> RunData:
    return run_data(summarize(events), "folder", no_text)


def data(version: str = "1.0", kubernetes: str = "1.37", **more: Any) -> RunData:
    fields: dict[str, Any] = {
        "kind": "check",
        "author": Author("pinner", version, "Go"),
        "kubernetes": kubernetes,
        "level": "placement",
        "numaproof": "0.2.0",
        "outcomes": {"pass": 1},
    }
    return RunData(**fields | more)


def test_external_text_is_truncated_and_made_visible(stream: MakeStream, run: MakeRun) -> None:
    long = "\u202e" + "x" * 5000
    requirement = ReportedRequirement(long, long, long, long, long)
    wrong = run("fail", case=long, machine=long, message=long, requirements=(long,), title=long)
    made = digest(stream(wrong, start={"requirements": (requirement,), "kubernetes": long}))
    # Longer texts could not be read again.
    again = msgspec.json.decode(encode_board_data([made]), type=BoardData)
    assert again.runs == (made,)
    assert made.findings[0].case.startswith("⟨U+202E⟩xxx")


def test_the_newest_version_in_the_newest_release_is_shown_first() -> None:
    runs = [data("0.9", "1.36"), data("0.10", "1.36"), data("0.9", "1.37"), data("1.0", "1.35")]
    (one,) = implementations(runs)
    named = [(entry.kubernetes, entry.author.version) for entry in one.entries]
    assert named == [("1.37", "0.9"), ("1.36", "0.10"), ("1.36", "0.9"), ("1.35", "1.0")]
    assert [entry.author.version for entry in one.current] == ["0.9", "0.10", "1.0"]


def test_runs_of_a_version_are_added_and_duplicates_ignored() -> None:
    first = data(requirements={"R": {"pass": 2}}, outcomes={"pass": 2})
    other = data(requirements={"R": {"fail": 1}}, outcomes={"fail": 1})
    (one,) = implementations([first, other, first])
    assert one.newest.requirements == {"R": {"pass": 2, "fail": 1}}
    assert one.newest.score.counts == {"failed": 1, "pass": 2}
    assert (one.newest.requirement_score.good, one.newest.requirement_score.asked_count) == (0, 1)


def test_named_defects_count_as_violations_of_the_documents() -> None:
    outcomes: Any = {
        "A": {"pass": 1},
        "B": {"pass": 1, "expected failure": 1},
        "C": {"unsupported": 1},
    }
    (one,) = implementations([data(requirements=outcomes)])
    met = one.newest.requirement_score
    assert (met.good, met.as_kubelet, met.asked_count, met.is_all) == (1, 1, 2, True)
    assert met_text(one.newest) == "1 of 2, 1 named defect"
    (none,) = implementations([data(requirements={"C": {"unsupported": 1}})])
    assert not none.newest.requirement_score.is_all
    assert met_text(none.newest) == "nothing tested"


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("numaproof check --implementation './it --machine x'", ()),
        ("numaproof check '", ()),
        ("", ()),
        ("numaproof check --quick", ("--quick",)),
        (
            "numaproof check --select=static-* --machine 'a b'",
            ("--select 'static-*' --machine 'a b'",),
        ),
    ],
)
def test_a_partial_run_is_incomplete(
    stream: MakeStream, run: MakeRun, command: str, parts: tuple[str, ...]
) -> None:
    made = digest(stream(run(), start={"command": command}))
    assert made.gaps == tuple(f"Only part of the suite was selected: {one}" for one in parts)


def test_a_partial_run_does_not_replace_a_whole_one() -> None:
    whole, part = data(outcomes={"pass": 9}), data(gaps=("Only a part.",))
    known = RunContext((), no_text)
    assert RunsRead(known, [part], [whole]).runs == (whole,)
    assert RunsRead(known, [part], [whole]).superseded_runs == (part,)
    assert RunsRead(known, [part], [part]).superseded_runs == ()
    assert RunsRead(known, [whole], [part]).runs == (whole,)


def test_a_partial_run_is_not_added_to_a_whole_one() -> None:
    whole, part = data(outcomes={"pass": 9}), data(gaps=("Only a part.",))
    other = data(kind="fuzz", gaps=("Only a part.",))
    known = RunContext((), no_text)
    for reported, kept in (([part, whole, other], []), ([], [part, whole, other])):
        found = RunsRead(known, reported, kept)
        assert found.runs == (whole, other)
        assert found.superseded_runs == (part,)
    # Two names with the same slug.
    alike = data(author=Author("Pinner", "1.0", "Go"), gaps=("Only a part.",))
    assert RunsRead(known, [whole, alike], []).superseded_runs == ()


def test_known_failures_are_scored_by_their_kinds() -> None:
    where = (FoundIn("c", "known failure", ("a", "b"), ("R",)),)
    found = BoardFinding("own rules", "known failure", "t", {"s": 2}, cases=where)
    outcomes = {"pass": 5, "known failure": 3}
    (one,) = implementations([data(outcomes=outcomes, findings=(found,))])
    assert one.newest.score.counts == {"pass": 5, "own rules": 2, "known failure": 1}


def test_similar_names_have_separate_pages() -> None:
    runs = [data(author=Author(name, "1", "Go")) for name in ("a b", "a-b", "!!")]
    assert sorted(one.slug for one in implementations(runs)) == ["a-b", "a-b-2", "unnamed"]


def test_history_lists_a_versions_changes() -> None:
    before: Any = {
        "A": {"fail": 1},
        "B": {"pass": 1},
        "C": {"unsupported": 1},
        "D": {"pass": 1},
        "E": {"pass": 1},
        "F": {"expected failure": 1},
        "G": {"pass": 1},
    }
    after: Any = {
        "A": {"pass": 1},
        "B": {"crash": 1},
        "C": {"fail": 1},
        "D": {"unsupported": 1},
        "E": {"expected failure": 1},
        "F": {"pass": 1},
        "G": {"pass": 1},
        "H": {"pass": 1},
    }
    old, new = data("1.0", requirements=before), data("1.1", requirements=after)
    other = data("1.1", requirements=after, level="admission")
    (one,) = implementations([old, new, other])
    (_, change), (_, elsewhere), (_, first) = changes(one)
    assert change is not None
    assert (change.better, change.worse) == (("A", "F"), ("B", "E"))
    assert (change.newly_asked, change.no_longer_asked) == (("C", "H"), ("D",))
    assert elsewhere is None
    assert first is None


def test_an_unchanged_version_has_no_changes() -> None:
    same: Any = {"A": {"pass": 1}, "B": {"unsupported": 1}}
    (one,) = implementations([data("1", requirements=same), data("2", requirements=same)])
    (_, change), _ = changes(one)
    assert change is not None
    assert change == VersionChange((), (), (), ())


def test_a_finding_names_the_requirements_of_all_its_cases() -> None:
    where = tuple(FoundIn(name, "fail", ("m",), ("R", name)) for name in ("Z", "S"))
    found = BoardFinding("failed", "fail", "t", {"s": 2}, requirements=("R", "S"), cases=where)
    (one,) = shown_findings(implementations([data(findings=(found,))]))
    assert one.also == ("Z",)


def test_a_finding_in_several_releases_is_listed_once() -> None:
    found = BoardFinding("finding", "known failure", "t", {"s": 1}, reason="two owners")
    old = BoardFinding("crash", "crash", "t", {"boom": 1})
    runs = [data("2", release, findings=(found,)) for release in ("1.36", "1.37")]
    runs.append(data("1", "1.37", findings=(old,)))
    (one,) = shown_findings(implementations(runs))
    assert one.releases == ("1.37", "1.36")
    assert one.finding.kind in KINDS


def test_board_data_round_trips(stream: MakeStream, story: MakeRun, run_start: MakeStarted) -> None:
    requirements = run_start().requirements
    made = digest(stream(story(), story("known failure", reason="finding: x", case="y")))
    text = encode_board_data([made], requirements)
    again = msgspec.json.decode(text, type=BoardData)
    assert again.runs == (made,)
    assert again.requirements == requirements
    assert encode_board_data(again.runs, again.requirements) == text
    assert data_name(made) == "kubelet-1-35-4-1-35-kubelet-check.board.json"


PLAN = CampaignPlanned(
    at=0.0,
    numaproof="0.2.0",
    program=(),
    timeout=1.0,
    implementation=Hello(
        protocol=1,
        name="kubelet",
        version="1.35.4",
        language="Go",
        kubernetes=("1.34", "1.35"),
        level="kubelet",
        operations=(),
        policies=Policies(),
        options=Options(),
    ),
    configurations=(Configuration("1.35", "kubelet"), Configuration("1.34", "kubelet")),
    cases="",
    selected_cases="",
    machines={},
    runs=2,
    seeds=Seeds(0, 2),
    cases_per_unit=1,
    seeds_per_unit=2,
    shrinks=1,
    units=3,
)


def unit(number: int, name: str, outcomes: dict[Any, int], **more: str) -> UnitFinished:
    at = PLAN.configurations[number]
    return UnitFinished(1.0, f"{at}/{name}", at, outcomes, 0.1, **more)


def journal(run: MakeRun) -> list[CampaignEvent]:
    failed = ScenarioFailed(1.0, 1, "abc", "fail", "two owners")
    shrunk = DivergenceFound(1.0, "Two owners", "fail", "two", regular(1, 1, 1, 1), ())
    return [
        PLAN,
        run(),
        unit(0, "cases/desktop/0", {"pass": 1}, machine="desktop"),
        failed,
        unit(0, "seeds/0+2", {"pass": 1, "fail": 1}),
        shrunk,
        unit(0, "shrink/abc/1", {}, signature="abc"),
        run("fail"),
        unit(1, "cases/desktop/0", {"fail": 1}, machine="desktop"),
    ]


def test_a_campaign_is_two_runs_for_each_release(run: MakeRun) -> None:
    end = RunEnded(2.0, complete=True, outcomes={})
    made = list(summaries([*journal(run), end], ()))
    told = [(one.kind, one.start and one.start.kubernetes, one.tally.counts) for one in made]
    assert told == [
        ("check", "1.35", {"pass": 1}),
        ("fuzz", "1.35", {"pass": 1, "fail": 1}),
        ("check", "1.34", {"fail": 1}),
    ]
    assert [one.title for one in made[1].divergences] == ["Two owners"]
    assert not any(one.gaps for one in made)


def test_a_campaign_that_was_cut_short_is_incomplete(run: MakeRun) -> None:
    cut = [*journal(run), CaseFinished(1.0, "late", "t", "desktop", "fail", 0.1, ())]
    made = list(summaries(cut, ()))
    assert all("not finished" in one.gaps[0] for one in made)
    assert not any(run.case == "late" for one in made for run in one.runs)
