"""CPU lists as the kubelet reads them: in part stricter, in part looser than the kernel."""

from __future__ import annotations

import re

from numaproof.protocol.sets import LARGEST_MEMBER, CPUSet
from numaproof.reference.errors import NotBuiltError

_MOST_DIGITS = 19
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LARGEST_GO_INTEGER = (1 << 63) - 1


class CPUListError(ValueError):
    """The text is not a CPU list; the message is the kubelet's."""


def parse(text: str) -> CPUSet:
    """The CPUs that a list such as ``0-3,8`` names; the empty text is the empty set.

    Raises:
        CPUListError: the text is not a CPU list.
        NotBuiltError: it is one, of more CPUs than any machine has.
    """
    if text.count(",") >= LARGEST_MEMBER:
        raise NotBuiltError(f"a CPU list of more than {LARGEST_MEMBER} parts")
    mask = 0
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low = _integer(first)
        high = _integer(last) if dash else low
        if low > high:
            raise CPUListError(f'invalid range "{part}" ({low} > {high})')
        mask |= (1 << (high + 1)) - (1 << low)
    return CPUSet.from_mask(mask)


def _integer(text: str) -> int:
    problem = f'strconv.Atoi: parsing "{text}": '
    if not _INTEGER.fullmatch(text):
        raise CPUListError(f"{problem}invalid syntax")
    digits = text.lstrip("+-0")
    if len(digits) > _MOST_DIGITS or (number := int(text)) > _LARGEST_GO_INTEGER:
        raise CPUListError(f"{problem}value out of range")
    if number >= LARGEST_MEMBER:
        raise NotBuiltError(f"CPU {number}; the last one that there can be is {LARGEST_MEMBER - 1}")
    return number
