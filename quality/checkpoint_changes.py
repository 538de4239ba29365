"""What the violators of both checkpoints change: how files in one or two parts are handled."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints.formats import Format, TwoPartFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from quality.seeding import Changes


def parsed(content: bytes) -> dict[str, Any]:
    """The fields of a checkpoint; none where it is no JSON object."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def format_read(
    structure: str, changes: Changes, read: Callable[[Any, Format, bytes], Any]
) -> None:
    """Lets `read` read a file without ``data``, in a format whose structure begins so."""

    def instead(original: Any, self: Format, content: bytes) -> Any:
        if self.structure.startswith(structure):
            return read(original, self, content)
        return original(self, content)

    changes.around(Format, "read", instead)


def two_parts_read(
    manager: str, changes: Changes, read: Callable[[Any, TwoPartFormat, bytes], Any]
) -> None:
    """Lets `read` read a manager's file with ``data``."""

    def instead(original: Any, self: TwoPartFormat, content: bytes) -> Any:
        if self.manager == manager:
            return read(original, self, content)
        return original(self, content)

    changes.around(TwoPartFormat, "read", instead)


def older_part(manager: str, changes: Changes, seal: Callable[..., dict[str, Any]]) -> None:
    """Lets `seal` seal the part for earlier releases of a manager's file.

    It is given what seals it otherwise, the format, and the state's fields.
    """
    writing: list[bool] = []

    def write(original: Any, self: TwoPartFormat, content: Any) -> Any:
        writing.append(self.manager == manager)
        try:
            return original(self, content)
        finally:
            writing.pop()

    def sealed(original: Any, self: Format, content: Any) -> Any:
        return seal(original, self, content) if any(writing) else original(self, content)

    changes.around(TwoPartFormat, "write", write)
    changes.around(Format, "sealed", sealed)


def hashed_by_present_name(original: Any, self: Format, content: Any) -> Any:
    """Seals a part with the checksum of the structure's present name."""
    return original(dataclasses.replace(self, takes_checksum_of=(self.structure,)), content)
