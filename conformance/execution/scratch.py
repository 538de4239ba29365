"""Folders for state directories and trees that are gone when they are not needed any more."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own is made in it


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, in memory where the system has room for that.

    A run writes tens of thousands of small files, which a disk can make the slowest part of it.
    ``TMPDIR`` says otherwise.
    """
    in_memory = "TMPDIR" not in os.environ and os.access(_IN_MEMORY, os.W_OK | os.X_OK)
    place = _IN_MEMORY if in_memory else None
    with tempfile.TemporaryDirectory(prefix="numaproof-", dir=place) as folder:
        yield Path(folder)
