"""Folders of the user. Every command reads them first, so this module loads nothing slow."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Returns the folder of all caches.

    Raises:
        RuntimeError: the user has no home.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numaproof"
