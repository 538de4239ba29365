"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Trees are tens of thousands of small files: keep them in memory where the system has room.
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it
if "TMPDIR" not in os.environ and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))

_TESTS = Path(__file__).parent
_COMMANDS = tuple(
    _TESTS / folder
    for folder in (
        "cli",
        "conformance/diagnosis",
        "fleet",
        "plugin",
        "robustness",
        "test_action.py",
    )
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that start commands and programs, which take most of the time."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _COMMANDS):
            item.add_marker(pytest.mark.commands)
