"""The Kubernetes releases that a case covers."""

from __future__ import annotations

import operator
import re

_CONSTRAINT = re.compile(r"(>=|<=|<|>|==)?\s*(\d+)\.(\d+)\Z")
_NAME = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\Z")
_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    None: operator.eq,
}


class ConstraintError(ValueError):
    """A string is not a range of releases such as ``>= 1.34`` or ``>= 1.34, < 1.36``."""


def includes(constraint: str, release: str) -> bool:
    """Whether a release is within a range; an empty range includes all releases.

    Raises:
        ConstraintError: the range or the release is invalid.
    """
    version = _parse(release)[1]
    parts = constraint.split(",") if constraint else []
    return all(_COMPARE[sign](version, bound) for sign, bound in map(_parse, parts))


def check_name(release: str) -> None:
    """Checks that a string has the form of a release, known or not.

    Raises:
        ConstraintError: the string has a different form.
    """
    if _NAME.match(release) is None:
        raise ConstraintError(f"expected a release such as '1.35', got {release!r}")


def _parse(text: str) -> tuple[str | None, tuple[int, int]]:
    match = _CONSTRAINT.match(text.strip())
    if match is None:
        raise ConstraintError(f"expected a release such as '1.35' or '>= 1.34', got {text!r}")
    return match[1], (int(match[2]), int(match[3]))
