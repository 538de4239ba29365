"""Kubernetes quantities, such as ``1500m`` or ``2Gi`` (Kubernetes API conventions, "Quantity").

A quantity is a decimal number with a suffix, kept as an exact fraction. The kubelet uses it as a
whole number or in thousandths, rounded up in both cases.
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
    """Returns the exact value of a quantity, which can also be a plain JSON number.

    Rounds to nano (10^-9) precision, away from zero, like the API machinery.

    Raises:
        QuantityError: the text is not a quantity.
        UnsupportedError: the quantity is too long, or its exponent is too large.

    Requirements: CPU-CONFIG-015, MEM-STATIC-006.
    """
    text = str(text)
    if len(text) > _LONGEST:
        raise UnsupportedError(f"a quantity with more than {_LONGEST} characters")
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
    number = parse(text)
    return -(-number.numerator // number.denominator)


def milli_value(text: str | float) -> int:
    """Returns the quantity in thousandths, rounded up."""
    number = parse(text)
    return -(-number.numerator * 1000 // number.denominator)


def whole_cpus(text: str | float) -> int | None:
    """Returns the quantity as a number of CPUs, or None if, in thousandths, it is not whole.

    Requirements: CPU-STATIC-005.
    """
    cpus, rest = divmod(milli_value(text), 1000)
    return None if rest else cpus


def _round_up(number: Fraction, unit: Fraction) -> Fraction:
    steps = number / unit
    return -(-steps.numerator // steps.denominator) * unit


_PLAIN_DIGITS = 18
_BINARY_DIGITS = 14


@lru_cache(maxsize=1024)
def exact(text: str | float) -> int | None:
    """Returns the quantity as an integer, or None if the API machinery refuses to convert it.

    The API machinery stores some quantities as decimals: fractions, numbers with a binary suffix
    and a decimal point (``1.5Gi``), and long numbers. (apimachinery, `Quantity.AsInt64`.)

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
"""The format of a quantity: ``2Ki``, ``2k`` or ``2e3``."""


def style(text: str | float) -> Style:
    found = _FORM.fullmatch(str(text))
    if found and found["exponent"]:
        return "exponent"
    return "binary" if found and found["suffix"] in _BINARY else "decimal"


@lru_cache(maxsize=1024)
def canonical(number: Fraction | int, style: Style) -> str:
    """Formats a number canonically: with the largest suffix that leaves a whole number.

    Numbers below 1Ki and fractions have no binary form. (Kubernetes API, `resource.Quantity`,
    "Before serializing, Quantity will be put in canonical form".) Decimal numbers of 10**21 or more
    have no suffix.
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
