"""Unwritable outputs are reported before the work starts, and no earlier file is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.input_files import FINDING, KUBELET, POD
from numaproof.cli import outputs
from numaproof.conformance.differential.recordings import SUFFIX
from numaproof.reports.files import FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

Command = Callable[..., Any]


@pytest.fixture
def inputs(command: Command) -> None:  # noqa: ARG001 - in its folder
    """The input files of commands, in the current directory."""
    Path("kubelet.yaml").write_text(KUBELET)
    Path("pod.yaml").write_text(POD)
    Path("finding.yaml").write_text(FINDING)


SIMULATE = ("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "pod.yaml")
CHECK = ("check", "--machine", "laptop-4c8t", "--select", "example-*")

TO_A_FILE: dict[str, tuple[Sequence[str], str]] = {
    "check": ((*CHECK, "--write-known-failures"), "known.yaml"),
    "simulate": ((*SIMULATE, "--out"), "node.html"),
    "promote": (("promote", "finding.yaml", "--id", "mine-starts", "--out"), "cases.yaml"),
    "record": (("record", "--implementation", "/no/program", "--out"), f"mine{SUFFIX}"),
    "capture": (("profile", "capture", "/", "--out"), "mine.yaml"),
}
"""Commands that write a file, with the file's name; the last argument is its path."""

TO_A_FOLDER: dict[str, Sequence[str]] = {
    "check": (*CHECK, "--out"),
    "fuzz": ("fuzz", "--examples", "1", "--out"),
    "diff": ("diff", "--right", "/no/program", "--out"),
    "replay": ("replay", "finding.yaml", "--out"),
    "campaign": ("campaign", "--seeds", "0:1", "--out"),
    "board": ("board", ".", "--out"),
    "init": ("init", "--language", "python"),
}

NOWHERE = "a broken symbolic link; remove it or name another path"


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("which", TO_A_FILE)
def test_an_unwritable_file_is_refused_before_the_work(command: Command, which: str) -> None:
    words, name = TO_A_FILE[which]
    for folder in ("loop", "fifo", "file"):
        Path(folder).mkdir()
    Path(name).symlink_to("nowhere/at all")
    Path("dangling").symlink_to("nowhere")
    Path("loop", name).symlink_to(name)
    os.mkfifo(Path("fifo", name))
    Path("file", "in the way").touch()
    for path, said in {
        f"loop/{name}": "Too many levels of symbolic links",
        f"fifo/{name}": "is a FIFO, not a regular file",
        f"file/in the way/{name}": "Not a directory",
        name: f"cannot write {name}: is {NOWHERE}",
        f"dangling/{name}": f"cannot write dangling/{name}: dangling is {NOWHERE}",
    }.items():
        ended = command(*words, path)
        assert ended.code == 2
        assert said in ended.err
        assert path.rpartition("/")[0] in ended.err
        assert ended.out == ""


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("which", TO_A_FOLDER)
def test_an_unwritable_folder_is_refused_before_the_work(command: Command, which: str) -> None:
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nowhere/at all")
    Path("file").touch()
    for path, said in {
        "loop": "Too many levels of symbolic links",
        "loop/out": "Too many levels of symbolic links",
        "file/out": "Not a directory",
        "dangling": f"cannot write dangling: is {NOWHERE}",
        "dangling/out": f"cannot write dangling/out: dangling is {NOWHERE}",
    }.items():
        ended = command(*TO_A_FOLDER[which], path)
        assert ended.code == 2
        assert said in ended.err
        assert ended.out == ""


@pytest.mark.parametrize("name", ["tree", "tree.tar"])
def test_a_tree_is_not_written_through_a_dangling_link(command: Command, name: str) -> None:
    Path(name).symlink_to("nowhere")
    Path("dangling").symlink_to("nowhere")
    for path, said in (name, "is"), (f"dangling/{name}", "dangling is"):
        ended = command("profile", "tree", "laptop-4c8t", "--out", path)
        assert ended.code == 2
        assert f"cannot write {path}: {said} {NOWHERE}" in ended.err
    Path("empty").mkdir()
    Path("link").symlink_to("empty")
    assert command("profile", "tree", "laptop-4c8t", "--out", "link").code == 0
    assert Path("empty/sys").is_dir()


REPORTS = {
    **dict.fromkeys(("check", "fuzz", "diff", "replay"), outputs.REPORT_FILES),
    "campaign": ("events.jsonl", "summary.json", "summary.txt"),
    "board": ("index.html",),
}


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("which", REPORTS)
def test_an_unwritable_report_is_refused_before_the_work(command: Command, which: str) -> None:
    for number, name in enumerate(REPORTS[which]):
        report = Path(f"out-{number}", name)
        report.parent.mkdir()
        os.mkfifo(report)
        ended = command(*TO_A_FOLDER[which], report.parent)
        assert ended.code == 2
        assert f"numaproof: {report}: is a FIFO, not a regular file" in ended.err
        assert ended.out == ""
        assert report.is_fifo()


def test_every_written_report_is_checked_in_advance() -> None:
    assert outputs.REPORT_FILES == FILES


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("which", ["check", "simulate", "promote", "capture", "fuzz"])
def test_a_name_that_is_not_utf_8_works(command: Command, which: str) -> None:
    folder = Path(os.fsdecode(b"\xff"))
    if which == "fuzz":
        words, name = ("fuzz", "--examples", "1", "--out"), "events.jsonl"
        ended = command(*words, folder)
    else:
        words, name = TO_A_FILE[which]
        folder.mkdir()
        ended = command(*words, folder / name)
    assert ended.code == 0
    assert (folder / name).is_file()
