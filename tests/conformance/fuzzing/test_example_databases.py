"""What failed once is tried first in the next run: databases in a directory, and on a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis.database import DirectoryBasedExampleDatabase, InMemoryExampleDatabase

from builders.fuzzed import found_in, fuzzed
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Target
from numaproof.conformance.fuzzing import example_databases
from numaproof.conformance.fuzzing.example_databases import DatabaseError, Scoped
from numaproof.conformance.fuzzing.fuzz_options import FuzzOptions
from numaproof.protocol import events, messages
from numaproof.reference.implementation import Reference

MakeTarget = Callable[..., Target]

SECONDS = 20.0
"""That a server may take to answer."""


@pytest.fixture
def broken(make_target: MakeTarget, changed: Callable[..., Any]) -> Target:
    """A reference that breaks when it is to reconcile."""
    return make_target(InProcess(lambda: changed(reconcile=lambda _: messages.Fault("no"))))


def run(target: Target, place: str, findings: Path, seed: int, examples: int = 60) -> Any:
    options = FuzzOptions(example_databases.opened(place), replay_every=0)
    stream = [*fuzzed(target, findings, examples, seed, options)]
    ended = stream[-1]
    assert isinstance(ended, events.RunEnded)
    return found_in(stream), ended.outcomes.get("pass", 0)


def found_again_first(target: Target, healthy: Target, place: str, findings: Path) -> None:
    found, passing = run(target, place, findings, seed=1)
    assert found
    assert passing
    # Another implementation has examples of its own, and takes none of these away.
    assert run(healthy, place, findings, seed=3, examples=2) == ([], 2)
    again, passing = run(target, place, findings, seed=2)
    assert again[0].message == found[0].message
    assert passing == 0


def test_what_failed_is_found_in_the_first_example_of_the_next_run(
    broken: Target, make_target: MakeTarget, tmp_path: Path
) -> None:
    other = make_target(InProcess(Reference), name="another")
    found_again_first(broken, other, str(tmp_path / "kept"), tmp_path / "findings")


def test_examples_that_hypothesis_kept_are_found(tmp_path: Path) -> None:
    DirectoryBasedExampleDatabase(tmp_path).save(b"key", b"one")
    database = example_databases.opened(str(tmp_path))
    assert list(database.fetch(b"key")) == [b"one"]
    database.save(b"key", b"two")
    database.move(b"key", b"other", b"one")
    theirs = DirectoryBasedExampleDatabase(tmp_path)
    assert list(theirs.fetch(b"key")) == [b"two"]
    assert list(theirs.fetch(b"other")) == [b"one"]
    database.delete(b"other", b"one")
    assert list(database.fetch(b"other")) == []


def test_only_regular_files_of_a_sane_size_are_examples(tmp_path: Path) -> None:
    database = example_databases.opened(str(tmp_path / "db"))
    database.save(b"key", b"one")
    (kept,) = (tmp_path / "db").glob("*/*")
    os.mkfifo(kept.with_name("fifo"))
    kept.with_name("device").symlink_to("/dev/zero")
    kept.with_name("loop").symlink_to("loop")
    kept.with_name("folder").mkdir()
    with kept.with_name("sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert list(database.fetch(b"key")) == [b"one"]


def test_no_example_is_written_through_a_link_or_where_nobody_can_write(tmp_path: Path) -> None:
    database = example_databases.opened(str(tmp_path / "db"))
    database.save(b"key", b"one")
    (kept,) = (tmp_path / "db").glob("*/*")
    kept.unlink()
    kept.symlink_to(tmp_path / "outside")
    database.save(b"key", b"one")
    assert not (tmp_path / "outside").exists()
    assert list(database.fetch(b"key")) == []
    kept.unlink()
    kept.mkdir()
    database.save(b"key", b"one")
    assert list(kept.parent.iterdir()) == [kept]
    kept.rmdir()
    kept.parent.rmdir()
    kept.parent.write_bytes(b"")
    database.save(b"key", b"one")
    database.delete(b"key", b"one")
    assert list(database.fetch(b"key")) == []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Redis server of one's own, on a socket, which keeps nothing."""
    pytest.importorskip("redis", reason="the package redis is not installed")
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server; Debian has it in the package redis-server")
    # The path of a socket may not be long.
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
            example_databases.opened(address)
        except DatabaseError:
            continue
        return address
    pytest.fail("redis-server does not answer")


def test_a_redis_server_keeps_what_failed(
    server: str, broken: Target, make_target: MakeTarget, tmp_path: Path
) -> None:
    other = make_target(InProcess(Reference), name="another")
    found_again_first(broken, other, server, tmp_path / "findings")


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("redis://127.0.0.1:1/0", "the Redis server does not answer: "),
        ("redis://127.0.0.1:port", "the address of the Redis server is wrong: "),
    ],
)
def test_a_server_that_is_not_there_is_said(place: str, complaint: str) -> None:
    pytest.importorskip("redis", reason="the package redis is not installed")
    with pytest.raises(DatabaseError, match=complaint):
        example_databases.opened(place)


def test_a_server_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "redis", None)
    monkeypatch.delitem(__import__("sys").modules, "hypothesis.extra.redis", raising=False)
    with pytest.raises(DatabaseError, match="needs the package redis: pip install"):
        example_databases.opened("redis://127.0.0.1/0")


def test_a_place_that_can_be_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match="Not a directory; give another directory"):
        example_databases.opened(str(tmp_path / "file" / "below"))
    with pytest.raises(DatabaseError, match="'mysql://x' begins with none of redis://, "):
        example_databases.opened("mysql://x")


def test_implementations_share_a_database_and_nothing_in_it(
    make_target: MakeTarget, reference: Target
) -> None:
    shared = InMemoryExampleDatabase()
    mine = Scoped(shared, reference)
    mine.save(b"key", b"value")
    mine.move(b"key", b"other", b"value")
    assert list(mine.fetch(b"key")) == []
    assert list(mine.fetch(b"other")) == [b"value"]
    others = (
        make_target(InProcess(Reference), name="another"),
        make_target(InProcess(Reference), kubernetes="1.34"),
        make_target(InProcess(Reference), operations=("start",)),
    )
    assert [list(Scoped(shared, one).fetch(b"other")) for one in others] == [[], [], []]
    mine.delete(b"other", b"value")
    assert list(mine.fetch(b"other")) == []
