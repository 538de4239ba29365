"""Reads the fields of a profile; errors include the field's path."""

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from numaproof.fakesys.machine import MAX_CPUS, ProfileError
from numaproof.fakesys.ranges import Value, format_list, parse_sequence
from numaproof.inputs.documents import PathTuple
from numaproof.inputs.plurals import plural

_T = TypeVar("_T")


class RowBudget:
    """Limits how many CPUs the rows of a profile name in total, including repetitions."""

    def __init__(self, times: int) -> None:
        self._most = self._remaining_cpus = times * MAX_CPUS

    def spend(self, path: PathTuple, count: int) -> None:
        """Counts the CPUs of a row.

        Raises:
            ProfileError: the rows name too many CPUs.
        """
        self._remaining_cpus -= count
        if self._remaining_cpus < 0:
            message = f"the rows up to this one name more than {self._most:,} CPUs"
            raise ProfileError(path, message, "describe many CPUs in one row")


def read(path: PathTuple, parse: Callable[..., _T], *args: Any) -> _T:
    try:
        return parse(*args)
    except ValueError as error:
        raise ProfileError(path, str(error)) from None


def spread(path: PathTuple, text: str | int, count: int, of: str) -> tuple[Value, ...]:
    """Parses a sequence with one value for each of ``count`` things, or one value for all."""
    values = read(path, parse_sequence, text, MAX_CPUS)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        message = f"{plural(len(values), 'value')} for {count} {of}"
        raise ProfileError(path, message, "use one for all, or one for each")
    return values


def require_cpus(path: PathTuple, numbers: Iterable[int], cpus: Iterable[int]) -> None:
    """Checks that all numbers are CPUs of the machine.

    Raises:
        ProfileError: a number is not a CPU of the machine; the message lists the CPUs.
    """
    known = set(cpus)
    for number in numbers:
        if number not in known:
            fix = f"the CPUs are {format_list(known)}"
            raise ProfileError(path, f"CPU {number} does not exist", fix)


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d{1,18})\s*(?:([KMGT])i?B?)?")


def parse_size(text: str | int) -> int:
    """Parses a size such as ``96Gi``, ``32K`` or ``1048576``; returns bytes.

    Raises:
        ValueError: the text is not a size, or not below 2**63.
    """
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise ValueError(f"expected a size such as 96Gi, 32Ki or 1048576, got {text!r}")
    size = int(match[1]) * _UNITS[match[2] or ""]
    if size >= 2**63:
        raise ValueError(f"{text!r} does not fit in 63 bits")
    return size


def parse_kilobytes(text: str | int) -> int:
    """Parses a size for a file that the kernel writes in ``kB``; returns KiB.

    Raises:
        ValueError: the text is not a size, or not a whole number of KiB.
    """
    size = parse_size(text)
    if size % 1024:
        raise ValueError(f"{text!r} is not a whole number of KiB")
    return size // 1024


def format_kilobytes(kilobytes: int) -> str:
    """Formats a size in the largest unit that divides it: ``96Gi``."""
    for unit, factor in (("Ti", 2**30), ("Gi", 2**20), ("Mi", 2**10)):
        if kilobytes and kilobytes % factor == 0:
            return f"{kilobytes // factor}{unit}"
    return f"{kilobytes}Ki"
