"""Every command on the pages, typed as its reader would type it, in a folder with what it names.

A command is run, or a row of `NOT_RUN` says why it can't be; then its options are parsed at least.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from builders.checkout import ROOT
from builders.documented_commands import (
    Command,
    Diff,
    blocks_of_no_language,
    command_lines,
    commands,
    parse,
    steps,
)
from numaproof import fakesys
from numaproof.reference.checkpoints import memory
from numaproof.reference.deviations.releases import release
from numaproof.reference.memory.state import MemoryState, MemoryTable, NodeMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NOT_RUN = {
    "needs a kubelet's binary, and root": ("sudo .venv/bin/numaproof *",),
    "needs a build of the kubelet": (
        "*/tmp/kubelet-1.3?*",
        "python adapters/kubelet/reach/building.py 1.37 ./instrumented",
        'numaproof campaign --no-cases --guided --implementation "./instrumented -v=-1"',
        "sed -e * releases/1.37.mod > releases/1.38.mod",
        "cd adapters/kubelet",
        'for release in 1.30 * --right "/tmp/kubelet-$release -v=-1"*',
        "numaproof diff --kind upgrade *",
        "mkdir -p kubelets-board/kubelets",
        "for release in 1.30 * kubelets-board/kubelets/kubelet-$release*",
        "cp ./kubelet-vendor kubelets-board/kubelets/",
        "sudo env *adapters/kubelet/binary/board.sh kubelets-board",
    ),
    "needs the sources of a release to come": (
        'cd "$(go env GOMODCACHE)/k8s.io"',
        "for file in cmd/kubelet/app/server.go *",
    ),
    "replaces the recordings with new ones": (
        "python adapters/kubelet/reach/choose.py *",
        "rm fixtures/recordings/*",
    ),
    "needs a package index": (
        "*pip install *",
        "python3 -m venv .venv*",
    ),
    "runs for minutes to hours; tests/test_docs.py looks its environment up": (
        ".venv/bin/pytest -n 2",
        ".venv/bin/tox*",
        "*tox run -e *",
        "python adapters/others.py *",
        'numaproof campaign --implementation "./my-driver --protocol" --seeds 0:100000',
    ),
    "needs a cluster": (
        "dask *",
        "kubectl get pods *",
        "kubectl numaproof *",
        "numaproof * --node worker-7.tgz *",
        "numaproof campaign --scheduler *",
        "numaproof upgrade *--config /var/lib/kubelet/config.yaml *",
    ),
    "needs a container engine": ("podman *",),
}
"""Why commands are only parsed. Each form must match a command of a page."""

PROGRAMS = ("jq", "lscpu")
"""Programs that a machine may lack; the rest of a block that needs one is left out there."""

IN_EXAMPLES = ("docs/fuzzing.md", "docs/write-an-adapter.md")
"""Pages whose reader is in `examples`, not at the top of the repository."""

CHANGED = {"docs/fuzzing.md": "driver.py", "docs/write-an-adapter.md": "my-driver/adapter.py"}
CHANGED |= {"docs/run-nodes.md": "examples/node/kubelet.yaml"}
"""The file that the differences on a page are about."""

FILE = re.compile(r"`([\w.-]+)`:\n\n```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A file that a page shows."""

DRIVER = """#!/bin/sh
exec numaproof reference
"""
QUICKLY = f"""#!{sys.executable}
# The command, but `check` plays the quick set, `fuzz` 20 examples, `exhaust` has a bound of one
# CPU, and minutes last a second.
import sys
from numaproof.cli import entry, main, targets
targets._UNITS |= {{"m": 1, "h": 5}}
main.cli.context_settings["default_map"] = {{
    "check": {{"quick": True}},
    "fuzz": {{"max_examples": 20}},
}}
if "exhaust" in sys.argv:
    from numaproof.conformance.exhaustion import bounds
    bounds.BOUNDS["small"] = bounds.Bound("small", 1, (bounds.MergesSize(1, 1, 1),), ())
if __name__ == "__main__":
    entry.run()
"""
KUBELET = """apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
"""
STATIC = 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n'
STATIC_MEMORY = """memoryManagerPolicy: Static
systemReserved: {memory: 924Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]
"""
WRONG = f"""{KUBELET}# The CPU Manager of a node with mistakes,

# which reserves no CPU:
cpuManagerPolicy: static

# and its Topology Manager,
# which aligns nothing:
topologyManagerPolicy: none
topologyManagerScope: pod

kubeReserved:
  gpu: "1"
"""
FINDING = "docs/findings/free-core-by-average.yaml"
OTHER_FILES: dict[str, dict[str, str | None]] = {
    f"numaproof promote {FINDING} *": {FINDING: (ROOT / FINDING).read_text("utf-8")},
    "numaproof profile capture snapshot.tar.xz *": {"my-server.yaml": None},
    "numaproof config check kubelet.yaml --machine laptop-4c8t *": {"kubelet.yaml": WRONG},
    "numaproof state check *": {
        "kubelet.yaml": KUBELET + STATIC_MEMORY,
        "my-server.yaml": (ROOT / "fixtures/machines/laptop-4c8t.yaml").read_text("utf-8"),
    },
}
"""Files for a command whose page uses their names for others as well; None for one to remove."""
EXIT_CODES = {
    # cp reports files in /sys that nobody may read.
    "* && cp -dR --parents sys/*": (0, 1),
    # The nodes have no room for all pods.
    "numaproof simulate --node nodes/ *": (1,),
    # Nothing failed before.
    "* --last-failed": (2,),
}
"""The exit codes of commands that may fail."""

