"""Parsing texts like Go and the kubelet: `texts.yaml` has functions with texts and results.

`<9*5000>` stands for 5,000 nines. For JSON, a text's characters stand for bytes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from builders.tables import Table
from numaproof.reference.checkpoints import files
from numaproof.reference.config import cpulist, eviction
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.golang import decoding, durations, numbers, syntax
from numaproof.reference.golang.text import quote
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS = Table(__file__, "texts.yaml", compact=True)
_REFUSALS = (
    cpulist.CPUListError,
    durations.DurationError,
    eviction.ThresholdError,
    numbers.NumeralError,
    quantity.QuantityError,
    syntax.GoJSONError,
)
_LONG = 200

_TABLE = "map[string]map[string]string"
STATE = decoding.Fields(
    "state.Checkpoint",
    {
        "policyName": decoding.Text(),
        "entries": decoding.Map(decoding.Map(decoding.Text(), _TABLE[11:]), _TABLE),
        "extra": decoding.Boolean(),
        "checksum": decoding.Unsigned("checksum.Checksum"),
    },
)
NUMBERED = decoding.Map(
    decoding.Array(decoding.Signed(), "[]int"), "map[int][]int", integer_keys=True
)
_INNER = decoding.Fields("state.Inner", {"a": decoding.Signed()}, pointer=True)
POINTERS = decoding.Fields(
    "state.Outer",
    {
        name: decoding.Map(_INNER, "map[string]*state.Inner", starts_empty=name in ("made", "gone"))
        for name in ("absent", "made", "gone", "pointers")
    },
)


def _decoder(kind: decoding.Kind) -> Callable[[str], Any]:
    def decode(text: str) -> Any:
        found, error = decoding.decode_partly(text.encode("latin-1"), kind)
        return {"refused": error} if error else found

    return decode


def _json(text: str) -> dict[str, Any]:
    """Returns the parsed value, and whether it is the same next to a text with an escape."""
    content = text.encode("latin-1")
    found = syntax.parse(content)
    shown = json.loads(json.dumps(found, default=lambda number: {"number": number.text}))
    beside = syntax.parse(b"[" + content + b',"\\u0041"]')
    return {"read": shown, "beside an escape": beside == [found, "A"]}


def _quantity(text: str) -> dict[str, Any]:
    found = quantity.parse(text)
    return {
        "exactly": str(found),
        "value": quantity.value(text),
        "thousandths": quantity.milli_value(text),
        "whole CPUs": quantity.whole_cpus(text),
        "integer": quantity.exact(text),
        "written": quantity.canonical(found, quantity.style(text)),
    }


def _threshold(text: str) -> str | None:
    eviction.check({"memory.available": text})
    return eviction.of_memory({"memory.available": text}, 16 << 30)


def _thresholds(text: str) -> str | None:
    thresholds = dict([text.split("<")])
    eviction.check(thresholds)
    return eviction.of_memory(thresholds, 1 << 30)


FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "a whole number": numbers.parse_signed,
    "an unsigned number": numbers.parse_unsigned,
    "a leading number": numbers.leading_signed,
    "a leading number of K": lambda text: numbers.leading_unsigned(text, unit="K"),
    "a quoted text": quote,
    "a duration": durations.nanoseconds,
    "a duration as Go writes it": lambda text: durations.format_duration(int(text)),
    "a quantity": _quantity,
    "a quantity that is a number in JSON": lambda text: quantity.milli_value(json.loads(text)),
    "a threshold of memory": _threshold,
    "thresholds of other signals": _thresholds,
    "a list of CPUs": lambda text: str(cpulist.parse(text)),
    "JSON": _json,
    "a state": _decoder(STATE),
    "a map of numbers": _decoder(NUMBERED),
    "a map of pointers": _decoder(POINTERS),
    "JSON with HTML escaped": lambda text: files.encode({text: text}).decode(),
}


@TEXTS
def test_a_text_is_parsed_like_in_go(row: dict[str, Any]) -> None:
    TEXTS.check(row, {text: _answer(FUNCTIONS[row["what"]], text) for text in row["says"]})


def _answer(function: Callable[[str], Any], text: str) -> Any:
    whole = re.sub(r"<(.+?)\*(\d+)>", lambda match: match[1] * int(match[2]), text)
    try:
        return function(whole)
    except _REFUSALS as error:
        said = str(error)
        return {"refused": said if len(said) < _LONG else said[: _LONG // 4] + "…" + said[-40:]}
    except UnsupportedError as error:
        return {"not built": str(error)}
