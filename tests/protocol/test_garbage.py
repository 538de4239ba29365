"""Exiting a process that uses messages."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import atexit, gc
# Handlers run in the reverse order of their registration.
atexit.register(lambda: print(gc.get_freeze_count()))
import numaproof.protocol.codec
from numaproof.protocol.garbage import freeze_at_exit
{call}
"""


def frozen_at_exit(call: str) -> int:
    command = [sys.executable, "-c", SCRIPT.format(call=call)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(ended.stdout)


def test_message_types_are_not_collected_at_exit_on_request() -> None:
    # Some interpreters freeze a few objects themselves.
    assert frozen_at_exit("freeze_at_exit()") > frozen_at_exit("") + 1000
