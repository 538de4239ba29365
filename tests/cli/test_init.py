"""`numaproof init`: each adapter passes as generated, and no file is ever overwritten."""

from __future__ import annotations

import configparser
import json
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from numaproof.cli import init as command_of_init
from numaproof.cli.init import SKELETONS, SOURCE_FILE
from numaproof.cli.metadata import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Command = Callable[..., Any]

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "cli/templates"
COMMON = {"tox.ini", SOURCE_FILE, ".gitignore", ".github/workflows/conformance.yml"}
TOOLS = {"go": "go", "python": "python3", "javascript": "node", "java": "java", "rust": "cargo"}
FEW = "--select example-* --machine laptop-4c8t"

every_language = pytest.mark.parametrize("language", SKELETONS)


def contents(folder: Path) -> dict[str, str]:
    """Returns the text of every file below a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in found}


class TestSource:
    """The source from which an adapter's CI installs numaproof; a single file contains it."""

    @pytest.mark.parametrize(
        ("direct_url", "source"),
        [
            (None, f"numaproof=={VERSION}"),
            (
                {
                    "url": "https://example.com/numaproof.git",
                    "vcs_info": {"vcs": "git", "commit_id": "abc"},
                },
                "numaproof @ git+https://example.com/numaproof.git@abc",
            ),
            ({"url": "file:///src/numaproof"}, "numaproof @ file:///src/numaproof"),
        ],
    )
    def test_ci_installs_numaproof_from_the_same_source(
        self,
        command: Command,
        monkeypatch: pytest.MonkeyPatch,
        direct_url: Mapping[str, object] | None,
        source: str,
    ) -> None:
        class Distribution:
            def read_text(self, name: str) -> str | None:
                assert name == "direct_url.json"
                return None if direct_url is None else json.dumps(direct_url)

        monkeypatch.setattr(command_of_init, "distribution", lambda _name: Distribution())
        ended = command("init", "mine", "--language", "python")
        assert Path("mine", SOURCE_FILE).read_text().splitlines()[1:] == [source]
        assert ("Other machines can't install" in ended.out) == ("file:" in source)


def test_every_template_is_used_and_packaged(command: Command) -> None:
    for language in SKELETONS:
        command("init", language, "--language", language)
    used = set(command_of_init._COMMON.values())
    used.add("skeletons.json")
    used |= {f"{language}/{path}" for language, one in SKELETONS.items() for path in one.files}
    there = {
        str(path.relative_to(TEMPLATES / "init")) for path in TEMPLATES.rglob("*") if path.is_file()
    }
    assert {path for path in there if "__pycache__" not in path} == used
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = {
        path
        for pattern in settings["package-data"]["numaproof.cli"]
        for path in (ROOT / "cli").glob(pattern + "/*" if pattern.endswith("**") else pattern)
    }
    assert packed >= {TEMPLATES / "init" / path for path in used}


