"""Where examples that failed are kept for the next run: a directory, or a Redis server.

Hypothesis keeps them as the choices that it drew, beside those that reached far. The same choices
make the same calls for the same claims only, so each implementation has its own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from hypothesis.database import DirectoryBasedExampleDatabase, ExampleDatabase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.conformance.execution.run import Target

SCHEMES = ("redis://", "rediss://", "unix://")
"""How the address of a Redis server begins."""


class DatabaseError(Exception):
    """A database can't be used; the message says which, why, and what would help."""


def opened(place: str) -> ExampleDatabase:
    """The database in a directory, or at an address that begins with one of `SCHEMES`.

    Raises:
        DatabaseError: it can't be used.
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
    return DirectoryBasedExampleDatabase(path)


def _on_server(address: str) -> ExampleDatabase:
    """What was not looked for in eight days is forgotten there."""
    try:
        # An extra.
        from hypothesis.extra.redis import RedisExampleDatabase  # noqa: PLC0415
        from redis import Redis, RedisError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise DatabaseError(
            f"a Redis server needs the package {error.name}: pip install 'numaproof[redis]'"
        ) from None
    try:
        server = Redis.from_url(address)
        server.ping()
    except ValueError as error:
        raise DatabaseError(f"the address of the Redis server is wrong: {error}") from None
    except RedisError as error:
        raise DatabaseError(f"the Redis server does not answer: {error}") from None
    return RedisExampleDatabase(server)


class Scoped(ExampleDatabase):
    """What one implementation has in a database that it shares with others.

    Args:
        shared: the database of all.
        target: whose examples are kept apart.
    """

    def __init__(self, shared: ExampleDatabase, target: Target) -> None:
        super().__init__()
        hello = target.hello
        told = (hello.name, hello.operations, hello.policies, hello.options)
        held = (target.kubernetes, target.level, target.documented)
        self._shared = shared
        self._scope = hashlib.sha256(msgspec.json.encode((told, held))).digest()

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """All values of a key."""
        return self._shared.fetch(self._scope + key)

    def save(self, key: bytes, value: bytes) -> None:
        """Keeps a value."""
        self._shared.save(self._scope + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forgets a value, if it is there."""
        self._shared.delete(self._scope + key, value)

    def move(self, src: bytes, dest: bytes, value: bytes) -> None:
        """Keeps a value under another key."""
        self._shared.move(self._scope + src, self._scope + dest, value)
