"""The kernel's notations for CPU sets, and a compact notation for sequences of numbers.

A *list* is the kernel's list format, ``0-3,8`` (Documentation/admin-guide, "cpulist"), with an
optional stride: ``0-14/2``. A *mask* is hexadecimal in groups of 32 bits. A *sequence* has one
value per CPU: ``0-3`` counts, ``5*4`` repeats, ``0-3:2`` repeats each number, ``(0,8)*2`` groups,
and ``none`` is a missing value.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence

Value = int | None

_LIST_ITEM = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?:/(\d{1,9}))?)?")
_MAX_PERIOD = 64
_SEQUENCE_TOKEN = re.compile(r"\s*(none|\d+-\d+(?:/\d+)?|-?\d+|[(),]|[*:]\d{1,9}(?!\d))")


def parse_list(text: str, limit: int) -> tuple[int, ...]:
    """Parses a list; returns its numbers in the order written, each below ``limit``.

    Raises:
        ValueError: the syntax is wrong, or a number is a duplicate or not below ``limit``.
    """
    numbers: dict[int, None] = {}
    for part in text.split(",") if text.strip() else ():
        match = _LIST_ITEM.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"expected a number or a range such as 0-3, got {part.strip()!r}")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step == 0:
            raise ValueError(f"{part.strip()!r} is an empty range")
        if last >= limit:
            raise ValueError(f"{last} is too large; the maximum is {limit - 1}")
        for number in range(first, last + 1, step):
            if number in numbers:
                raise ValueError(f"duplicate number {number}")
            numbers[number] = None
    return tuple(numbers)


def format_list(numbers: Iterable[int]) -> str:
    """Formats a list: ascending, with ranges, without strides; ``""`` if empty."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def format_mask(numbers: Iterable[int], width: int) -> str:
    """Formats a set as a hexadecimal mask, ``width`` bits wide.

    Groups of 32 bits are joined by commas; the first group is as short as the width allows.
    """
    value = 0
    for number in numbers:
        value |= 1 << number
    bits = max(width, value.bit_length(), 1)
    words = (bits + 31) // 32
    first = (bits - 32 * (words - 1) + 3) // 4
    digits = f"{value:0{first + 8 * (words - 1)}x}"
    return ",".join([digits[:first], *(digits[i : i + 8] for i in range(first, len(digits), 8))])


def parse_sequence(text: str | int, limit: int) -> tuple[Value, ...]:
    """Parses a sequence; returns its values, at most ``limit`` of them.

    Raises:
        ValueError: the syntax is wrong, or there are more than ``limit`` values.
    """
    if isinstance(text, int):
        return (text,)
    tokens: deque[str] = deque()
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _SEQUENCE_TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"cannot parse {text[position : position + 12]!r} in a sequence")
        tokens.append(match[1])
        position = match.end()
    values = _parse_items(tokens, limit, depth=0)
    if tokens:
        raise ValueError(f"unexpected {tokens[0]!r} in a sequence")
    return values


def _parse_items(tokens: deque[str], limit: int, depth: int) -> tuple[Value, ...]:
    """Parses comma-separated items and removes their tokens from the left."""
    if depth > 8:  # noqa: PLR2004 - deeper than anyone writes, far from Python's own limit
        raise ValueError("parentheses are nested too deeply")
    result: list[Value] = []
    while True:
        if not tokens:
            raise ValueError("the sequence ends where a number is expected")
        head = tokens.popleft()
        values: tuple[Value, ...]
        if head == "(":
            values = _parse_items(tokens, limit, depth + 1)
            if not tokens or tokens.popleft() != ")":
                raise ValueError("unclosed parenthesis")
        else:
            values = _parse_atom(head, limit)
        while tokens and tokens[0][0] in "*:":
            sign, count = tokens[0][0], int(tokens.popleft()[1:])
            _check_limit(len(values) * count, limit)
            values = (
                values * count
                if sign == "*"
                else tuple(value for value in values for _ in range(count))
            )
        result.extend(values)
        _check_limit(len(result), limit)
        if not tokens or tokens[0] != ",":
            return tuple(result)
        tokens.popleft()


