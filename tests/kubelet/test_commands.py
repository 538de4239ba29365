"""Commands say in one line why a kubelet can't be checked, and name its build if it can."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.scripts import kubelet_script
from numaproof.cli import targets
from numaproof.cli.main import main

Run = Callable[..., tuple[int, str, str]]

ENDS = 'echo "unknown flag: --no-such" >&2; exit 1'
SELECTED = ("--machine", "laptop-4c8t", "--select", "example-*")


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """Runs the command in an empty folder; its exit code, output and errors."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def run(*args: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["numaproof", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capfd.readouterr()
        assert "Traceback" not in written.out + written.err
        assert isinstance(ended.value.code, int)
        return ended.value.code, written.out, written.err.splitlines()[-1] if written.err else ""

    return run


@pytest.fixture
def kubelet(tmp_path: Path) -> Path:
    """A kubelet that doesn't start."""
    return kubelet_script(tmp_path / "kubelet", ENDS)


@pytest.mark.parametrize("name", ["check", "fuzz", "replay", "campaign"])
@pytest.mark.usefixtures("namespaces_permitted")
def test_a_kubelet_that_does_not_start_is_one_error(name: str, command: Run, kubelet: Path) -> None:
    what = ("example-guaranteed-integer-is-exclusive",) if name == "replay" else ()
    code, out, error = command(name, *what, "--kubelet", kubelet)
    assert (code, out) == (2, "")
    assert error == (
        f"Error: --kubelet: {kubelet}: start: refused: unknown flag: --no-such;"
        " add what it needs with --kubelet-arg"
    )
    assert not list(Path("numaproof-report").glob("*/*.*"))


@pytest.mark.usefixtures("namespaces_permitted")
def test_an_error_names_the_side_and_the_argument(command: Run, kubelet: Path) -> None:
    code, _, error = command("diff", "--right-kubelet", kubelet, "--kubelet-arg=--no-such")
    assert code == 2
    assert error.startswith(f"Error: --right-kubelet: {kubelet}: start: refused: unknown flag")
    assert error.endswith("; check --kubelet-arg")


@pytest.mark.usefixtures("namespaces_permitted")
def test_a_kubelet_that_hangs_needs_more_time(command: Run, tmp_path: Path) -> None:
    kubelet = kubelet_script(tmp_path / "kubelet", "exec tail -f /dev/null")
    code, _, error = command("check", "--kubelet", kubelet, "--timeout", "3s")
    assert code == 2
    assert re.fullmatch(
        f"Error: --kubelet: {kubelet}: no answer to (hello|start) within 3 s;"
        " give it more time with --timeout",
        error,
    )


def test_a_campaign_checks_a_kubelet_as_one_release(command: Run, kubelet: Path) -> None:
    releases = ("--kubernetes", "1.36", "--kubernetes", "1.37")
    code, _, error = command("campaign", "--kubelet", kubelet, *releases)
    assert (code, error) == (
        2,
        "Error: a kubelet is checked as one release; give --kubernetes only once",
    )


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--v=1", "numaproof reads the log; give --v=2 or more"),
        ("-v", "numaproof reads the log; give --v=2 or more"),
        ("--config=x", "numaproof itself sets --config; remove it"),
        ("--root-dir", "numaproof itself sets --root-dir; remove it"),
    ],
)
@pytest.mark.parametrize("name", ["check", "doctor"])
def test_arguments_that_numaproof_sets_are_refused(
    name: str, argument: str, problem: str, command: Run, kubelet: Path
) -> None:
    code, _, error = command(name, "--kubelet", kubelet, f"--kubelet-arg={argument}")
    assert code == 2
    assert error == f"Error: Invalid value for '--kubelet-arg': {argument}: {problem}"


@pytest.mark.parametrize("option", ["--kubelet-arg=--v=3", "--kubernetes=1.36"])
def test_the_doctor_reads_every_option_or_refuses_it(option: str, command: Run) -> None:
    code, _, error = command("doctor", option, "cat")
    name, _, _ = option.partition("=")
    assert (code, error) == (2, f"Error: {name} needs --kubelet; add it or remove the option")


@pytest.mark.usefixtures("namespaces_permitted")
def test_another_release_than_its_own_is_noted(command: Run, tmp_path: Path) -> None:
    kubelet = kubelet_script(tmp_path / "kubelet", ENDS, version="1.38.0")
    code, out, _ = command("doctor", "--kubelet", kubelet, "--kubernetes", "1.37", "--json")
    assert code == 1
    found = {one["name"]: one for one in json.loads(out)["checks"]}
    assert found["kubelet"]["state"] == "Kubernetes 1.38.0, checked as 1.37"
    assert "unknown flag" in found["trial"]["state"]


@pytest.mark.usefixtures("namespaces_permitted")
def test_a_check_as_another_release_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubelet = kubelet_script(tmp_path / "kubelet", ENDS, version="1.36.2")
    targets.find_kubelet(str(kubelet), "1.36", "--kubelet")
    assert capsys.readouterr().err == ""
    targets.find_kubelet(str(kubelet), "1.37", "--kubelet")
    assert capsys.readouterr().err == (
        f"numaproof: {kubelet} is Kubernetes 1.36.2; its answers are compared with those of 1.37\n"
    )


def test_earlier_reports_survive_wrong_options(command: Run) -> None:
    assert command("check", *SELECTED)[0] == 0
    before = {file: file.read_bytes() for file in Path("numaproof-report/check").iterdir()}
    code, _, error = command("check", "--select", "recorded-*", "--machine", "laptop-4c8t")
    assert (code, error.startswith("Error: none of the selected cases")) == (2, True)
    after = {file: file.read_bytes() for file in Path("numaproof-report/check").iterdir()}
    assert after == before


@pytest.fixture
def real_kubelet() -> Path:
    """The kubelet that NUMAPROOF_KUBELET_BINARY names; skips the test if there is none."""
    path = os.environ.get("NUMAPROOF_KUBELET_BINARY")
    if path is None:
        pytest.skip("NUMAPROOF_KUBELET_BINARY names no kubelet")
    return Path(path)


def test_units_of_a_campaign_are_short_and_its_build_is_named(
    command: Run, real_kubelet: Path
) -> None:
    pytest.importorskip("distributed", reason="needs the extra campaign")
    one = ("--machine", "laptop-4c8t", "--select", "example-guaranteed-integer-is-exclusive")
    code, _, _ = command("campaign", "--kubelet", real_kubelet, *one, "--no-seeds")
    assert code == 0
    plan = json.loads(Path("numaproof-report/campaign/events.jsonl").read_text().splitlines()[0])
    assert (plan["cases_per_unit"], plan["seeds_per_unit"]) == (10, 2)
    digest = hashlib.sha256(real_kubelet.read_bytes()).hexdigest()
    assert plan["implementation"]["build"]["SHA-256"] == digest
