"""Shared fixtures."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.garbage import collect_seldom, freeze_at_exit

if TYPE_CHECKING:
    from collections.abc import Iterator

freeze_at_exit()
collect_seldom()

# Trees have tens of thousands of small files, so keep them in memory if there is room.
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it
if "TMPDIR" not in os.environ and os.access(_IN_MEMORY, os.W_OK | os.X_OK):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))

# pytest-xdist sets it for its workers, but commands would treat it as the user's choice.
os.environ.pop("COLUMNS", None)

_TESTS = Path(__file__).parent
_COMMANDS = tuple(
    _TESTS / folder
    for folder in (
        "cli",
        "conformance/doctor",
        "campaign",
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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB; skips the test where none can be mounted."""
    folder = tmp_path / "small"
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", "size=4m", "tmpfs")
    try:
        subprocess.run(["mount", *options, folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
