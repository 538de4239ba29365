"""Kubernetes quantities: ``1500m``, ``2Gi``, ``1e3`` (Kubernetes API conventions, "Quantity").

A quantity is a decimal number with a suffix, kept here as an exact fraction. The kubelet reads it
as a whole number or in thousandths, and rounds up both times.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from numaproof.reference.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_SMALLEST = Fraction(1, 10**9)
_LARGEST_EXPONENT = 400
_LONGEST = 500


_MALFORMED = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_OUTLINE = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")


class QuantityError(ValueError):
    """A text is not a quantity; the message is the kubelet's."""


@lru_cache(maxsize=4096)
def parse(text: str | float) -> Fraction:
    """The exact number that a quantity stands for; a plain JSON number is a quantity too.

    Anything finer than a nano is rounded away from zero, as in the API machinery.

    Raises:
        QuantityError: the text is not a quantity.
        UnsupportedError: it is one, and longer or larger than any that this computes with.

    Requirements: CPU-CONFIG-015, MEM-STATIC-006.
    """
    text = str(text)
    if len(text) > _LONGEST:
        raise UnsupportedError(f"a quantity of more than {_LONGEST} characters")
    if not _OUTLINE.fullmatch(text):
        raise QuantityError(_MALFORMED)
    found = _FORM.fullmatch(text)
    if found is None:
        raise QuantityError("unable to parse quantity's suffix")
    part = found["part"] or ""
    number = Fraction(int((found["whole"] or "0") + part), 10 ** len(part))
    if found["suffix"] in _BINARY:
        number *= 1024 ** _BINARY[found["suffix"]]
    else:
        exponent = int(found["exponent"] or _DECIMAL[found["suffix"] or ""])
        if abs(exponent) > _LARGEST_EXPONENT:
            raise UnsupportedError(f"{text}: an exponent beyond {_LARGEST_EXPONENT}")
        number *= Fraction(10) ** exponent
    number = _round_up(number, _SMALLEST)
    return -number if found["sign"] == "-" else number


def value(text: str | float) -> int:
    """The quantity as a whole number, rounded up."""
    number = parse(text)
    return -(-number.numerator // number.denominator)


def milli_value(text: str | float) -> int:
    """The quantity in thousandths, rounded up."""
    number = parse(text)
    return -(-number.numerator * 1000 // number.denominator)


def whole_cpus(text: str | float) -> int | None:
    """The quantity as a number of CPUs; None if that is not whole, in thousandths.

    Requirements: CPU-STATIC-005.
    """
    cpus, rest = divmod(milli_value(text), 1000)
    return None if rest else cpus


def _round_up(number: Fraction, unit: Fraction) -> Fraction:
    steps = number / unit
    return -(-steps.numerator // steps.denominator) * unit


_PLAIN_DIGITS = 18
_BINARY_DIGITS = 14


def exact(text: str | float) -> int | None:
    """The quantity as an integer; None where the API machinery says that it is not one.

    It says so of all that it keeps as a decimal number of any length: fractions, binary suffixes
    with a decimal point (``1.5Gi``), and long numbers. (apimachinery, `Quantity.AsInt64`.)

    Requirements: MEM-STATIC-006, MEM-STATIC-007.
    """
    number = parse(text)
    found = _FORM.fullmatch(str(text))
    if found is None:
        return None
    whole, part = (found["whole"] or "").lstrip("0") or "0", found["part"] or ""
    if found["suffix"] in _BINARY:
        power = 10 * _BINARY[found["suffix"]]
        fits = not part and len(whole) + power * 3 // 10 <= _BINARY_DIGITS
    else:
        power = int(found["exponent"] or _DECIMAL[found["suffix"] or ""])
        fits = power >= len(part) and len(whole) + len(part) <= _PLAIN_DIGITS
    return int(number) if fits and abs(number) < 1 << 63 else None


Style = Literal["binary", "decimal", "exponent"]
"""How a quantity is written: ``2Ki``, ``2k`` or ``2e3``."""


def style(text: str | float) -> Style:
    """How the quantity is written."""
    found = _FORM.fullmatch(str(text))
    if found and found["exponent"]:
        return "exponent"
    return "binary" if found and found["suffix"] in _BINARY else "decimal"


@lru_cache(maxsize=1024)
def canonical(number: Fraction | int, style: Style) -> str:
    """The number in the canonical form of a style: with the largest suffix that leaves it whole.

    Numbers below 1Ki and fractions have no binary form. (Kubernetes API, `resource.Quantity`,
    "Before serializing, Quantity will be put in canonical form".) Decimal numbers of 10**21 and
    more lose their suffix there.
    """
    left = Fraction(number)
    if style == "binary" and (abs(left) < _KI or left.denominator != 1):
        style = "decimal"
    base, power = (_KI, 0) if style == "binary" else (_KILO, -3)
    left /= Fraction(base) ** power
    if not left:
        return "0"
    while left % base == 0:
        left /= base
        power += 1
    if style == "exponent":
        return f"{left}e{3 * power}" if power else str(left)
    suffixes = _BY_POWER[style]
    return f"{left}{suffixes.get(power, '')}"


_KI = 1024
_KILO = 1000
_BY_POWER: Mapping[str, Mapping[int, str]] = {
    "binary": {power: suffix for suffix, power in _BINARY.items()},
    "decimal": {power // 3: suffix for suffix, power in _DECIMAL.items()},
}
