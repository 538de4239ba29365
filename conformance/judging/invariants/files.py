"""What invariants read of a manager's checkpoint file."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from numaproof.protocol import codec


class File(msgspec.Struct, frozen=True, rename="camel"):
    """A file, which may have a part ``data`` with all of it once more."""

    data: str = ""


AnyFile = TypeVar("AnyFile", bound=File)


def read(text: str | bytes, structure: type[AnyFile]) -> AnyFile:
    """What a file says; where it has a part ``data``, that is what the kubelet believes.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        content = codec.decode(text, structure)
        return codec.decode(content.data, structure) if content.data else content
    except codec.ProtocolError as error:
        raise ValueError(str(error)) from None
