"""The GitHub Action and the container recipe, as far as they run without GitHub and containers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from builders import checkout
from builders.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = ACTION["runs"]["steps"]
EXPRESSION = re.compile(r"\$\{\{ ([\w.-]+) \}\}")


def fill_in(text: str, inputs: dict[str, str]) -> str:
    """Replaces expressions in the action's values like GitHub."""
    values = {f"inputs.{name}": one.get("default") for name, one in ACTION["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    values["steps.python.outputs.python-path"] = sys.executable
    return EXPRESSION.sub(lambda match: values[match[1]], text)


class Job:
    """A GitHub job that uses the action: its folder and output."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder / "workspace"
        self.folder.mkdir()
        self.inputs = {name.replace("_", "-"): value for name, value in inputs.items()}
        self.summary = folder / "summary.md"
        temporary = folder / "runner"
        temporary.mkdir()
        # The result of the install step.
        (temporary / "numaproof").symlink_to(sys.prefix)
        self.environment = {
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_TEMP": str(temporary),
        }

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Runs a step like GitHub."""
        (step,) = [step for step in STEPS if step.get("name") == name]
        given = {key: fill_in(value, self.inputs) for key, value in step.get("env", {}).items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env=os.environ | self.environment | given,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def reference() -> str:
    """A program that speaks the protocol."""
    return f"{sys.executable} -m numaproof reference"


def test_a_check_takes_every_input_and_leaves_a_summary_and_reports(
    tmp_path: Path, reference: str
) -> None:
    job = Job(
        tmp_path,
        implementation=reference,
        level="placement",
        kubernetes="1.35",
        select="example-*\n",
        args="--machine laptop-4c8t --timeout 20s",
    )
    ended = job.run("Check")
    assert ended.returncode == 0, ended.stderr
    assert "Kubernetes 1.35, level placement, 7 case runs on 1 machine" in ended.stdout
    job.run("Summary")
    assert "placement" in job.summary.read_text()
    uploaded = STEPS[-1]["with"]["path"]
    assert (job.folder / uploaded / "junit.xml").is_file()


def test_inputs_are_arguments_and_never_commands(tmp_path: Path, reference: str) -> None:
    job = Job(tmp_path, implementation=reference, select="$(touch stolen)", args="`touch stolen`")
    assert job.run("Check").returncode == 2
    assert not list(job.folder.iterdir())
    assert not [step for step in STEPS if EXPRESSION.search(step.get("run", ""))]


def test_a_failed_check_fails_the_job(tmp_path: Path) -> None:
    job = Job(tmp_path, implementation="false", args="--machine laptop-4c8t")
    assert job.run("Check").returncode == 1


def test_without_a_report_there_is_no_summary(tmp_path: Path) -> None:
    job = Job(tmp_path)
    assert job.run("Summary").returncode == 0
    assert not job.summary.exists()


def test_every_input_is_described_and_used() -> None:
    used = set(EXPRESSION.findall(yaml.safe_dump(STEPS)))
    assert {f"inputs.{name}" for name in ACTION["inputs"]} <= used
    assert all(one["description"] for one in ACTION["inputs"].values())
    assert not [name for name, one in ACTION["inputs"].items() if one.get("required")]
    assert ACTION["inputs"].keys() >= {"implementation", "kubelet"}  # either will do


def test_every_step_runs_bash_or_a_pinned_action() -> None:
    for step in STEPS:
        assert ("run" in step) != ("uses" in step)
        assert "uses" in step or step["shell"] == "bash"
        assert "run" in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Returns the instructions of a container recipe with their arguments."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            yield name, rest


def test_the_container_runs_numaproof_as_a_normal_user() -> None:
    recipe = list(instructions((ROOT / "Containerfile").read_text()))
    last: dict[str, Any] = dict(recipe)
    assert last["USER"] == "numaproof"
    assert last["ENTRYPOINT"] == '["numaproof"]'
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in recipe} <= known
    names = [name for name, _ in recipe]
    assert names.index("USER") > max(at for at, name in enumerate(names) if name == "RUN")


def test_the_container_gets_every_folder_of_the_package() -> None:
    kept = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = {"src", *checkout.folders()}
    files = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert kept == folders | files
