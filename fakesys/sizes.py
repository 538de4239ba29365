"""Amounts of memory in profiles: bytes, or a number with a binary unit."""

import re

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d{1,18})\s*(?:([KMGT])i?B?)?")


def parse_size(text: str | int) -> int:
    """The bytes of a size such as ``96Gi``, ``32K`` or ``1048576``.

    Raises:
        ValueError: it is not a size, or not below 2**63.
    """
    match = _SIZE.fullmatch(str(text))
    if match is None:
        raise ValueError(f"expected a size such as 96Gi, 32Ki or 1048576, got {text!r}")
    size = int(match[1]) * _UNITS[match[2] or ""]
    if size >= 2**63:
        raise ValueError(f"{text!r} does not fit in 63 bits")
    return size


def parse_kilobytes(text: str | int) -> int:
    """The kilobytes of a size, for files that the kernel writes in ``kB``.

    Raises:
        ValueError: it is not a size, or not a whole number of kilobytes.
    """
    size = parse_size(text)
    if size % 1024:
        raise ValueError(f"{text!r} is not a whole number of KiB")
    return size // 1024


def format_kilobytes(kilobytes: int) -> str:
    """The size with the largest unit that divides it: ``96Gi``."""
    for unit, factor in (("Ti", 2**30), ("Gi", 2**20), ("Mi", 2**10)):
        if kilobytes and kilobytes % factor == 0:
            return f"{kilobytes // factor}{unit}"
    return f"{kilobytes}Ki"
