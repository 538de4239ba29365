"""The run over all adapters, as far as it works without their build tools."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).parents[2] / "adapters" / "others.py"


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, with adapters from the test."""
    spec = importlib.util.spec_from_file_location("others", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "others", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path / "adapters")
    return module


def adapter(others: Any, name: str, build: str, *, has_known_failures: bool = False) -> None:
    folder = others.HERE / name
    folder.mkdir(parents=True)
    (folder / "build.sh").write_text(f"#!/bin/sh\n{build}\n")
    (folder / "build.sh").chmod(0o755)
    if has_known_failures:
        (folder / "known-failures.yaml").write_text("known_failures: []\n")


def ran(others: Any, tmp_path: Path, *names: str) -> tuple[int, list[str]]:
    told: list[str] = []
    code = others.main([*names, "--out", str(tmp_path / "out")], told.append)
    return code, told


def test_an_adapter_that_cannot_be_built_is_skipped_with_a_reason(
    others: Any, tmp_path: Path
) -> None:
    adapter(others, "one", "echo 'skipped: needs Go' >&2; exit 77")
    assert ran(others, tmp_path) == (0, ["one: skipped needs Go"])


def test_a_failed_build_fails_the_run_but_others_continue(others: Any, tmp_path: Path) -> None:
    adapter(others, "broken", "exit 3")
    adapter(others, "later", "echo 'skipped: needs Node' >&2; exit 77")
    code, told = ran(others, tmp_path)
    assert code == 1
    assert told[0].startswith("broken: differs build: ")
    assert told[1] == "later: skipped needs Node"


def test_adapters_are_checked_as_far_as_they_claim(others: Any, tmp_path: Path) -> None:
    adapter(others, "one", "exit 0", has_known_failures=True)

    def commands_for(*operations: str) -> dict[str, list[str]]:
        program = tmp_path / "a program"
        claims = {"operations": operations}
        return dict(others.commands("one", program, claims, tmp_path, steps=100))

    discoverer = commands_for("discover")
    assert [*discoverer] == ["check"]
    # On a board, some of the cases would not be a whole run.
    assert "--select" not in discoverer["check"]
    assert str(others.HERE / "one" / "known-failures.yaml") in discoverer["check"]
    assert f"'{tmp_path / 'a program'}'" in discoverer["check"]
    merger = commands_for("merge")
    assert [*merger] == ["check", "fuzz"]
    assert merger["fuzz"][merger["fuzz"].index("--examples") + 1] == "12"
    assert [*commands_for("assign", "merge")] == ["check", "fuzz", "assign"]


def test_run_yaml_adds_options_to_parts(others: Any, tmp_path: Path) -> None:
    adapter(others, "one", "exit 0")
    options = others.HERE / "one" / "run.yaml"
    options.write_text("check: --timeout 60s --machine 'epyc-*'\n")
    claims = {"operations": ["start"]}
    asked = dict(others.commands("one", tmp_path / "run", claims, tmp_path, steps=100))
    at = asked["check"].index("--timeout")
    assert asked["check"][at : at + 4] == ["--timeout", "60s", "--machine", "epyc-*"]
    assert "--timeout" not in asked["fuzz"]


def test_without_build_tools_all_adapters_are_skipped(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("dirname", "realpath", "sh"):
        program = shutil.which(name)
        assert program
        (bare / name).symlink_to(program)
    command = [sys.executable, str(SCRIPT), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PATH": str(bare)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = ended.stdout.splitlines()
    names = sorted(one.parent.name for one in SCRIPT.parent.glob("*/build.sh"))
    names.remove("kubelet")
    assert [line.partition(": skipped needs ")[0] for line in lines] == names
    assert ended.returncode == 0, ended.stderr


def test_an_unknown_adapter_is_refused_with_the_known_ones() -> None:
    command = [sys.executable, str(SCRIPT), "lscpuu"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "no adapter lscpuu; the adapters are " in ended.stderr
    assert "hwloc" in ended.stderr
