from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.events import Progress, RunEnded
from numaproof.reports.files import FILES, EventsError, Recorder, read_events, render

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.events import AnyEvent


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def record(folder: Path, events: list[AnyEvent]) -> None:
    with Recorder(folder) as recorder:
        for event in events:
            recorder.record(event)


def test_a_run_writes_its_events_and_every_report(
    tmp_path: Path, stream: MakeStream, story: MakeRun
) -> None:
    events = stream(story())
    record(tmp_path / "a" / "b", events)
    assert set(contents(tmp_path / "a" / "b")) == set(FILES)
    assert read_events(tmp_path / "a" / "b" / "events.jsonl") == tuple(events)


def test_equal_events_give_equal_reports(
    tmp_path: Path, stream: MakeStream, story: MakeRun, run: MakeRun
) -> None:
    events = stream(story(), run("crash", stderr="x"), run())
    record(tmp_path / "one", events)
    record(tmp_path / "two", events)
    summary = render(tmp_path / "one" / "events.jsonl", tmp_path / "three")
    first, third = contents(tmp_path / "one"), contents(tmp_path / "three")
    assert first == contents(tmp_path / "two")
    assert third == {name: text for name, text in first.items() if name != "events.jsonl"}
    assert summary.verdict == "failed"


def test_each_event_is_on_disk_as_soon_as_it_is_recorded(
    tmp_path: Path, stream: MakeStream, run: MakeRun
) -> None:
    events = stream(run())
    with Recorder(tmp_path) as recorder:
        for number, event in enumerate(events, 1):
            recorder.record(event)
            assert read_events(tmp_path / "events.jsonl") == tuple(events[:number])


def test_a_killed_runs_report_is_incomplete(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from numaproof.protocol.events import RunStarted
from numaproof.reports.files import Recorder
with Recorder(Path(sys.argv[1])) as recorder:
    recorder.record(RunStarted(0.0, "check", "0", "1.35", "kubelet", "x", 9, {}, ()))
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert list(contents(tmp_path)) == ["events.jsonl"]
    assert render(tmp_path / "events.jsonl", tmp_path).verdict == "incomplete"
    assert b"Incomplete" in (tmp_path / "report.html").read_bytes()


def test_an_aborted_run_is_reported_as_incomplete(
    tmp_path: Path, stream: MakeStream, run: MakeRun
) -> None:
    def record_and_raise() -> None:
        with Recorder(tmp_path) as recorder:
            for event in stream(run())[:-1]:
                recorder.record(event)
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        record_and_raise()
    assert set(contents(tmp_path)) == set(FILES)
    assert b'type="incomplete"' in (tmp_path / "junit.xml").read_bytes()


def test_the_end_of_an_interrupted_run_has_the_latest_time(
    tmp_path: Path, run_start: MakeStarted
) -> None:
    with Recorder(tmp_path) as recorder:
        for event in (
            run_start(kind="fuzz"),
            Progress(7.5, 50),
            RunEnded(0.0, False, {"pass": 50}, message="interrupted"),
        ):
            recorder.record(event)
    assert read_events(tmp_path / "events.jsonl")[-1].at == 7.5


def test_progress_events_are_not_stored(tmp_path: Path, stream: MakeStream, run: MakeRun) -> None:
    events = stream(run())
    record(tmp_path, [events[0], Progress(0.5, 1), *events[1:]])
    assert read_events(tmp_path / "events.jsonl") == tuple(events)


def test_a_new_run_removes_earlier_reports(
    tmp_path: Path, stream: MakeStream, run: MakeRun
) -> None:
    record(tmp_path, stream(run()))
    (tmp_path / "mine.txt").write_text("kept")
    with Recorder(tmp_path):
        assert set(contents(tmp_path)) == {"events.jsonl", "mine.txt"}
    assert (tmp_path / "mine.txt").read_text() == "kept"


def test_a_line_truncated_by_a_kill_is_ignored(
    tmp_path: Path, stream: MakeStream, run: MakeRun
) -> None:
    record(tmp_path, stream(run()))
    path = tmp_path / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    assert render(path, tmp_path).verdict == "incomplete"


def test_a_file_without_events_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "dinner"}\n')
    with pytest.raises(EventsError, match=r"events\.jsonl: line 1: .*dinner"):
        read_events(path)
    with pytest.raises(EventsError, match=r"missing: No such file"):
        read_events(tmp_path / "missing")


def test_recording_outside_the_with_block_is_refused(tmp_path: Path, stream: MakeStream) -> None:
    with pytest.raises(ValueError, match="not open"):
        Recorder(tmp_path).record(stream()[0])


def test_a_failed_report_leaves_no_partial_file(
    tmp_path: Path, stream: MakeStream, run: MakeRun
) -> None:
    record(tmp_path, stream(run()))
    (tmp_path / "report.md").unlink()
    (tmp_path / "report.md").mkdir()
    with pytest.raises(OSError, match=r"report\.md"):
        render(tmp_path / "events.jsonl", tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_ten_thousand_events_are_recorded_and_rendered(
    tmp_path: Path, stream: MakeStream, run: MakeRun
) -> None:
    runs = [
        run(case=f"case-{number % 400}", machine=f"m{number // 400}") for number in range(10_000)
    ]
    record(tmp_path, stream(*runs))
    assert (tmp_path / "junit.xml").read_bytes().count(b"<testcase") == 10_000
