"""The scripts around the kubelet adapter, as far as they work without Go."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numaproof.protocol.releases import RELEASES

FOLDER = Path(__file__).parents[2] / "adapters" / "kubelet"


@pytest.fixture
def without_go(tmp_path: Path) -> dict[str, str]:
    """An environment with only the programs that the scripts call, and without Go."""
    for name in ("dirname", "realpath"):
        program = shutil.which(name)
        assert program
        (tmp_path / name).symlink_to(program)
    return {**os.environ, "PATH": str(tmp_path)}


@pytest.mark.parametrize(
    "command",
    [
        ("/bin/sh", str(FOLDER / "check.sh"), "/nonexistent"),
        (sys.executable, str(FOLDER / "reach"), "--release", "1.36"),
        (sys.executable, str(FOLDER / "reach" / "choose.py")),
    ],
    ids=["check", "reach", "choose"],
)
def test_scripts_that_need_go_are_skipped_without_it(
    command: tuple[str, ...], without_go: dict[str, str]
) -> None:
    ended = subprocess.run(command, env=without_go, capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert ended.stdout == "skipped: building the kubelet adapter needs Go\n"


def test_an_unsupported_release_is_refused(tmp_path: Path) -> None:
    command = ("/bin/sh", str(FOLDER / "build.sh"), "1.12", str(tmp_path / "kubelet"))
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    known = " ".join(f"{release}.mod" for release in RELEASES)
    assert f"no releases/1.12.mod; choose one of: {known}\n" in ended.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_a_build_has_tags_for_earlier_and_later_releases(release: str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    go.chmod(0o755)
    command = ("/bin/sh", str(FOLDER / "build.sh"), release, str(tmp_path / "kubelet"), "-x")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    at = RELEASES.index(release)
    tags = [f"since_{name}" for name in RELEASES[: at + 1]]
    tags += [f"until_{name}" for name in RELEASES[at:]]
    assert words[words.index("-tags") + 1].split() == [tag.replace(".", "_") for tag in tags]
    assert f"-modfile=releases/{release}.mod" in words
    assert words[-2:] == ["-x", "."]


def test_every_release_pins_its_modules_with_checksums() -> None:
    mods = {file.stem for file in (FOLDER / "releases").glob("*.mod")}
    sums = {file.stem for file in (FOLDER / "releases").glob("*.sum")}
    assert mods == sums == set(RELEASES)
    for release in mods:
        text = (FOLDER / "releases" / f"{release}.mod").read_text()
        assert f"k8s.io/kubernetes v{release}." in text


def test_a_board_names_every_kubelet_and_ends_with_the_worst_exit_code(tmp_path: Path) -> None:
    (tmp_path / "kubelets").mkdir()
    for name in ("a", "b"):
        (tmp_path / "kubelets" / name).touch()
    stub = tmp_path / "bin" / "numaproof"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\necho "  $*"\ncase "$*" in *kubelets/a*) exit 1 ;; esac\n')
    stub.chmod(0o755)
    environment = {**os.environ, "PATH": f"{stub.parent}:{os.environ['PATH']}"}
    command = ("/bin/sh", str(FOLDER / "binary" / "board.sh"), str(tmp_path))
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout.replace(str(tmp_path), "F").splitlines() == [
        "F/kubelets/a",
        "  check --kubelet F/kubelets/a --out F/reports/a --quick",
        "F/kubelets/b",
        "  check --kubelet F/kubelets/b --out F/reports/b --quick",
        "  board F/reports --out F/site",
    ]
