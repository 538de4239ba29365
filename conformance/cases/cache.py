"""The bundled cases as they were last parsed.

Parsing two megabytes of YAML takes half a second, which every command would spend before it
begins. The parsed cases are kept in one file of the user's cache folder instead, under a digest of
what they were made of: the case files and the code that reads them.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.schema import Case
from numaproof.workdir import output_files

if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGEST_BYTES = 32


def digest(contents: Iterable[bytes]) -> bytes:
    """The digest of the files that cases are made of, and of the code of this package."""
    total = hashlib.sha256()
    code = sorted(Path(__file__).parent.glob("*.py"))
    for content in (*(file.read_bytes() for file in code), *contents):
        total.update(hashlib.sha256(content).digest())
    return total.digest()


def read(key: bytes) -> tuple[Case, ...] | None:
    """The cases saved under this digest; None if there are none."""
    try:
        saved = _file().read_bytes()
        if saved[:_DIGEST_BYTES] != key:
            return None
        return msgspec.msgpack.decode(saved[_DIGEST_BYTES:], type=tuple[Case, ...])
    except (OSError, RuntimeError, msgspec.MsgspecError):
        return None


def write(key: bytes, cases: tuple[Case, ...]) -> None:
    """Saves cases under their digest, in the place of any others; without room, does nothing."""
    with suppress(OSError, RuntimeError):
        output_files.write_file(_file(), key + msgspec.msgpack.encode(cases))


def _file() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "numaproof" / "cases.msgpack"
