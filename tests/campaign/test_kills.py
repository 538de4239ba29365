"""A killed campaign resumes and ends with the result of an undisturbed one.

``NUMAPROOF_KILLS=100 pytest tests/campaign/test_kills.py -k random`` kills 100 times.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

import pytest

distributed = pytest.importorskip("distributed", reason="campaigns need numaproof[campaign]")
pytestmark = pytest.mark.slow

Start = Callable[..., Any]

KILLS = int(os.environ.get("NUMAPROOF_KILLS", "1"))
"""The number of random kills; other tests kill each victim at a chosen moment."""

SEED = int(os.environ.get("NUMAPROOF_KILLS_SEED", "0"))
"""The seed for victims and moments."""

VICTIMS = ("client", "worker", "scheduler", "stopped worker")

PAUSE = 3.0
"""The longest time in seconds for which a worker is stopped."""


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def units(folder: Path) -> list[str]:
    return [one["unit"] for one in lines(folder) if one["event"] == "unit finished"]


def same(out: Path, undisturbed_run: Path) -> None:
    """Asserts that two campaigns ran the same units once and have equal results."""
    assert Counter(units(out)) == Counter(set(units(undisturbed_run)))
    for name in ("summary.json", "summary.txt"):
        assert (out / name).read_bytes() == (undisturbed_run / name).read_bytes()
    found = {file.name: file.read_bytes() for file in (out / "findings").iterdir()}
    assert found == {
        file.name: file.read_bytes() for file in (undisturbed_run / "findings").iterdir()
    }
    assert lines(out)[-1]["complete"]


def test_a_campaign_resumes_after_an_interrupt_and_kills(
    trap: Any, start: Start, undisturbed_run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    trap.arm()
    command = start(trap, out, "--workers", "1")
    trap.wait_for_worker()
    command.signal(signal.SIGINT)
    code, written = command.wait()
    assert code == 3, "what was cut short is not done, whatever it has found"
    assert written.splitlines()[-1] == "numaproof: interrupted; run the same command to resume"
    assert lines(out)[-1]["event"] == "campaign ended"
    assert not lines(out)[-1]["complete"]
    before = units(out)

    trap.arm()
    command = start(trap, out, "--workers", "1")
    trap.wait_for_worker()
    command.process.kill()
    assert command.wait()[0] == -signal.SIGKILL

    with (out / "events.jsonl").open("a") as file:
        file.write('{"event":"unit fini')  # left by a kill in the middle of a line
    trap.arm()
    command = start(trap, out, "--workers", "2")
    os.kill(trap.wait_for_worker(), signal.SIGKILL)
    code, written = command.wait()
    assert code == 1
    assert re.search(r"^resuming after \d+ units$", written, re.MULTILINE)
    assert units(out)[: len(before)] == before
    same(out, undisturbed_run)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """TLS options for Dask's commands and ours, with files created for these tests."""
    folder = tmp_path_factory.mktemp("tls")
    made = distributed.Security.temporary()
    (folder / "ca.pem").write_text(made.tls_ca_file)
    (folder / "cert.pem").write_text(made.tls_client_cert)
    (folder / "key.pem").write_text(made.tls_client_key)
    named = {"--tls-ca-file": "ca.pem", "--tls-cert": "cert.pem", "--tls-key": "key.pem"}
    return tuple(word for name, file in named.items() for word in (name, str(folder / file)))


@contextmanager
def cluster(
    tls: tuple[str, ...],
) -> Iterator[tuple[tuple[str, ...], subprocess.Popen[str], subprocess.Popen[str]]]:
    """Starts a scheduler and a worker with Dask's own commands; yields the options and both."""
    where = ("--host", "127.0.0.1", "--port", "0", "--protocol", "tls", "--no-dashboard")
    scheduler = dask("scheduler", *where, *tls)
    assert scheduler.stderr is not None
    try:
        address = find_in_log(scheduler.stderr, r"Scheduler at: +(tls://\S+)")
        worker = dask("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *tls)
        try:
            yield ("--scheduler", address, *tls), scheduler, worker
        finally:
            kill_process(worker)
    finally:
        kill_process(scheduler)


def dask(what: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{what}", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if what == "scheduler" else subprocess.DEVNULL,
        text=True,
    )


def find_in_log(log: IO[str], pattern: str) -> str:
    for line in log:
        if match := re.search(pattern, line):
            return match[1]
    raise AssertionError("the scheduler did not say where it is")


def kill_process(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_campaign_resumes_with_another_scheduler(
    trap: Any, start: Start, undisturbed_run: Path, tmp_path: Path, tls: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    trap.arm()
    with cluster(tls) as (options, scheduler, _):
        command = start(trap, out, *options)
        trap.wait_for_worker()
        scheduler.kill()
        code, written = command.wait()
        assert code == 3
        assert written.splitlines()[-1] == (
            "numaproof: the scheduler can no longer be reached; run the same command to resume"
        )
    with cluster(tls) as (options, _, worker):
        code, written = start(trap, out, *options).wait()
        assert code == 1, written
        assert worker.poll() is None, "the workers of a cluster stay"
    same(out, undisturbed_run)


def below(pid: int) -> list[int]:
    """Returns the worker processes of a command, including those being started."""
    with suppress(OSError):
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
    return []


def test_random_kills_neither_lose_nor_repeat_units(
    trap: Any, start: Start, undisturbed_run: Path, tmp_path: Path, tls: tuple[str, ...]
) -> None:
    dice = random.Random(SEED)  # noqa: S311 - the same moments each time
    left = KILLS
    # The duration of an undisturbed campaign on this machine, including the start.
    latest = 2 * lines(undisturbed_run)[-1]["at"]
    for number in count():
        out = tmp_path / str(number)
        resume = True
        while resume:
            victim = dice.choice(VICTIMS) if left else ""
            with ExitStack() as stack:
                options: tuple[str, ...] = ("--workers", "2")
                others: list[subprocess.Popen[str]] = []
                if victim == "scheduler":
                    options, *others = stack.enter_context(cluster(tls))
                command = start(trap, out, *options)
                with suppress(subprocess.TimeoutExpired):
                    command.process.wait(dice.uniform(0, latest))
                if victim:
                    kill(dice, victim, command.process, others)
                    left -= 1
                code, written = command.wait()
                assert code in ((1, 3) if victim != "client" else (1, -signal.SIGKILL)), written
                resume = code != 1
        same(out, undisturbed_run)
        if not left:
            break


def kill(
    dice: random.Random,
    victim: str,
    command: subprocess.Popen[str],
    others: list[subprocess.Popen[str]],
) -> None:
    """Kills the victim or stops it for a while; does nothing if there are no workers yet."""
    if victim == "client":
        command.kill()
    elif victim == "scheduler":
        others[0].kill()
    elif workers := below(command.pid):
        worker = dice.choice(workers)
        with suppress(ProcessLookupError):
            if victim == "worker":
                os.kill(worker, signal.SIGKILL)
                return
            os.kill(worker, signal.SIGSTOP)
            with suppress(subprocess.TimeoutExpired):
                command.wait(dice.uniform(0, PAUSE))
            os.kill(worker, signal.SIGCONT)
