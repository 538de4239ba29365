"""The end of a process that uses messages."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import atexit, gc
# Handlers run in the reverse order of their registration.
atexit.register(lambda: print(gc.get_freeze_count() > 0))
import numaproof.protocol.codec
from numaproof.protocol.exits import freeze_at_exit
{call}
"""


@pytest.mark.parametrize(("call", "frozen"), [("freeze_at_exit()", "True"), ("", "False")])
def test_the_collector_frees_no_message_types_at_exit_where_that_was_asked_for(
    call: str, frozen: str
) -> None:
    command = [sys.executable, "-c", SCRIPT.format(call=call)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{frozen}\n"
