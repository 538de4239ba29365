"""What runs in namespaces of its own is apart from the host, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from numaproof import fakesys
from numaproof.kubelet import namespaces

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("namespaces_permitted")

BEFORE = """
import json, os, signal, socket, subprocess, sys
from pathlib import Path
from numaproof.kubelet import namespaces
from numaproof.kubelet.namespaces import *

arguments = sys.argv[1:]

def work(folder):
"""
AFTER = """
sys.exit(namespaces.run(work))
"""


def command(work: str, *arguments: str | Path, before: str = "") -> list[str]:
    """A program that does something in namespaces, with its folder as `folder`."""
    body = textwrap.indent(textwrap.dedent(work).strip(), "    ")
    return [sys.executable, "-c", BEFORE + body + "\n" + before + AFTER, *map(str, arguments)]


def run(work: str, *arguments: str | Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """Runs such a program until it ends."""
    return subprocess.run(
        command(work, *arguments, before=before), capture_output=True, text=True, check=False
    )


def said(work: str, *arguments: str | Path) -> Any:
    """What such a program prints as JSON."""
    ended = run(work, *arguments)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_what_is_written_to_the_folder_is_gone_afterwards(tmp_path: Path) -> None:
    work = """
        file = folder / arguments[0]
        file.write_text("x" * 1000)
        print(json.dumps([str(file), file.read_text() == "x" * 1000]))
    """
    name, is_written = said(work, tmp_path.name + ".test")
    assert is_written
    assert not Path(name).exists()


def test_only_own_processes_and_the_loopback_are_there() -> None:
    work = """
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        shown = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
        print(json.dumps([os.getpid(), shown, [name for _, name in socket.if_nameindex()]]))
    """
    assert said(work) == [1, [1], ["lo"]]


@pytest.mark.parametrize(
    ("work", "code", "log"),
    [
        ("pass", 0, ""),
        ("os._exit(7)", 7, ""),
        ("raise ValueError('a reason')", 1, "ValueError: a reason"),
        ("sys.exit(3)", 1, "SystemExit: 3"),
    ],
)
def test_the_exit_code_is_that_of_the_first_process(work: str, code: int, log: str) -> None:
    ended = run(work)
    assert ended.returncode == code
    assert log in ended.stderr
    assert bool(log) is bool(ended.stderr)


STAY = """
    mount("tmpfs", arguments[0], "tmpfs")
    other = subprocess.Popen(["tail", "-f", "/dev/null"], start_new_session=True)
    print("ready", flush=True)
    signal.pause()
"""


def children(process: int) -> list[int]:
    """The ids of a process's children."""
    return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]


@contextmanager
def staying(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int, list[int]]]:
    """A program that stays in its namespaces, with a mount and a process that ignores its end.

    Gives the program, the first process in the namespaces, and descriptors of all in them.
    """
    with subprocess.Popen(command(STAY, folder), stdout=subprocess.PIPE, text=True) as outer:
        assert outer.stdout
        assert outer.stdout.readline() == "ready\n"
        (first,) = children(outer.pid)
        (other,) = children(first)
        descriptors = [os.pidfd_open(one) for one in (first, other)]
        try:
            assert str(folder) in Path(f"/proc/{first}/mountinfo").read_text()
            assert str(folder) not in Path("/proc/self/mountinfo").read_text()
            yield outer, first, descriptors
        finally:
            outer.kill()
            for one in descriptors:
                os.close(one)


def wait_for_end(descriptors: list[int]) -> None:
    """Waits until processes have ended, at most a minute for each."""
    for one in descriptors:
        waiting = select.poll()
        waiting.register(one, select.POLLIN)
        assert waiting.poll(60_000)


def test_nothing_is_left_when_the_outer_process_is_killed(tmp_path: Path) -> None:
    with staying(tmp_path) as (outer, _, descriptors):
        outer.kill()
        assert outer.wait() == -signal.SIGKILL
        wait_for_end(descriptors)
        assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


def test_nothing_is_left_when_the_first_process_is_killed(tmp_path: Path) -> None:
    with staying(tmp_path) as (outer, first, descriptors):
        os.kill(first, signal.SIGKILL)
        wait_for_end(descriptors)
        assert outer.wait() == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_everything(number: signal.Signals, tmp_path: Path) -> None:
    with staying(tmp_path) as (outer, _, descriptors):
        outer.send_signal(number)
        wait_for_end(descriptors)
        assert outer.wait() == 128 + number


SHOW = """
    tree, host = map(Path, arguments)
    cgroups = sorted(os.listdir("/sys/fs/cgroup"))
    (folder / "log").mkdir()
    own_mounts()
    make_read_only()
    writable(folder, folder)
    writable(folder / "log", Path("/var/log"))
    show_machine(tree, folder)

    def can_write(path):
        try:
            (path / "numaproof-test").write_text("x")
        except OSError as error:
            return os.strerror(error.errno)
        return "yes"

    print(json.dumps({
        "sys": sorted(os.listdir("/sys")),
        "nodes": sorted(os.listdir("/sys/devices/system/node")),
        "cpuinfo": Path("/proc/cpuinfo").read_text(),
        "meminfo": Path("/proc/meminfo").read_text(),
        "self": os.readlink("/proc/self"),
        "cgroups": sorted(os.listdir("/sys/fs/cgroup")) == cgroups,
        "written": {str(one): can_write(one) for one in (
            host, tree, Path("/etc"), Path("/tmp"), Path("/dev/shm"),
            folder, Path("/var/log"),
        )},
    }))
"""


