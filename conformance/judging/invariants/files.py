"""What invariants read of a manager's checkpoint file."""

from __future__ import annotations

from typing import TypeVar

import msgspec


class File(msgspec.Struct, frozen=True, rename="camel"):
    """A file, which may have a part ``data`` with all of it once more."""

    data: str = ""


AnyFile = TypeVar("AnyFile", bound=File)


def read(text: str | bytes, structure: type[AnyFile]) -> AnyFile:
    """What a file says; where it has a part ``data``, that is what the kubelet believes.

    Raises:
        ValueError: it cannot be read.
        msgspec.DecodeError: likewise.
    """
    content = msgspec.json.decode(text, type=structure)
    return msgspec.json.decode(content.data, type=structure) if content.data else content
