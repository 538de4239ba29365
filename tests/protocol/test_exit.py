"""The end of a process that has imported the project."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, gc
# Handlers run in the reverse order of their registration.
atexit.register(lambda: print(gc.get_freeze_count() > 0))
import numaproof.{package}
"""


@pytest.mark.parametrize("package", ["protocol", "fakesys"])
def test_the_garbage_collector_frees_no_message_types_at_exit(package: str) -> None:
    command = [sys.executable, "-c", SCRIPT.format(package=package)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"