def test_a_machine_takes_the_place_of_the_host(tmp_path: Path) -> None:
    tree, host = tmp_path / "tree", tmp_path / "host"
    host.mkdir()
    fakesys.write_directory(fakesys.build_tree(fakesys.load_profile("xeon-gold-6230-2s")), tree)
    seen = said(SHOW, tree, host)
    assert seen["sys"] == sorted({"fs", *(one.name for one in (tree / "sys").iterdir())})
    nodes = tree / "sys/devices/system/node"
    assert seen["nodes"] == sorted(one.name for one in nodes.iterdir())
    assert seen["cpuinfo"] == (tree / "proc/cpuinfo").read_text()
    assert seen["meminfo"] == (tree / "proc/meminfo").read_text()
    assert seen["self"] == "1"
    assert seen["cgroups"]
    refused = dict.fromkeys(
        (str(host), str(tree), "/etc", "/tmp", "/dev/shm"),  # noqa: S108 - nothing is written
        "Read-only file system",
    )
    assert seen["written"] == refused | {"/run": "yes", "/var/log": "yes"}
    assert list(host.iterdir()) == []
    assert not Path("/run/numaproof-test").exists()
    assert not Path("/var/log/numaproof-test").exists()


NOBODY = """
import ctypes
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # the process's own files in /proc are readable again
"""


def test_a_user_without_privileges_is_root_in_namespaces() -> None:
    ended = run("print(os.geteuid(), os.getegid(), os.getpid())", before=NOBODY)
    if "cannot create namespaces" in ended.stderr:
        pytest.skip("only root may create namespaces")
    assert (ended.returncode, ended.stdout) == (0, "0 0 1\n"), ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root directory")
def test_a_host_without_namespaces_is_told_how_to_permit_them(tmp_path: Path) -> None:
    """The kernel permits users no namespaces below another root directory."""
    ended = run("pass", tmp_path, before="os.chroot(arguments[0])" + NOBODY)
    assert ended.returncode == 1
    assert ended.stderr.strip().endswith(
        "NamespaceError: cannot create namespaces: Operation not permitted; run it as root, or "
        "permit user namespaces"
    )


def test_mounts_that_are_not_permitted_are_one_line() -> None:
    """As in a container, or where AppArmor restricts user namespaces."""
    refuse = """
namespaces._prepare = lambda: namespaces.bind(Path("/no/such"), Path("/nor/this"))
"""
    ended = run("pass", before=refuse)
    assert ended.returncode == 1
    assert ended.stderr.startswith("cannot use namespaces: mount /no/such on /nor/this: No such")
    assert ended.stderr.count("\n") == 1


HIDE = """
    place, kept = map(Path, arguments)
    own_mounts()
    hide(place, kept, place / "kept file", Path("/etc"), place / "missing")
    print(json.dumps({str(one.relative_to(place)): one.is_dir() for one in place.rglob("*")}))
"""


def test_what_is_needed_stays_visible_in_a_hidden_folder(tmp_path: Path) -> None:
    for folder in ("kept/folder/inside", "other"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("kept file", "other file", "kept/other file"):
        (tmp_path / file).touch()
    assert said(HIDE, tmp_path, tmp_path / "kept/folder") == {
        "kept": True,
        "kept/folder": True,
        "kept/folder/inside": True,
        "kept file": False,
    }


def test_the_host_can_be_tried() -> None:
    probe = [sys.executable, "-m", "numaproof.kubelet.namespaces"]
    ended = subprocess.run(probe, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_mount_that_fails_names_both_sides() -> None:
    with pytest.raises(namespaces.NamespaceError, match=r"^mount /no/such on /nor/this: "):
        namespaces.bind(Path("/no/such"), Path("/nor/this"))


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("cpuinfo", "cpu MHz\t\t: 2100.000\n", None),
        ("cpuinfo", "CPU MHz : 2100.0\n", None),
        ("cpuinfo", "clock\t\t: 3500.000000MHz\n", None),
        ("meminfo", "MemTotal: 1 kB\n", None),
        ("cpuinfo", "processor\t: 0\n", "processor\t: 0\n\ncpu MHz\t\t: 1000.000\n"),
    ],
)
def test_a_cpuinfo_without_a_clock_gets_one(
    name: str, text: str, shown: str | None, tmp_path: Path
) -> None:
    source, scratch = tmp_path / name, tmp_path / "scratch"
    scratch.mkdir()
    source.write_text(text)
    made = namespaces._with_clock(source, scratch)
    assert (made == source) is (shown is None)
    assert made.read_text() == (shown or text)
    assert source.read_text() == text