def _parse_atom(token: str, limit: int) -> tuple[Value, ...]:
    if token == "none":  # noqa: S105 - a word of the sequence language
        return (None,)
    span = _LIST_ITEM.fullmatch(token)
    if span is not None and span[2]:
        first, last, step = int(span[1]), int(span[2]), int(span[3] or 1)
        if last < first or step == 0:
            raise ValueError(f"{token!r} is an empty range")
        _check_limit((last - first) // step + 1, limit)
        return tuple(range(first, last + 1, step))
    if not re.fullmatch(r"-?\d{1,18}", token):
        raise ValueError(f"expected a number, got {token!r}")
    return (int(token),)


def _check_limit(count: int, limit: int) -> None:
    if count > limit:
        raise ValueError(f"more than {limit} values")


def format_sequence(values: Sequence[Value]) -> str:
    """Formats a sequence in a short notation for `parse_sequence`, not always the shortest."""
    if len(values) > 1:
        for count in range(len(values), 1, -1):
            if len(values) % count:
                continue
            period = len(values) // count
            if all(values[i] == values[i % period] for i in range(period, len(values))):
                return _append_suffix(values[:period], f"*{count}")
        hold = _hold(values)
        if hold > 1:
            return _append_suffix(values[::hold], f":{hold}")
    return ",".join(_runs(values))


def _append_suffix(values: Sequence[Value], suffix: str) -> str:
    text = format_sequence(values)
    single = re.fullmatch(r"none|-?\d+|\d+-\d+(?:/\d+)?", text)
    return f"{text}{suffix}" if single else f"({text}){suffix}"


def _hold(values: Sequence[Value]) -> int:
    """Returns the largest k such that all runs of equal values divide into groups of k."""
    runs = [0]
    for i, value in enumerate(values):
        if i and value != values[i - 1]:
            runs.append(0)
        runs[-1] += 1
    shortest = min(runs)
    return shortest if all(run % shortest == 0 for run in runs) else 1


def _runs(values: Sequence[Value]) -> list[str]:
    parts: list[str] = []
    start = 0
    while start < len(values):
        end = _run_end(values, start)
        period, repeats = _repetition(values, start)
        if repeats > 1 and period * repeats > end - start:
            parts.append(_append_suffix(values[start : start + period], f"*{repeats}"))
            start += period * repeats
            continue
        first, last = values[start], values[end - 1]
        count = end - start
        if count == 1 or first is None or last is None or first == last:
            parts.append(("none" if first is None else str(first)) + f"*{count}" * (count > 1))
        else:
            step = (last - first) // (count - 1)
            parts.append(f"{first}-{last}" + f"/{step}" * (step > 1))
        start = end
    return parts


def _repetition(values: Sequence[Value], start: int) -> tuple[int, int]:
    """Returns the period from ``start`` with the longest repetition, and its number of repeats."""
    best = (1, 1)
    for period in range(2, min(_MAX_PERIOD, (len(values) - start) // 2) + 1):
        unit = values[start : start + period]
        end = start + period
        while values[end : end + period] == unit:
            end += period
        if end - start > max(best[0] * best[1], period):
            best = (period, (end - start) // period)
    return best


def _run_end(values: Sequence[Value], start: int) -> int:
    """Returns the end of the longest run from ``start``: equal values, or a range of numbers.

    A range with a stride needs at least three numbers.
    """
    end = start + 1
    while end < len(values) and values[end] == values[start]:
        end += 1
    first = values[start]
    if end > start + 1 or first is None or first < 0 or end == len(values):
        return end
    second = values[end]
    if second is None or second <= first:
        return end
    step = second - first
    stop = end + 1
    while stop < len(values) and values[stop] == first + step * (stop - start):
        stop += 1
    return stop if step == 1 or stop - start > 2 else end  # noqa: PLR2004 - two are no stride
