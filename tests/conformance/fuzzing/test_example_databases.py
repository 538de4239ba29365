"""Databases in a directory or on a server: an earlier failure is tried first in the next run."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis.database import DirectoryBasedExampleDatabase, InMemoryExampleDatabase

from builders.fuzz_runs import found_in, fuzz_events
from builders.targets import changed_reference, target_of
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.fuzzing import example_databases
from numaproof.conformance.fuzzing.example_databases import DatabaseError, Scoped
from numaproof.conformance.fuzzing.fuzz_options import FuzzOptions
from numaproof.protocol import events, messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.execution.run import Target

SECONDS = 20.0
"""How long a server may take to answer."""


def found_again_first(place: str, findings: Path) -> None:
    """Asserts that a failure comes first in the next run of the same implementation only."""

    def fail_refusals(answer: messages.Merged) -> messages.Answer:
        return answer if answer.admit else messages.Fault("no")

    broken = target_of(changed_reference(merge=fail_refusals), operations=("merge",))
    other = target_of(InProcess(Reference), operations=("merge",), name="another")

    def run(target: Target, seed: int, examples: int = 60) -> tuple[list[str], int]:
        options = FuzzOptions(example_databases.open_database(place), replay_every=0)
        stream = [*fuzz_events(target, findings, examples, seed, options, seconds=2.0)]
        ended = stream[-1]
        assert isinstance(ended, events.RunEnded)
        return [one.message for one in found_in(stream)], ended.outcomes.get("pass", 0)

    found, passing = run(broken, seed=1)
    assert found
    assert passing
    # Another implementation has its own examples, and doesn't remove these.
    assert run(other, seed=3, examples=2) == ([], 2)
    assert run(broken, seed=2) == (found, 0)


def test_a_failure_is_the_next_runs_first_example(tmp_path: Path) -> None:
    found_again_first(str(tmp_path / "kept"), tmp_path / "findings")


def test_examples_saved_by_hypothesis_are_found(tmp_path: Path) -> None:
    DirectoryBasedExampleDatabase(tmp_path).save(b"key", b"one")
    database = example_databases.open_database(str(tmp_path))
    assert list(database.fetch(b"key")) == [b"one"]
    database.save(b"key", b"two")
    database.move(b"key", b"other", b"one")
    theirs = DirectoryBasedExampleDatabase(tmp_path)
    assert list(theirs.fetch(b"key")) == [b"two"]
    assert list(theirs.fetch(b"other")) == [b"one"]
    database.delete(b"other", b"one")
    assert list(database.fetch(b"other")) == []


def test_only_regular_files_of_a_sane_size_are_examples(tmp_path: Path) -> None:
    database = example_databases.open_database(str(tmp_path / "db"))
    database.save(b"key", b"one")
    (kept,) = (tmp_path / "db").glob("*/*")
    os.mkfifo(kept.with_name("fifo"))
    kept.with_name("device").symlink_to("/dev/zero")
    kept.with_name("loop").symlink_to("loop")
    kept.with_name("folder").mkdir()
    with kept.with_name("sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert list(database.fetch(b"key")) == [b"one"]
    # Without write permission, nothing is stored.
    shutil.rmtree(kept.parent)
    kept.parent.write_bytes(b"")
    database.save(b"key", b"one")
    database.delete(b"key", b"one")
    assert list(database.fetch(b"key")) == []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a private Redis server on a socket, without persistence."""
    pytest.importorskip("redis", reason="the package redis is not installed")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed (Debian: apt-get install redis-server)")
    # The path of a socket is limited.
    socket = Path("/tmp") / f"numaproof-{tmp_path.name[-8:]}-{time.monotonic_ns()}.sock"  # noqa: S108
    words = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(tmp_path))
    with subprocess.Popen([program, *words], stdout=subprocess.DEVNULL) as process:
        try:
            yield _answering(f"unix://{socket}", process)
        finally:
            process.terminate()
            process.wait(SECONDS)
            socket.unlink(missing_ok=True)


def _answering(address: str, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            example_databases.open_database(address)
        except DatabaseError:
            continue
        return address
    pytest.fail("redis-server does not answer")


def test_a_redis_server_stores_failures(server: str, tmp_path: Path) -> None:
    found_again_first(server, tmp_path / "findings")


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("redis://127.0.0.1:1/0", "cannot reach the Redis server: "),
        ("redis://127.0.0.1:port", "invalid Redis address: "),
    ],
)
def test_an_unreachable_server_is_reported(place: str, complaint: str) -> None:
    pytest.importorskip("redis", reason="the package redis is not installed")
    with pytest.raises(DatabaseError, match=complaint):
        example_databases.open_database(place)


def test_a_server_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "redis", None)
    monkeypatch.delitem(__import__("sys").modules, "hypothesis.extra.redis", raising=False)
    with pytest.raises(DatabaseError, match="needs the package redis: pip install"):
        example_databases.open_database("redis://127.0.0.1/0")


def test_an_unusable_location_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match="Not a directory; choose another directory"):
        example_databases.open_database(str(tmp_path / "file" / "below"))


def test_implementations_have_separate_examples_in_a_database(reference: Target) -> None:
    shared = InMemoryExampleDatabase()
    mine = Scoped(shared, reference)
    mine.save(b"key", b"value")
    mine.move(b"key", b"other", b"value")
    assert list(mine.fetch(b"key")) == []
    assert list(mine.fetch(b"other")) == [b"value"]
    others = (
        target_of(InProcess(Reference), name="another"),
        target_of(InProcess(Reference), kubernetes="1.34"),
        target_of(InProcess(Reference), operations=("start",)),
    )
    assert [list(Scoped(shared, one).fetch(b"other")) for one in others] == [[], [], []]
    mine.delete(b"other", b"value")
    assert list(mine.fetch(b"other")) == []
