"""Temporary folders for state directories and trees."""

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
    """A new folder, in memory if the system allows it.

    A run writes tens of thousands of small files, which on a disk can take most of its time.
    ``TMPDIR`` overrides the place.
    """
    in_memory = "TMPDIR" not in os.environ and os.access(_IN_MEMORY, os.W_OK | os.X_OK)
    place = _IN_MEMORY if in_memory else None
    with tempfile.TemporaryDirectory(prefix="numaproof-", dir=place) as folder:
        yield Path(folder)
