"""The output during a campaign, and its reports."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec
import pytest

from numaproof.protocol.campaign import (
    CampaignFinding,
    CampaignPlanned,
    CampaignSummary,
    CampaignTally,
    Configuration,
    Seeds,
)
from numaproof.protocol.events import ReportedFinding
from numaproof.protocol.messages import Hello, Options, Policies
from numaproof.reports.campaign import (
    CampaignProgress,
    Standing,
    as_text,
    clear_summary,
    notes_text,
    write_summary,
)

HELLO = Hello(
    protocol=1,
    name="mine",
    version="2",
    language="C",
    kubernetes=("1.36",),
    level="kubelet",
    operations=(),
    policies=Policies(),
    options=Options(),
)

PLAN = CampaignPlanned(
    at=0.0,
    numaproof="1",
    program=("mine",),
    timeout=30.0,
    implementation=HELLO,
    configurations=(Configuration("1.36", "kubelet", baseline="documented"),),
    cases="",
    selected_cases="",
    machines={"laptop": ""},
    runs=3,
    seeds=Seeds(0, 2),
    cases_per_unit=1,
    seeds_per_unit=1,
    shrinks=1,
    units=5,
)
FINDING = CampaignFinding(
    signature="0123",
    subject="scenario",
    outcome="crash",
    message="it \x1b[31mended",
    count=1,
    first="with seed 7, 1.36 kubelet",
    configurations=("1.36 kubelet",),
    file="findings/x.yaml",
    reproduce="numaproof replay findings/x.yaml --kubernetes 1.36",
)
TALLY = CampaignTally({"pass": 3}, {"crash": 1, "pass": 1})
SUMMARY = CampaignSummary(
    plan=PLAN,
    complete=True,
    missing=0,
    tally=TALLY,
    configurations={"1.36 kubelet as documented": TALLY},
    machines={"laptop": {"pass": 3}},
    findings=(FINDING,),
)


def test_the_summary_lists_findings_and_how_to_reproduce_them() -> None:
    assert as_text(SUMMARY).splitlines() == [
        "mine 2, 1 machine",
        "  1.36 kubelet as documented: case runs 3 pass; scenarios 1 crash, 1 pass",
        "1 finding:",
        "  0123 CRASH scenario",
        "    it ⟨U+001B⟩[31mended",
        "    1 time, first with seed 7, 1.36 kubelet",
        "    numaproof replay findings/x.yaml --kubernetes 1.36",
    ]
    assert as_text(SUMMARY, Path("my out")).endswith(
        "    numaproof replay 'my out/findings/x.yaml' --kubernetes 1.36\n"
    )


def test_a_difference_has_a_line_for_each_side() -> None:
    sides = ReportedFinding("reference", "cpus", "cpus", "1,9", "1,8")
    found = msgspec.structs.replace(FINDING, message=str(sides), finding=sides)
    text = as_text(msgspec.structs.replace(SUMMARY, findings=(found,)))
    assert "    cpus\n      expected 1,9\n      got      1,8\n    1 time" in text


def test_a_folder_with_invalid_utf_8_is_quoted_for_a_shell() -> None:
    lines = as_text(SUMMARY, Path("a\udcff")).splitlines()
    assert lines[-1].strip() == (r"numaproof replay $'a\xff/findings/x.yaml' --kubernetes 1.36")


def test_an_incomplete_campaign_is_not_reported_as_passed() -> None:
    clean = msgspec.structs.replace(SUMMARY, findings=())
    assert as_text(clean).endswith("No findings.\n")
    partly = msgspec.structs.replace(clean, complete=False, missing=2)
    assert as_text(partly).endswith(
        "INCOMPLETE: 2 units left; run the same command to resume.\nNo findings so far.\n"
    )


def test_files_are_written_for_programs_and_people(tmp_path: Path) -> None:
    write_summary(SUMMARY, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"summary.json", "summary.txt"}
    plain = json.loads((tmp_path / "summary.json").read_text())
    assert plain["findings"][0]["message"] == "it \x1b[31mended"
    assert plain["plan"]["seeds"] == {"first": 0, "stop": 2}
    (tmp_path / "events.jsonl").touch()
    clear_summary(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["events.jsonl"]


@pytest.mark.parametrize(
    ("standing", "text"),
    [
        (Standing(0, 10, 0, 0, 0, 0.0), "0 failed, 0.0 units/s"),
        (Standing(5, 10, 1234, 2, 5, 2.0), "1,234 failed (2 distinct), 2.5 units/s, 0:02 left"),
        (Standing(1, 7201, 0, 0, 1, 1.0), "0 failed, 1.0 units/s, 2:00:00 left"),
        # Nine of ten units were finished by an earlier run at another rate.
        (Standing(9, 10, 0, 0, 1, 2.0), "0 failed, 0.5 units/s, 0:02 left"),
    ],
)
def test_progress_shows_failures_rate_and_time_left(standing: Standing, text: str) -> None:
    assert str(standing) == text


def test_plain_progress_is_occasional_and_final() -> None:
    stream = io.StringIO()
    with CampaignProgress(stream, {}) as progress:
        progress.line("begins")
        for done in range(1, 31):
            progress.show(Standing(done, 30, 0, 0, done, float(done)))
    assert [line.split(" units, ")[0] for line in stream.getvalue().splitlines()] == [
        "begins",
        "1 of 30",
        "11 of 30",
        "21 of 30",
        "30 of 30",
    ]


class _Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_live_progress() -> None:
    screen = _Screen()
    with CampaignProgress(screen, {"TERM": "xterm", "COLUMNS": "100"}) as progress:
        progress.show(Standing(5, 10, 3, 2, 5, 2.0))
        progress.line("http://127.0.0.1:8787/status")
    written = screen.getvalue()
    assert "5/10" in written
    assert "3 failed (2 distinct), 2.5 units/s, 0:02 left" in written
    assert "http://127.0.0.1:8787/status\n" in written


def test_notes_are_shown_after_the_findings() -> None:
    assert notes_text([]) == ""
    assert notes_text(["unit: it \x1b[31mended"]) == (
        "1 note, not counted as findings:\n  unit: it ⟨U+001B⟩[31mended\n"
    )
    many = notes_text([str(number) for number in range(23)]).splitlines()
    assert many[0] == "23 notes, not counted as findings:"
    assert many[-1] == "  and 3 more in events.jsonl"
    assert len(many) == 22
