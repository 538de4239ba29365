"""What users add to a text with ``--assume KEY=VALUE``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numaproof.fakesys.fields import parse_kilobytes
from numaproof.formats.machines.description import DescriptionError
from numaproof.inputs.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_COUNT = 8192


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 0 < int(text) <= MAX_COUNT:
        raise ValueError(f"expected a number from 1 to {MAX_COUNT}, got {text!r}")
    return int(text)


def _pages(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"expected a number of pages, got {text!r}")
    return int(text)


def _one_of(*choices: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if text not in choices:
            raise ValueError(f"expected {' or '.join(choices)}, got {text!r}")
        return choices.index(text)

    return read


SIBLINGS = ("apart", "adjacent")
"""Where a core's CPUs are: all cores' first threads come first, or a core's are neighbours."""

NUMBERINGS = ("by-node", "alternating")
"""How cores are numbered: node by node, or one core of each node in turn."""

KEYS: dict[str, Callable[[str], int]] = {
    "memory": parse_kilobytes,
    "nodes": _count,
    "sockets": _count,
    "threads-per-core": _count,
    "siblings": _one_of(*SIBLINGS),
    "numbering": _one_of(*NUMBERINGS),
    "cores-per-l3": _count,
    "hugepages-2Mi": _pages,
    "hugepages-1Gi": _pages,
}
"""What can be assumed, and how to read it: ``memory`` in KiB; all are about the whole machine,
except those that say otherwise.
"""


def parse(text: str) -> tuple[str, int]:
    """Reads ``KEY=VALUE``.

    Raises:
        ValueError: the key is unknown, or the value is invalid.
    """
    key, _, value = text.partition("=")
    if key not in KEYS:
        raise ValueError(f"unknown key {key!r}; {suggestion(key, KEYS)}")
    try:
        return key, KEYS[key](value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


class Assumptions:
    """The assumptions for one machine; each must be used.

    Raises:
        DescriptionError: a key occurs twice.
    """

    def __init__(self, pairs: Iterable[tuple[str, int]] = ()) -> None:
        self._values: dict[str, int] = {}
        self._leftovers: set[str] = set()
        for key, value in pairs:
            if key in self._values:
                raise DescriptionError(f"--assume {key} is given twice", "give it once")
            self._values[key] = value
            self._leftovers.add(key)

    def take(self, key: str) -> int | None:
        """Returns what is assumed for a key, which is then used; None if nothing is."""
        self._leftovers.discard(key)
        return self._values.get(key)

    def require_used(self, text: str) -> None:
        """Checks that each assumption was used for the `text`.

        Raises:
            DescriptionError: some were not.
        """
        for key in sorted(self._leftovers):
            raise DescriptionError(
                f"--assume {key} has no effect: {text} doesn't need it", "remove it"
            )
