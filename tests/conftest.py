"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

# Trees are tens of thousands of small files: keep them in memory where the system has room.
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it
if "TMPDIR" not in os.environ and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))
