"""Keeps failing examples for the next run, in a directory or on a Redis server.

Hypothesis stores the choices that it drew. The same choices make the same calls only for the same
capabilities, so each implementation has examples of its own.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from hypothesis.database import ExampleDatabase

from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError
from numaproof.workdir.state_directory import StateDirectory, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.conformance.execution.run import Target

SCHEMES = ("redis://", "rediss://", "unix://")
"""How the address of a Redis server begins."""


class DatabaseError(Exception):
    """A database cannot be used; the message says which, why and how to fix it."""


def open_database(place: str) -> ExampleDatabase:
    """The database in a directory, or at an address that begins with one of `SCHEMES`.

    Raises:
        DatabaseError: it cannot be used.
    """
    if place.startswith(SCHEMES):
        return _on_server(place)
    if "://" in place:
        raise DatabaseError(f"{place!r} begins with none of {', '.join(SCHEMES)}")
    return _in_directory(Path(place))


def _in_directory(path: Path) -> ExampleDatabase:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(f"{path}: {error.strerror}; give another directory") from None
    return InDirectory(path)


MAX_EXAMPLES = 10_000
"""Examples of one key; Hypothesis keeps a few hundred."""

EXAMPLE_BYTES = 1024 * 1024
"""Bytes of an example; Hypothesis draws at most 8 KiB."""


class InDirectory(ExampleDatabase):
    """Examples as files where Hypothesis keeps them: below a folder for each key.

    Unlike Hypothesis's own, it reads regular files of a sane size and nothing else, and writes
    through no link: others may have written to the directory.
    """

    def __init__(self, path: Path) -> None:
        """Keeps examples in a directory."""
        super().__init__()
        self._path = path

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """All values of a key that can be read."""
        try:
            with os.scandir(self._folder(key)) as entries:
                found = [entry.path for entry in islice(entries, MAX_EXAMPLES)]
        except OSError:
            return
        for path in sorted(found):
            with suppress(DocumentError):
                yield door.read(path, most=EXAMPLE_BYTES)

    def save(self, key: bytes, value: bytes) -> None:
        """Keeps a value, if the directory can be written to."""
        folder = self._folder(key)
        with suppress(OSError, StateError):
            folder.mkdir(parents=True, exist_ok=True)
            StateDirectory(folder).write(_hash(value), value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forgets a value, if it is there."""
        folder = self._folder(key)
        with suppress(OSError, StateError):
            StateDirectory(folder).remove(_hash(value))
            folder.rmdir()

    def _folder(self, key: bytes) -> Path:
        return self._path / _hash(key)


def _hash(content: bytes) -> str:
    """The name under which Hypothesis keeps a key or a value."""
    return hashlib.sha384(content).hexdigest()[:16]


def _on_server(address: str) -> ExampleDatabase:
    """Redis drops examples that nobody asked for in eight days."""
    try:
        # An extra.
        from hypothesis.extra.redis import RedisExampleDatabase  # noqa: PLC0415
        from redis import Redis, RedisError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"a Redis server needs the package {error.name}: pip install 'numaproof[redis]'"
        raise DatabaseError(message) from None
    try:
        server = Redis.from_url(address)
        server.ping()
    except ValueError as error:
        raise DatabaseError(f"the address of the Redis server is wrong: {error}") from None
    except RedisError as error:
        raise DatabaseError(f"the Redis server does not answer: {error}") from None
    return RedisExampleDatabase(server)


class Scoped(ExampleDatabase):
    """The examples of one implementation in a database that several share.

    Args:
        shared: the database of all.
        target: whose examples are kept apart.
    """

    def __init__(self, shared: ExampleDatabase, target: Target) -> None:
        super().__init__()
        hello = target.hello
        told = (hello.name, hello.operations, hello.policies, hello.options)
        held = (target.kubernetes, target.level, target.baseline)
        self._shared = shared
        self._scope = hashlib.sha256(msgspec.json.encode((told, held))).digest()
        self._keeps = False

    def keep(self) -> None:
        """Forgets nothing from now on.

        A run that goes on after a finding passes over its cause, and Hypothesis would drop what
        failed for it.
        """
        self._keeps = True

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """All values of a key."""
        return self._shared.fetch(self._scope + key)

    def save(self, key: bytes, value: bytes) -> None:
        """Keeps a value."""
        self._shared.save(self._scope + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forgets a value, if it is there."""
        if not self._keeps:
            self._shared.delete(self._scope + key, value)

    def move(self, src: bytes, dest: bytes, value: bytes) -> None:
        """Keeps a value under another key."""
        self._shared.move(self._scope + src, self._scope + dest, value)
