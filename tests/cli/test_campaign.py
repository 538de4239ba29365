"""`numaproof campaign`: options and errors. test_kills.py tests kills."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof import campaign

pytest.importorskip("distributed", reason="campaigns need numaproof[campaign]")

Command = Callable[..., Any]

OUT = Path("numaproof-report/campaign")
KINDS = ("check", "fuzz")
SMALL = ("--machine", "laptop-4c8t", "--select", "example-*", "--workers", "1")


@pytest.mark.slow
def test_the_reference_passes_in_every_release(command: Command) -> None:
    releases = ("--kubernetes", "1.36", "--kubernetes", "1.33")
    ended = command("campaign", *SMALL, *releases, "--seeds", "0:3", "--json")
    assert ended.code == 0
    assert ended.json() == json.loads((OUT / "summary.json").read_text())
    assert ended.json()["tally"] == {"cases": {"pass": 14}, "scenarios": {"pass": 6}}
    assert list(ended.json()["configurations"]) == ["1.36 kubelet", "1.33 kubelet"]
    pages = sorted(file.name for file in OUT.glob("*.html"))
    assert pages == [f"report-{one}-{kind}.html" for one in ("1.33", "1.36") for kind in KINDS]
    assert "7 case runs" in (OUT / "report-1.36-check.html").read_text("utf-8")
    assert "4 of 4 units, 0 failed" in ended.err

    again = command("campaign", *SMALL, *releases, "--seeds", "0:3", "--json")
    assert again.json() == ended.json()
    assert again.err == "resuming after 4 units\n"

    other = command("campaign", *SMALL, "--no-seeds")
    assert other.code == 2
    assert "it belongs to another campaign, with configurations " in other.err
    assert "--fresh to start over" in other.err


def test_a_campaign_leaves_no_temporary_files(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert command("campaign", *SMALL, "--no-seeds").code == 0
    assert not list(place.iterdir())


@pytest.mark.parametrize("victim", ["$$", "$PPID"], ids=["itself", "its supervisor"])
def test_a_program_killed_before_its_first_hello_is_retried(
    command: Command, tmp_path: Path, victim: str
) -> None:
    (tmp_path / "armed").touch()
    server = shlex.join([sys.executable, "-m", "numaproof", "reference"])
    shell = f"rm armed 2>/dev/null && kill -9 {victim}; exec {server}"
    program = shlex.join(["sh", "-c", f"cd {tmp_path}; {shell}"])
    ended = command("campaign", "--implementation", program, "--no-seeds", "--no-cases")
    assert "nothing to do" in ended.err
    assert not (tmp_path / "armed").exists()


def test_without_a_scheduler_the_campaign_stops_and_can_resume(command: Command) -> None:
    ended = command("campaign", "--scheduler", "nonsense://", "--insecure", *SMALL[:4])
    assert ended.code == 3
    assert "numaproof: no workers at nonsense://: " in ended.err
    assert ended.err.endswith("; run the same command to resume\n")


@pytest.mark.parametrize("package", ["dask", "cryptography"])
def test_a_missing_package_is_named(
    command: Command, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.delattr(campaign, "cluster", raising=False)
    monkeypatch.delitem(sys.modules, "numaproof.campaign.cluster", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    ended = command("campaign")
    assert ended.code == 2
    assert (
        f"campaigns need the package {package}; run pip install 'numaproof[campaign]'" in ended.err
    )
