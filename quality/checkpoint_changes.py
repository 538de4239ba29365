"""What the violators of both checkpoints change: how a file is read, in one part or in two."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from numaproof.reference.kubelet.checkpoints.formats import Format, TwoPartFormat

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
