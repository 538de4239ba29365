"""The shapes of values: which plain values a type of the Kubernetes API takes.

Only the shape counts; what a text has to look like is left to what reads the field.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class _Shape(NamedTuple):
    """The Python types that stand for a type; what is wrong with others, and what to write."""

    takes: tuple[type, ...]
    message: str
    fix: str


_REFERENCE = "see the Kubernetes API reference"
_LIST = _Shape((list,), "must be a list", _REFERENCE)
_MAPPING = _Shape((dict,), "must be a mapping", _REFERENCE)
_WHOLE = _Shape((int, float), "must be a whole number", "write digits without quotes")
_QUANTITY = _Shape((str, int, float), "must be a quantity", "use one such as 2, 500m or 1Gi")
_SECONDS = 'use a text such as "10s"'

_SCALARS = {
    "string": _Shape((str,), "must be text", "write it in quotes"),
    "bool": _Shape((bool,), "must be true or false", "write true or false, without quotes"),
    "int32": _WHOLE,
    "int64": _WHOLE,
    "uint32": _WHOLE,
    "float64": _Shape((int, float), "must be a number", "write it without quotes"),
    "Quantity": _QUANTITY,
    "QuantityValue": _QUANTITY,
    "IntOrString": _Shape((int, str), "must be a number or text", _REFERENCE),
    "Duration": _Shape((str,), "must be a duration", _SECONDS),
    "TimeOrMetaDuration": _Shape((int, float, str), "must be a duration", _SECONDS),
    "Time": _Shape((str,), "must be a time", 'use a text such as "2026-01-31T12:00:00Z"'),
}


def fits(value: Any, type_: str) -> bool:
    """Whether a plain value has the shape of a type of `fields.table`; null has that of any."""
    shape = _shape(type_)
    if isinstance(value, bool):  # which Python takes for a number
        return bool in shape.takes
    if isinstance(value, float) and shape is _WHOLE:
        return value.is_integer()
    return value is None or isinstance(value, shape.takes)


def mismatch(type_: str) -> tuple[str, str]:
    """What is wrong with a value that does not fit a type, and what to write instead."""
    _, message, fix = _shape(type_)
    return message, fix


def _shape(type_: str) -> _Shape:
    return _LIST if type_.startswith("[]") else _SCALARS.get(type_, _MAPPING)
