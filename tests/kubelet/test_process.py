"""The lines of a kubelet's log, and its end, arrive."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from numaproof import fakesys
from numaproof.kubelet.process import KubeletProcess, LogLine, parse_line

if TYPE_CHECKING:
    from pathlib import Path

I = "I1126 16:32:03.140652       9"  # noqa: E741 - how klog calls it
HINT = '{"NUMANodeAffinity":1,"Preferred":true}'


@pytest.mark.parametrize(
    ("text", "message", "values"),
    [
        ("manager.go:229] Machine: {NumCores:8 A:[]}", "Machine: {NumCores:8 A:[]}", {}),
        ('server.go:1] "Started"', "Started", {}),
        (
            'server.go:1] "Set" node="" name="a b" n=-1',
            "Set",
            {"node": "", "name": "a b", "n": "-1"},
        ),
        (
            f'topology_manager.go:1] "Topology Affinity" bestHint={HINT} pod="default/a"',
            "Topology Affinity",
            {"bestHint": HINT, "pod": "default/a"},
        ),
        (
            'a.go:1] "List" ids=["a b","c"] empty=[] object={"a":{"b c":[1, 2]}} last={}',
            "List",
            {"ids": '["a b","c"]', "empty": "[]", "object": '{"a":{"b c":[1, 2]}}', "last": "{}"},
        ),
        (r'a.go:1] "A \"b\" \\ c" err="\"x\"=1\n\té"', 'A "b" \\ c', {"err": '"x"=1\n\té'}),
        (r'a.go:1] "Bytes" err="\xff y=2"', "Bytes", {"err": r"\xff y=2"}),
        ('a.go:1] "Unfinished', '"Unfinished', {}),
        ("a.go:1] ", "", {}),
    ],
)
def test_a_line_has_a_message_and_values(text: str, message: str, values: dict[str, str]) -> None:
    source = text.partition(":")[0]
    assert parse_line(f"{I} {text}") == LogLine("I", source, message, values)


@pytest.mark.parametrize("severity", "IWEF")
def test_a_line_has_a_severity(severity: str) -> None:
    line = parse_line(f"{severity}{I[1:]} kubelet-linux_amd64.go:1] text")
    assert line == LogLine(severity, "kubelet-linux_amd64.go", "text", {})


@pytest.mark.parametrize(
    "text", ["", "panic: x", "goroutine 1 [running]:", f" {I} a.go:1] x", f"D{I[1:]} a.go:1] x"]
)
def test_other_lines_are_none_of_klog(text: str) -> None:
    assert parse_line(text) is None


@pytest.fixture
def folders(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path, Path]:
    """The tree of a laptop, a state directory and a folder for logs."""
    request.getfixturevalue("namespaces_permitted")
    if os.geteuid() != 0:
        pytest.skip("mounting needs root, or namespaces around the tests")
    tree, state, folder = (tmp_path / name for name in ("tree", "state", "run"))
    fakesys.write_directory(fakesys.build_tree(fakesys.load_profile("laptop-4c8t")), tree)
    state.mkdir()
    (folder / "log").mkdir(parents=True)
    return tree, state, folder


async def test_every_line_of_a_process_arrives(folders: tuple[Path, Path, Path]) -> None:
    lines: list[str] = []
    script = "echo one; echo two >&2; printf 'a\\377\\n\\nend'; exit 3"
    process = await KubeletProcess.start(["/bin/sh", "-c", script], folders, lines.append)
    assert await process.wait() == 3
    assert lines == ["one", "two", "a\ufffd", "", "end"]
    assert list(process.tail) == lines
    await process.end(signal.SIGKILL)
    assert await process.wait() == 3


async def test_a_process_sees_the_machine_and_its_own_folders(
    folders: tuple[Path, Path, Path],
) -> None:
    tree, state, folder = folders
    script = f"""
        ls /sys/devices/system/node
        cmp /proc/cpuinfo {tree}/proc/cpuinfo
        echo state > /var/lib/kubelet/file
        echo log > /var/log/file
        echo run > {folder}/file
        touch {tree}/file {state}/other /sys/file 2>/dev/null && echo written
    """
    lines: list[str] = []
    process = await KubeletProcess.start(["/bin/sh", "-c", script], folders, lines.append)
    await process.wait()
    assert lines == sorted(one.name for one in (tree / "sys/devices/system/node").iterdir())
    written = [state / "file", folder / "log/file", folder / "file"]
    assert [file.read_text() for file in written] == ["state\n", "log\n", "run\n"]


async def test_a_process_is_killed_at_once(folders: tuple[Path, Path, Path]) -> None:
    ready = asyncio.Event()
    script = "trap '' TERM INT; echo ready; exec tail -f /dev/null"
    process = await KubeletProcess.start(["/bin/sh", "-c", script], folders, lambda _: ready.set())
    await ready.wait()
    await process.end(signal.SIGKILL)
    assert await process.wait() == -9
    assert list(process.tail) == ["ready"]


async def test_a_process_may_finish_before_it_ends(folders: tuple[Path, Path, Path]) -> None:
    ready = asyncio.Event()
    script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    process = await KubeletProcess.start(["/bin/sh", "-c", script], folders, lambda _: ready.set())
    await ready.wait()
    await process.end(signal.SIGTERM)
    assert await process.wait() == 3
    assert list(process.tail) == ["ready", "bye"]


async def test_a_command_that_is_missing_ends_with_the_reason(
    folders: tuple[Path, Path, Path],
) -> None:
    lines: list[str] = []
    process = await KubeletProcess.start(["/no/such"], folders, lines.append)
    assert await process.wait() == 1
    assert lines[-1] == "FileNotFoundError: [Errno 2] No such file or directory"
