"""CPU lists in the kubelet's syntax, which is partly stricter and partly looser than Linux's."""

from __future__ import annotations

from numaproof.protocol.sets import LARGEST_MEMBER, CPUSet
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.golang import numbers


class CPUListError(ValueError):
    """The text is not a CPU list; the message is the kubelet's."""


def parse(text: str) -> CPUSet:
    """Parses a CPU list such as ``0-3,8``; an empty text is the empty set.

    Raises:
        CPUListError: the text is not a CPU list.
        UnsupportedError: the list has too many parts or a CPU number that is too large.
    """
    if text.count(",") >= LARGEST_MEMBER:
        raise UnsupportedError(f"a CPU list with more than {LARGEST_MEMBER} parts")
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
    try:
        number = numbers.parse_signed(text)
    except numbers.NumeralError as error:
        raise CPUListError(str(error)) from None
    if number >= LARGEST_MEMBER:
        raise UnsupportedError(f"CPU {number} (the largest supported is {LARGEST_MEMBER - 1})")
    return number
