"""`numaproof report` on saved runs, and the origin of a run in its events."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from numaproof.cli.origin import origin_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from conftest import Command

SELECT = ("check", "--select", "static-gives-what-the-limit-says", "--machine", "laptop-4c8t")


def test_two_runs_of_the_same_program_are_equal(command: Command, tmp_path: Path) -> None:
    for name in ("before", "after"):
        assert command(*SELECT, "--out", str(tmp_path / name)).code == 0
    events = tmp_path / "after" / "events.jsonl"
    ended = command("report", str(tmp_path / "before"), str(events))
    assert ended.code == 0
    assert "Nothing newly failing · 1 unchanged" in ended.out
    text, page = tmp_path / "comparison.md", tmp_path / "comparison.html"
    outputs = ("--out", str(text), "--out", str(page))
    ended = command("report", str(tmp_path / "before"), str(events), "--json", *outputs)
    assert json.loads(ended.out)["newly_failing"] == []
    assert text.read_text("utf-8").startswith("# ✅ Nothing newly failing")
    assert "<h1>Nothing newly failing · 1 unchanged</h1>" in page.read_text("utf-8")


def test_a_folder_without_events_is_an_error(command: Command, tmp_path: Path) -> None:
    ended = command("report", str(tmp_path), str(tmp_path))
    assert ended.code == 2
    assert f"{tmp_path}/events.jsonl: No such file or directory" in ended.err


def test_the_origin_names_the_commit_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert origin_of({"GITHUB_SHA": "0123abc"}).commit == "0123abc"
    assert origin_of({}).commit == ""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(("git", *words), check=True)
    assert len(origin_of({}).commit) == 40
    (tmp_path / "file").touch()
    subprocess.run(("git", "add", "file"), check=True)
    assert origin_of({}).commit.endswith("-dirty")
