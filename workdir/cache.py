"""Caches results that commands compute repeatedly from the same files.

Parsing two megabytes of YAML and discovering fifty machines would delay every command by two
seconds. Each result is one file in the user's cache folder, with a digest of the files and the code
that produced it.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.workdir import output_files
from numaproof.workdir.folders import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGEST_BYTES = 32


def digest(packages: Iterable[str], contents: Iterable[bytes]) -> bytes:
    """Returns a digest of the code of some numaproof packages and of other data."""
    total = hashlib.sha256(b"".join(map(_code, packages)))
    for content in contents:
        total.update(hashlib.sha256(content).digest())
    return total.digest()


@cache
def _code(package: str) -> bytes:
    folder = (Path(__file__).parents[1] / package).resolve()
    total = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.digest()


def read(name: str, key: bytes, kind: Any) -> Any:
    """Reads the value of type `kind` saved with this name and digest; None if there is none.

    Values that can themselves be None must be wrapped in a structure.
    """
    try:
        saved = _file(name).read_bytes()
        if saved[:_DIGEST_BYTES] != key:
            return None
        return msgspec.msgpack.decode(saved[_DIGEST_BYTES:], type=kind)
    except (OSError, RuntimeError, msgspec.MsgspecError):
        return None


def write(name: str, key: bytes, value: Any) -> None:
    """Saves a value, replacing any existing one with this name; does nothing if that fails."""
    with suppress(OSError, RuntimeError):
        output_files.write_file(_file(name), key + msgspec.msgpack.encode(value))


def _file(name: str) -> Path:
    return cache_folder() / f"{name}.msgpack"
