"""Misbehaving programs; each is an entry of `hostile.yaml`.

A program answers like the reference, using `answer(request)`, and misbehaves at a certain
operation. `state` is the state directory of the last start, `outside` a folder that nobody may
touch, and `held` is a file descriptor inherited by everything that the program starts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

_FILE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("hostile.yaml").read_bytes())


class Hostile(msgspec.Struct, frozen=True):
    """A misbehaving program.

    Attributes:
        at: the operation at which it misbehaves for the first time.
        body: what it executes; then it answers, unless it has ended.
        words: a regular expression for the report; empty if the run passes, because the harness
            need not care.
        when: whether the body runs before the answer is computed, after that, or after it was
            sent.
    """

    at: str
    body: str
    words: str = ""
    when: Literal["before", "made", "after"] = "before"

    def source(self) -> str:
        """The program's source."""
        mischief = (
            f"    if request.op == {self.at!r} and ready and not done:\n        done = True\n"
        )
        mischief += "".join(f"        {line}\n" for line in self.body.splitlines())
        parts = ["    reply = made(request)\n", "    say(reply)\n"]
        parts.insert(("before", "made", "after").index(self.when), mischief)
        return _FILE["prelude"] + "".join(parts)


HOSTILE = msgspec.convert(_FILE["programs"], dict[str, Hostile])
"""All programs, by name."""

if os.getuid() == 0:
    # Root can access everything.
    HOSTILE["closed-state"] = msgspec.structs.replace(HOSTILE["closed-state"], words="")
