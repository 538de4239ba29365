"""Diagnosis of programs that each do one thing wrong; `programs.yaml` has both.

A row replaces parts of the driver in `examples`, changes the requests that the reference reads, or
is a program. `says` has each cause once, with the step whose answer shows it first, then the next
steps.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from builders.tables import Table

if TYPE_CHECKING:
    import pytest

    from conftest import Examine

PROGRAMS = Table(__file__, "programs.yaml")

REFERENCE = """\
import json
import sys

from numaproof.protocol import codec
from numaproof.reference.implementation import Reference

reference = Reference(follows_docs=bool(CLAIMS))
for line in sys.stdin.buffer:
    request = json.loads(line)
    args = request["args"]
    config = args.get("config", {})
    spec = args.get("pod", {}).get("spec", {})
    WRONG
    given = codec.decode(json.dumps(request).encode(), codec.Request)
    answer = reference.call(given.op, codec.decode_args(given))
    said = json.loads(codec.encode_answer(given.id, answer))
    if given.op == "hello":
        said["ok"] |= CLAIMS
    print(json.dumps(said), flush=True)
"""
"""A reference that reads changed requests and may claim less."""

VARYING = (
    (re.compile(r"\btmp\w*\b"), "tmp"),
    (re.compile(r"\S*/python\S* \S*/program\.py"), "it"),
    (re.compile(r" \(and \d+ more times?\)"), " (and more)"),
    (re.compile(r"([^\n]{180})[^\n]{20,}"), r"\1…"),
)


@PROGRAMS
def test_mistakes_are_reported(
    row: dict[str, Any],
    examine_driver: Examine,
    examined_text: Examine,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    replaced = [tuple(pair) for pair in row.get("instead", ())]
    match row.get("program"):
        case None:
            diagnosis = examine_driver(*replaced, timeout=row.get("timeout", 10.0))
        case "reference":
            ((_, wrong),) = replaced or ((None, "pass"),)
            text = REFERENCE.replace("CLAIMS", repr(row.get("claims", {}))).replace("WRONG", wrong)
            diagnosis = examined_text(text, 60.0)
        case text:
            diagnosis = examined_text(text)
    said: dict[str, str] = {}
    for exchange in diagnosis.exchanges:
        for one in exchange.findings:
            shown = f"{one.wrong}{' (advice)' * one.advice}{f' | {one.log}' * bool(one.log)}"
            after = f" after {one.after}" if one.after else ""
            said.setdefault(one.cause, mask_varying(f"{exchange.step}{after}: {shown}"))
    PROGRAMS.check(
        row,
        {
            "asked": dict(Counter(one.step for one in diagnosis.exchanges if one.request)),
            "processes": len({one.process for one in diagnosis.exchanges}),
            "healthy": diagnosis.healthy,
            "found": [*said.values()],
            "next": mask_varying(diagnosis.next_steps[0]),
        },
    )


def mask_varying(text: str) -> str:
    """Removes varying parts of a text."""
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return text
