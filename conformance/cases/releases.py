"""Which Kubernetes releases a case is for."""

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
    """A text does not narrow releases; it should look like ``>= 1.34`` or ``>= 1.34, < 1.36``."""


def includes(constraint: str, release: str) -> bool:
    """Whether a release is one that a constraint allows; an empty constraint allows all.

    Raises:
        ConstraintError: the constraint, or the release, is not in the form.
    """
    version = _parse(release)[1]
    parts = constraint.split(",") if constraint else []
    return all(_COMPARE[sign](version, bound) for sign, bound in map(_parse, parts))


def check_name(release: str) -> None:
    """Checks that a text names one release; it need not be one that there is.

    Raises:
        ConstraintError: it does not.
    """
    if _NAME.match(release) is None:
        raise ConstraintError(f"{release!r} is not a release such as '1.35'")


def _parse(text: str) -> tuple[str | None, tuple[int, int]]:
    match = _CONSTRAINT.match(text.strip())
    if match is None:
        raise ConstraintError(f"{text!r} is not a release such as '1.35' or '>= 1.34'")
    return match[1], (int(match[2]), int(match[3]))
