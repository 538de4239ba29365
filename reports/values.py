"""Formats JSON values for people and compares them."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from numaproof.protocol.mismatch import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

K = TypeVar("K")
V = TypeVar("V")

_DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where an answer differs from the expected one; both sides are JSON text."""

    path: str
    expected: str
    actual: str


def _limit_depth(value: Any, depth: int = 0) -> Any:
    """Replaces parts of a value that are nested too deeply to be readable."""
    if not value or not isinstance(value, (dict, list)):
        return value
    if depth == _DEEPEST:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {str(key): _limit_depth(part, depth + 1) for key, part in value.items()}
    return [_limit_depth(part, depth + 1) for part in value]


def compact(value: Any) -> str:
    """Formats a value as JSON on one line."""
    return _text(_limit_depth(value))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def pretty(value: Any, width: int = 96) -> str:
    """Formats a value as indented JSON; parts that fit into `width` columns stay on one line.

    Keys keep their order.
    """
    return "\n".join(_lines(_limit_depth(value), "", width, 0))


def _lines(value: Any, lead: str, width: int, depth: int) -> Iterator[str]:
    indent = "  " * depth
    whole = _text(value)
    fits = len(indent) + len(lead) + len(whole) <= width
    if fits or not value or not isinstance(value, (dict, list)):
        yield f"{indent}{lead}{whole}"
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        parts = [(f"{_text(key)}: ", part) for key, part in value.items()]
    else:
        parts = [("", part) for part in value]
    yield f"{indent}{lead}{opening}"
    for number, (name, part) in enumerate(parts, 1):
        *before, last = _lines(part, name, width, depth + 1)
        yield from before
        yield last if number == len(parts) else f"{last},"
    yield f"{indent}{closing}"


def differences(expected: Any, actual: Any) -> tuple[Difference, ...]:
    """Returns the innermost differences between two values, in the order of `expected`."""
    return tuple(_differences(_limit_depth(expected), _limit_depth(actual), ""))


def _differences(expected: Any, actual: Any, path: str) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            place = f"{path}.{key}" if path else key
            if key not in actual:
                yield Difference(place, _text(expected[key]), ABSENT)
            elif key not in expected:
                yield Difference(place, ABSENT, _text(actual[key]))
            else:
                yield from _differences(expected[key], actual[key], place)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif type(expected) is not type(actual) or expected != actual:
        yield Difference(path or "(answer)", _text(expected), _text(actual))


def diff_lines(expected: Any, actual: Any, width: int = 96) -> tuple[tuple[str, str], ...]:
    """Formats both values and compares them line by line.

    Returns:
        Pairs of a mark and a line. The mark is ``" "`` for lines in both, ``"-"`` for expected
        lines, ``"+"`` for actual ones, and ``"…"`` for omitted lines without a difference nearby.
    """
    before = pretty(_sort_keys(expected), width).split("\n")
    after = pretty(_sort_keys(actual), width).split("\n")
    pairs: list[tuple[str, str]] = []
    shown = 0
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes():
        if group[0][1] > shown:
            pairs.append(("…", ""))
        for kind, low, shown, start, end in group:
            mark = " " if kind == "equal" else "-"
            pairs += [(mark, line) for line in before[low:shown]]
            pairs += [("+", line) for line in after[start:end] if kind != "equal"]
    return (*pairs, *([("…", "")] if shown < len(before) else []))


def _sort_keys(value: Any) -> Any:
    # The order of keys in JSON objects is irrelevant.
    return json.loads(json.dumps(_limit_depth(value), sort_keys=True))


def without_machine(args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call with the machine abbreviated."""
    shown = dict(args)
    machine = shown.get("machine")
    if isinstance(machine, dict):
        nodes = machine.get("topology")
        count = len(nodes) if isinstance(nodes, list) else 0
        shown["machine"] = f"(machine with CPUs {machine.get('num_cores')}, NUMA nodes {count})"
    return shown


def group_values(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Groups values by key; keys and values keep their order."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def segments(counts: Iterable[tuple[K, int]], digits: int) -> list[tuple[K, int, str, str]]:
    """Returns the segments of a bar: key, count, start and width in percent."""
    listed = list(counts)
    total = sum(count for _, count in listed)
    made, at = [], 0
    for what, count in listed:
        start, width = (f"{100 * one / total:.{digits}f}" for one in (at, count))
        made.append((what, count, start, width))
        at += count
    return made
