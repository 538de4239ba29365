"""Programs that do what no implementation should: each is an entry of `hostile.yaml`.

A program answers as the reference does, through `answer(request)`, and does its mischief at a
request with a name. `state` is the state directory of the last start, `outside` a folder that
nobody may touch, and `held` is open in all that the program starts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

_FILE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("hostile.yaml").read_bytes())


class Hostile(msgspec.Struct, frozen=True):
    """A program.

    Attributes:
        at: the operation at which it does what it does, the first time.
        body: what it does; afterwards it answers, unless it has ended.
        words: what the report says of it, a regular expression; empty where all is well, for the
            harness has nothing to do with it.
        when: whether it does so before it makes its answer, once it is made, or after it.
    """

    at: str
    body: str
    words: str = ""
    when: Literal["before", "made", "after"] = "before"

    def source(self) -> str:
        """The program."""
        mischief = (
            f"    if request.op == {self.at!r} and ready and not done:\n        done = True\n"
        )
        mischief += "".join(f"        {line}\n" for line in self.body.splitlines())
        parts = ["    reply = made(request)\n", "    say(reply)\n"]
        parts.insert(("before", "made", "after").index(self.when), mischief)
        return _FILE["prelude"] + "".join(parts)


HOSTILE = msgspec.convert(_FILE["programs"], dict[str, Hostile])
"""All of them, by name."""

if os.getuid() == 0:
    # Nothing is closed to root.
    HOSTILE["closed-state"] = msgspec.structs.replace(HOSTILE["closed-state"], words="")
