"""Reads fields of a profile; errors have the path of the field."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from numaproof.fakesys.machine import MAX_CPUS, ProfileError
from numaproof.fakesys.ranges import Value, format_list, parse_sequence
from numaproof.inputs.documents import PathTuple
from numaproof.inputs.plurals import plural

_T = TypeVar("_T")


class RowBudget:
    """How many CPUs the rows of a profile may name all together, each as often as it is named."""

    def __init__(self, times: int) -> None:
        """As many as the largest machine has, so many times."""
        self._most = self._left = times * MAX_CPUS

    def spend(self, path: PathTuple, count: int) -> None:
        """Counts the CPUs of a row.

        Raises:
            ProfileError: they are too many by now.
        """
        self._left -= count
        if self._left < 0:
            message = f"by this row, rows name more than {self._most:,} CPUs"
            raise ProfileError(path, message, "say the same of many CPUs in one row")


def read(path: PathTuple, parse: Callable[..., _T], *args: Any) -> _T:
    """``parse(*args)``, with a ValueError turned into a ProfileError about ``path``."""
    try:
        return parse(*args)
    except ValueError as error:
        raise ProfileError(path, str(error)) from None


def spread(path: PathTuple, text: str | int, count: int, of: str) -> tuple[Value, ...]:
    """Parses a sequence with one value for each of ``count`` things, or one for all."""
    values = read(path, parse_sequence, text, MAX_CPUS)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise ProfileError(
            path,
            f"{plural(len(values), 'value')} for {count} {of}",
            "use one for all, or one for each",
        )
    return values


def require_cpus(path: PathTuple, numbers: Iterable[int], cpus: Iterable[int]) -> None:
    """Checks that all numbers are CPUs of the machine.

    Raises:
        ProfileError: one is not; says which CPUs there are.
    """
    known = set(cpus)
    for number in numbers:
        if number not in known:
            fix = f"the CPUs are {format_list(known)}"
            raise ProfileError(path, f"CPU {number} does not exist", fix)