SECONDS = 600
"""After which a command hangs."""


def reason(command: Command) -> str | None:
    """Why a command isn't run; None if it is."""
    for why, forms in NOT_RUN.items():
        if any(fnmatchcase(command.text, form) for form in forms):
            return why
    return None


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def exit_codes(command: Command) -> tuple[int, ...]:
    """The exit codes that a command may have."""
    special = [codes for form, codes in EXIT_CODES.items() if fnmatchcase(command.text, form)]
    return special[0] if special else (int(command.fails),)


def write_files(folder: Path, files: Mapping[str, str | None]) -> None:
    for file, text in files.items():
        if text is None:
            (folder / file).unlink()
        else:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, "utf-8")


def total_memory_differs() -> bytes:
    """A Memory Manager's file from a machine with one page more than laptop-4c8t."""
    total, reserved = (13864 << 20) + 4096, 1 << 30
    free = total - reserved
    nothing = MemoryTable(0, 0, 0, 0, 0)
    tables = dict.fromkeys(("hugepages-1Gi", "hugepages-2Mi"), nothing)
    tables["memory"] = MemoryTable(total, reserved, free, 0, free)
    state = MemoryState({0: NodeMemory(0, tables, 1)}, {})
    return memory.dump(state, "Static", release("1.37").memory_files)


def write_collected_node(folder: Path, name: str) -> None:
    """A node with a machine and a configuration, as `kubectl numaproof` collects it."""
    folder.mkdir(parents=True)
    parts = f"version: 1\nnode: {name}\nkubernetes: v1.37.1\nparts: [configz.json, tree]\n"
    (folder / "collected.yaml").write_text(parts, "utf-8")
    config = '{"kubeletconfig": {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}}'
    (folder / "configz.json").write_text(config, "utf-8")
    tree = fakesys.build_tree(fakesys.load_profile("laptop-4c8t"))
    fakesys.write_directory(tree, folder / "tree")


def workspace(folder: Path, page: str = "") -> Path:
    """A checkout with the files that the commands of a page name."""
    there = folder / "numaproof"
    away = (".*", "build", "dist", "site", "numaproof-*")
    top = [one for one in ROOT.iterdir() if not any(fnmatchcase(one.name, x) for x in away)]
    there.mkdir()
    for one in top:
        if one.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(one, there / one.name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(one, there)
    write_program(folder / "quick" / "numaproof", QUICKLY)
    write_program(there / ".venv/bin/numaproof", QUICKLY)
    write_program(there / "my-driver", DRIVER)
    shutil.copy(ROOT / "examples/node/pods.yaml", there)
    shutil.copytree(ROOT / "docs/board", there / "numaproof-report/others")
    (there / "kubelet.yaml").write_text(KUBELET + STATIC)
    for name in ("w1", "w2"):
        write_collected_node(there / "nodes" / name, name)
    (there / "memory_manager_state").write_bytes(total_memory_differs())
    if page == "docs/reports.md":
        for run in ("numaproof-report/check", "main/numaproof-report/check"):
            select = ("--select", "example-besteffort-runs-shared", "--machine", "laptop-4c8t")
            check = (sys.executable, "-m", "numaproof", "check", *select, "--out", run)
            subprocess.run(check, cwd=there, check=True, capture_output=True)
    if page:
        text = (ROOT / page).read_text("utf-8")
        for file, content in re.findall(
            r"`([\w.-]+)`:\n\n```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL
        ):
            (there / file).write_text(content, "utf-8")
    return there


class Shell:
    """A shell, which keeps its variables and its directory between commands.

    Args:
        folder: where it starts.
        home: the folder of `workspace`, which also becomes the home directory.
        cache: what stands for ~/.cache.
    """

    def __init__(self, folder: Path, home: Path, cache: Path) -> None:
        self._home = home
        self._path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variables = {"HOME": str(home), "XDG_CACHE_HOME": str(cache), "PATH": self._path}
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("GO", "LANG"))
        }
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=kept | variables | {"PYTHONUTF8": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, command: str, *, quickly: bool) -> tuple[int, str]:
        """The exit code of a command, and what it writes."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        file = self._home / "output"
        path = f"{self._home / 'quick'}{os.pathsep}{self._path}" if quickly else self._path
        script = (
            f"PATH={shlex.quote(path)}\n"
            f"eval {shlex.quote(command)} </dev/null >{shlex.quote(str(file))} 2>&1\n"
            "echo $?\n"
        )
        stdin.write(script.encode())
        stdin.flush()
        ready, _, _ = select.select([stdout], [], [], SECONDS)
        output = file.read_text("utf-8", "replace")
        assert ready, f"{command}\nstill runs after {SECONDS} s\n{output}"
        return int(stdout.readline()), output

    def close(self) -> None:
        """Ends the shell, and a command that still runs."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def follow(page: str, home: Path, cache: Path, run: Callable[[Command], bool]) -> int:
    """Follows a page from top to bottom; the number of commands run.

    Args:
        page: its path in the repository.
        home: an empty folder.
        cache: the cache of all commands.
        run: whether to run a command.
    """
    there = workspace(home, page)
    folder = there / "examples" if page in IN_EXAMPLES else there
    shell = Shell(folder, home, cache)
    absent = [one for one in PROGRAMS if shutil.which(one) is None]
    lacking: set[int] = set()
    done = 0
    try:
        for step in steps(ROOT / page):
            if isinstance(step, Diff):
                apply_diff(step.text, folder / CHANGED[page])
                continue
            if not set(absent).isdisjoint(re.findall(r"\w+", step.text)):
                lacking.add(step.block)
            if not run(step) or step.block in lacking:
                continue
            for form, files in OTHER_FILES.items():
                if fnmatchcase(step.text, form):
                    write_files(folder, files)
            code, output = shell.run(step.text, quickly=not step.output)
            assert code in exit_codes(step), f"{step.text}\nexit code {code}\n{output}"
            assert in_order(step.output, output), f"{step.text}\n{output}"
            done += 1
    finally:
        shell.close()
    return done


