"""Stores failing examples for the next run, in a directory or on a Redis server.

Hypothesis stores the choices it drew. They reproduce the same calls only for the same capabilities,
so each implementation has its own examples.
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
"""Address schemes of Redis servers."""


class DatabaseError(Exception):
    """A database cannot be used; the message explains why and how to fix it."""


def open_database(place: str) -> ExampleDatabase:
    """Opens the database in a directory, or at an address that starts with one of `SCHEMES`.

    Raises:
        DatabaseError: the database cannot be used.
    """
    if place.startswith(SCHEMES):
        return _on_server(place)
    if "://" in place:
        schemes = ", ".join(SCHEMES)
        raise DatabaseError(f"invalid database address {place!r} (expected one of {schemes})")
    return _in_directory(Path(place))


def _in_directory(path: Path) -> ExampleDatabase:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(f"{path}: {error.strerror}; choose another directory") from None
    return InDirectory(path)


MAX_EXAMPLES = 10_000
"""Maximum number of examples for a key; Hypothesis stores a few hundred."""

EXAMPLE_BYTES = 1024 * 1024
"""Maximum size of an example; Hypothesis draws at most 8 KiB."""


class InDirectory(ExampleDatabase):
    """Stores examples as files in Hypothesis's layout, with one folder for each key.

    Other programs may have written to the directory. Unlike Hypothesis's own database, this one
    reads only regular files of limited size and does not write through links.
    """

    def __init__(self, path: Path) -> None:
        """Stores examples in a directory."""
        super().__init__()
        self._path = path

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Yields all readable values of a key."""
        try:
            with os.scandir(self._folder(key)) as entries:
                found = [entry.path for entry in islice(entries, MAX_EXAMPLES)]
        except OSError:
            return
        for path in sorted(found):
            with suppress(DocumentError):
                yield door.read(path, most=EXAMPLE_BYTES)

    def save(self, key: bytes, value: bytes) -> None:
        """Stores a value if the directory is writable."""
        folder = self._folder(key)
        with suppress(OSError, StateError):
            folder.mkdir(parents=True, exist_ok=True)
            StateDirectory(folder).write(_hash(value), value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Deletes a value if it exists."""
        folder = self._folder(key)
        with suppress(OSError, StateError):
            StateDirectory(folder).remove(_hash(value))
            folder.rmdir()

    def _folder(self, key: bytes) -> Path:
        return self._path / _hash(key)


def _hash(content: bytes) -> str:
    """Returns Hypothesis's file name for a key or a value."""
    return hashlib.sha384(content).hexdigest()[:16]


def _on_server(address: str) -> ExampleDatabase:
    """Opens a Redis database, which drops examples that have not been used for eight days."""
    try:
        # Optional dependencies.
        from hypothesis.extra.redis import RedisExampleDatabase  # noqa: PLC0415
        from redis import Redis, RedisError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"Redis needs the package {error.name}: pip install 'numaproof[redis]'"
        raise DatabaseError(message) from None
    try:
        server = Redis.from_url(address)
        server.ping()
    except ValueError as error:
        raise DatabaseError(f"invalid Redis address: {error}") from None
    except RedisError as error:
        raise DatabaseError(f"cannot reach the Redis server: {error}") from None
    return RedisExampleDatabase(server)


class Scoped(ExampleDatabase):
    """The examples of one implementation in a shared database.

    Args:
        shared: the shared database.
        target: the implementation.
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
        """Stops deletions.

        A run that continues after a finding ignores the finding's cause from then on, and
        Hypothesis would delete the examples that failed.
        """
        self._keeps = True

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Yields all values of a key."""
        return self._shared.fetch(self._scope + key)

    def save(self, key: bytes, value: bytes) -> None:
        """Stores a value."""
        self._shared.save(self._scope + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Deletes a value if it exists."""
        if not self._keeps:
            self._shared.delete(self._scope + key, value)

    def move(self, src: bytes, dest: bytes, value: bytes) -> None:
        """Moves a value to another key."""
        self._shared.move(self._scope + src, self._scope + dest, value)
