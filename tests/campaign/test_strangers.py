"""Another user of the machine can't use or read a running campaign."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed", reason="campaigns need numaproof[campaign]")
pytestmark = pytest.mark.slow

NOBODY = 65534

INTRUDER = """
import logging, os, sys
from distributed import Client, Security
logging.disable()
# Made while the packages of whoever runs the tests can be read.
ways = (("tcp", None), ("tls", Security.temporary()))
if not os.getuid():
    os.setuid(int(sys.argv.pop(1)))
for port in sys.argv[1:]:
    for scheme, security in ways:
        try:
            with Client(f"{scheme}://127.0.0.1:{port}", security=security, timeout=4) as client:
                print("ran code as", client.submit(os.getuid).result(timeout=4))
        except Exception as error:
            print(type(error).__name__)
"""


def processes(leader: int) -> list[int]:
    """Returns a process and all of its descendants."""
    found = [leader]
    for pid in found:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def ports(pids: list[int]) -> list[int]:
    """Returns the addresses on which processes listen."""
    sockets = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(str(entry.readlink()))
            except FileNotFoundError:
                continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[1].partition(":")[2], 16)
        for row in rows
        if row[3] == "0A" and f"socket:[{row[9]}]" in sockets
    ]


def asked_for_a_page(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"GET /info/main/workers.html HTTP/1.0\r\n\r\n")
        try:
            return connection.recv(100)
        except ConnectionResetError:
            return b""


@pytest.fixture(scope="module")
def running(trap: Any, start: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A campaign in the middle of a unit, with its temporary files in `scratch`."""
    folder = tmp_path_factory.mktemp("strangers")
    scratch = folder / "scratch"
    scratch.mkdir()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TMPDIR", str(scratch))
        trap.arm()
        command = start(trap, folder / "out", "--workers", "1")
    trap.wait_for_worker()
    yield command, scratch
    command.process.kill()
    command.process.communicate()


def test_without_the_key_nobody_runs_code_or_reads_a_page(running: Any) -> None:
    open_ports = ports(processes(running[0].process.pid))
    assert len(open_ports) >= 3, "a scheduler, a nanny and a worker"
    assert not [port for port in open_ports if b"HTTP" in asked_for_a_page(port)]
    ended = subprocess.run(
        [sys.executable, "-c", INTRUDER, *map(str, (*[NOBODY] * (not os.getuid()), *open_ports))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.splitlines()
    assert len(said) == 2 * len(open_ports)
    assert all(one.endswith("Error") for one in said), said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can switch users")
def test_another_user_cannot_read_the_key_or_workers_files(running: Any) -> None:
    pids = processes(running[0].process.pid)
    scratch = list(running[1].iterdir())
    assert scratch
    reading = " || ".join(
        [f"cat /proc/{pid}/{name}" for pid in pids for name in ("environ", "mem", "maps")]
        + [f"ls {folder}" for folder in scratch]
    )
    ended = subprocess.run(
        ["sh", "-c", reading],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        check=False,
    )
    assert ended.returncode
    assert not ended.stdout
