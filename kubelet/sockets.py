"""Short paths for Unix sockets, whose paths have at most 107 bytes."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def short_path(folder: Path) -> Iterator[str]:
    """Another name for a folder: that of an open file descriptor, as long as the context lasts."""
    opened = os.open(folder, os.O_PATH)
    try:
        yield f"/proc/self/fd/{opened}"
    finally:
        os.close(opened)