def apply_diff(diff: str, file: Path) -> None:
    """Makes the change that a difference describes to a file."""
    new = "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[:1] != "-")
    old = "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[:1] != "+")
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def in_order(expected_lines: Sequence[str], output: str) -> bool:
    """Whether lines were written in this order, others between; ``…`` is any text in brackets."""
    lines = iter(output.splitlines())
    forms = [re.escape(line).replace("…", r"[^()]+") for line in expected_lines]
    return all(any(re.fullmatch(form, line) for line in lines) for form in forms)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that is empty at first, as a new user's."""
    return tmp_path_factory.mktemp("cache")


FOLLOWED = sorted({one.page for one in commands() if reason(one) is None})


@pytest.mark.slow
@pytest.mark.commands
@pytest.mark.parametrize("page", FOLLOWED)
def test_every_command_of_a_page_does_what_the_page_says(
    page: str, tmp_path: Path, cache: Path
) -> None:
    assert follow(page, tmp_path, cache, lambda command: reason(command) is None)


@pytest.mark.slow
@pytest.mark.commands
def test_the_tutorial_about_the_kubelet_works(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "NUMAPROOF_KUBELET_TUTORIAL" not in os.environ:
        pytest.skip("builds a kubelet; run by tox -e kubelet")
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    # Fetched and built once, for check.sh as well.
    for name in ("GOCACHE", "GOMODCACHE"):
        found = subprocess.run(["go", "env", name], capture_output=True, text=True, check=True)
        monkeypatch.setenv(name, found.stdout.strip())
    assert follow("docs/kubelet.md", tmp_path, cache, lambda one: "tox run" not in one.text) == 5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that a command line names."""
    there = workspace(tmp_path_factory.mktemp("parsed"))
    for file in ("adapter", "TREE.tar.xz", "ca.pem", "me.pem", "me.key"):
        (there / file).touch()
    (there / "var/lib/kubelet").mkdir(parents=True)
    (there / "var/lib/kubelet/config.yaml").write_text(KUBELET)
    (there / "fixtures/recordings/kubelet-1.36.jsonl.xz").unlink()
    return there


PARSED = [one for one in commands() if reason(one) and command_lines(one.text)]


@pytest.mark.parametrize("command", PARSED, ids=lambda one: f"{one.page}: {one.text[:50]}")
def test_the_command_line_of_a_command_not_run_is_understood(
    command: Command, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    for words in command_lines(command.text):
        parse([re.sub("^/var", "var", word) for word in words])


def test_a_wrong_option_on_a_page_is_noticed() -> None:
    for line in ("check --no-such-option", "fuzz --max-time soon", "check --level best", "chek"):
        with pytest.raises(click.ClickException):
            parse(line.split())


def test_every_reason_not_to_run_a_command_is_about_a_command_of_a_page() -> None:
    forms = {form for each in NOT_RUN.values() for form in each}
    used = {form for form in forms for one in commands() if fnmatchcase(one.text, form)}
    assert forms - used == set()


def test_every_block_with_a_prompt_states_its_language() -> None:
    assert [page for page, text in blocks_of_no_language() if re.search(r"(?m)^\$ ", text)] == []
