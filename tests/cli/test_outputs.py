"""The summary of a run that was cut short."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from numaproof.cli.outputs import follow
from numaproof.protocol.events import DivergenceFound, Progress, RunEnded
from numaproof.protocol.machine import MachineInfo
from numaproof.reports.files import EVENTS, read_events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.protocol.events import AnyEvent


def test_a_run_cut_short_counts_failures_separately(tmp_path: Path) -> None:
    def events() -> Iterator[AnyEvent]:
        yield DivergenceFound(0.1, "wrong", "fault", "a panic", MachineInfo(), ())
        yield Progress(0.2, 5)
        yield DivergenceFound(0.3, "wrong", "fail", "another answer", MachineInfo(), ())
        yield Progress(0.4, 10)
        raise KeyboardInterrupt

    follow(events(), tmp_path, as_json=True)
    *_, end = read_events(tmp_path / EVENTS)
    assert isinstance(end, RunEnded)
    assert (end.complete, end.outcomes) == (False, {"pass": 8, "fault": 1, "fail": 1})


def test_nothing_but_the_report_is_in_the_working_directory(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    subprocess.run(
        [sys.executable, "-m", "numaproof", "fuzz", "--examples", "2"],
        cwd=here,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        check=True,
        capture_output=True,
    )
    assert [file.name for file in here.iterdir()] == ["numaproof-report"]