@every_language
def test_the_workflow_runs_tox_and_keeps_the_reports(command: Command, language: str) -> None:
    command("init", "mine", "--language", language)
    (job,) = yaml.safe_load(Path("mine/.github/workflows/conformance.yml").read_text())[
        "jobs"
    ].values()
    assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    ran = [step.get("run", step.get("uses")) for step in job["steps"]]
    assert "tox run -e conformance" in ran
    (python,) = [step["with"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert python["cache-dependency-path"] == SOURCE_FILE
    always = [step for step in job["steps"] if step.get("if") == "always()"]
    assert [step["name"] for step in always] == ["Summary", "Reports and JUnit"]
    assert always[1]["with"]["path"] == "numaproof-report"


MACHINE = {
    "topology": [
        {
            "node_id": 0,
            "cores": [{"core_id": cpu, "socket_id": 0, "thread_ids": [cpu]} for cpu in range(4)],
        }
    ]
}
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
BUILDS = {
    "go": "go build -o adapter .",
    "rust": "cargo build --quiet --release --target-dir target",
}
TOOLCHAINS = [
    pytest.param(language, marks=[pytest.mark.slow] if language in BUILDS else [])
    for language in SKELETONS
]


def pod(uid: str, *containers: str, **status: str) -> dict[str, object]:
    """A pod with a limit of one CPU per container."""
    resources = {"limits": {"cpu": 1, "memory": "64Mi"}}
    return {
        "metadata": {"name": uid, "namespace": "default", "uid": uid},
        "spec": {
            "containers": [{"name": name, "resources": resources} for name in containers],
        },
        "status": status,
    }


@pytest.fixture(scope="module")
def build_adapter(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of the adapter in a language, built once."""

    @cache
    def build(language: str) -> Path:
        folder = tmp_path_factory.mktemp(language) / "mine"
        init = [sys.executable, "-m", "numaproof", "init", folder, "--language", language]
        subprocess.run(init, check=True, capture_output=True)
        if language in BUILDS:
            subprocess.run(shlex.split(BUILDS[language]), cwd=folder, check=True)
        return folder

    return build


@pytest.mark.parametrize("language", TOOLCHAINS)
class TestProtocol:
    """Behaviour that docs/protocol.md requires but level invariants doesn't check."""

    @pytest.fixture
    def ask(self, build_adapter: Callable[[str], Path], language: str) -> Iterator[Command]:
        if not shutil.which(TOOLS[language]):
            pytest.skip(f"{TOOLS[language]} is not installed")
        program = subprocess.Popen(
            shlex.split(SKELETONS[language].command),
            cwd=build_adapter(language),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdin
        assert program.stdout
        requests, answers = program.stdin, program.stdout

        def ask(operation: str, **args: object) -> Any:
            line = json.dumps({"id": 1, "op": operation, "args": args})
            print(line, file=requests, flush=True)
            return json.loads(answers.readline())["ok"]

        with program:
            yield ask
            requests.close()

    @pytest.fixture
    def start(self, ask: Command, tmp_path: Path) -> Command:
        return partial(ask, "start", machine=MACHINE, state_dir=str(tmp_path))

    def test_policy_none_has_no_shared_pool_and_no_allocatable_cpus(
        self, ask: Command, start: Command
    ) -> None:
        assert start(config={})["cpus"]["allocatable"] == ""
        assert ask("admit", pod=pod("a", "app"))["containers"]["app"]["cpus"] == ""
        assert ask("state")["shared"] == ""

    @pytest.mark.parametrize("config", [{}, STATIC])
    def test_a_restart_lists_every_pod_before_readmission(
        self, ask: Command, start: Command, config: object
    ) -> None:
        start(config=config)
        ask("admit", pod=pod("a", "app"))
        ask("admit", pod=pod("gone", "app"))
        before = ask("state")["pods"]["a"]
        start(config=config, pods=[pod("a", "app"), pod("unknown", "app")])
        shown = ask("state")["pods"]
        assert shown.keys() == {"a", "unknown"}
        assert shown["a"]["app"]["exclusive"] == before["app"]["exclusive"]
        assert shown["unknown"]["app"]["exclusive"] == ""

    def test_an_ended_container_is_new_when_its_pod_is_readmitted(
        self, ask: Command, start: Command
    ) -> None:
        start(config=STATIC)
        ask("admit", pod=pod("a", "app", "other"))
        kept = ask("state")["pods"]["a"]["other"]["exclusive"]
        ask("remove", uid="a", container="app")
        ask("admit", pod=pod("b", "app"))
        served = ask("admit", pod=pod("a", "app", "other"))["containers"]
        assert served["app"]["exclusive"]
        assert served["other"]["exclusive"] == kept

    def test_the_qos_class_in_the_status_decides(self, ask: Command, start: Command) -> None:
        start(config=STATIC)
        limited = ask("admit", pod=pod("a", "app", qosClass="Burstable"))
        bare = pod("b", "app", qosClass="Guaranteed")
        bare["spec"] = {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}
        assert limited["containers"]["app"]["exclusive"] == ""
        assert ask("admit", pod=bare)["containers"]["app"]["exclusive"] != ""


@pytest.mark.slow
@every_language
def test_each_adapter_builds_offline_and_passes_its_ci(
    command: Command, tmp_path: Path, language: str
) -> None:
    if not shutil.which(TOOLS[language]):
        pytest.skip(f"{TOOLS[language]} is not installed")
    command("init", "mine", "--language", language)
    file = configparser.ConfigParser()
    file.read("mine/tox.ini")
    section = file["testenv:conformance"]
    assert section.get("allowlist_externals", "") in {"", TOOLS[language]}
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    offline = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "CARGO_NET_OFFLINE": "true"}
    summary = tmp_path / "summary.md"
    environment = os.environ | offline | {"PATH": scripts, "GITHUB_STEP_SUMMARY": str(summary)}
    workflow = yaml.safe_load(Path("mine/.github/workflows/conformance.yml").read_text())
    steps = {step.get("name"): step.get("run") for step in workflow["jobs"]["conformance"]["steps"]}
    lines = section["commands"].strip().splitlines()
    short = [
        line.replace("{posargs}", FEW).replace("--examples 200", "--examples 20") for line in lines
    ]
    assert short[-1] != lines[-1]
    for line in [*short, steps["Summary"]]:
        ended = subprocess.run(
            ["bash", "-f", "-c", line] if line in short else ["bash", "-c", line],
            cwd="mine",
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
    assert "Passed" in summary.read_text()
    ignored = Path("mine/.gitignore").read_text().split()
    left = {path.parts[1] for path in Path("mine").rglob("*")} - {
        name.split("/")[0] for name in {*COMMON, *SKELETONS[language].files}
    }
    assert left <= {one.strip("/") for one in ignored} | {"Cargo.lock"}
