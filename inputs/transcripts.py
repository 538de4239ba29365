"""Transcripts of a terminal: prompts with commands, each followed by its output."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

_PROMPT = re.compile(
    r"""
    ^(?:\(\S+\)\ )?                                             # a virtual environment
    (?: \[?[\w.-]+@(?P<host>[\w.-]+) [^\n\#$%]{0,80} [\#$%]     # [root@worker-3 ~]#
      | (?P<own>[\w.-]+):[~/][^\s\#$%]{0,80}[ ]?[\#$]           # worker-3:~ #
      | sh-[0-9.]+[\#$]
      | PS\ [A-Z]:[^\n>]{0,80}>                                   # PS C:\Users\ana>
      | ➜\s+\S+(?:\ git:\(\S+\))?(?:\ ✗)?
      | [$%\u276f]
      | ==>(?=\ \S+\ <==$)                                        # the head of a file in `tail`
      | \#(?=\ (?:sudo\ )?(?:cat|kubectl\ get|oc\ get|systemctl\ cat)\ [\w./-]+)
    )(?:\ +(?P<command>[^\n]*?)\ *)?$
    """,
    re.MULTILINE | re.VERBOSE,
)
_CONTINUED = re.compile(r"\\\n")


class Part(NamedTuple):
    """A command and its output.

    Attributes:
        host: the host in the prompt; empty if there is none.
        command: the command; empty in front of the first prompt.
        text: the command and its output, after as many empty lines as precede them in the text.
        output: the output, after as many empty lines.
    """

    host: str
    command: str
    text: str
    output: str


def parts(text: str) -> tuple[Part, ...]:
    """Returns the commands in a transcript with their outputs; none if the text is none.

    A text that begins with comments is a transcript only if it has another prompt, and scripts with
    here-documents are none.
    """
    prompts = [*_PROMPT.finditer(text)]
    commands = [one for one in prompts if one["command"]]
    if not commands or any("<<" in one["command"] for one in commands):
        return ()
    if len(commands) == 1 and commands[0][0].startswith("#"):
        return ()
    found = []
    if text[: prompts[0].start()].strip():
        found.append(Part("", "", text[: prompts[0].start()], text[: prompts[0].start()]))
    for prompt, end in pairwise((*prompts, None)):
        if prompt is None or not prompt["command"]:
            continue
        rest = text[: end.start() if end else len(text)]
        command = _CONTINUED.sub(" ", rest[prompt.start("command") :]).partition("\n")[0]
        found.append(
            Part(
                prompt["host"] or prompt["own"] or "",
                command,
                _at_line(text, prompt.start(), rest[prompt.start("command") :]),
                _at_line(text, prompt.end(), rest[prompt.end() :]),
            )
        )
    return tuple(found)


def _at_line(text: str, start: int, part: str) -> str:
    return "\n" * text.count("\n", 0, start) + part


def outputs(text: str) -> str:
    """Returns a transcript with the marks between YAML documents instead of its prompts.

    Other texts are returned unchanged.
    """
    return _PROMPT.sub("---", text) if parts(text) else text
