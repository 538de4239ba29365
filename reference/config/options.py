"""Policy options, whose values a configuration gives as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.golang import text

if TYPE_CHECKING:
    from collections.abc import Mapping


class OptionError(Exception):
    """The policy options are invalid; the text is the kubelet's."""


def as_map(given: Mapping[str, str]) -> str:
    """Options as Go prints a map."""
    return f"map[{' '.join(f'{name}:{given[name]}' for name in sorted(given))}]"


def boolean(name: str, value: str) -> bool:
    """The value of an option that is on or off.

    Raises:
        OptionError: the value is neither.

    Requirements: CPU-CONFIG-005, CPU-CONFIG-006.
    """
    try:
        return text.boolean(value)
    except ValueError as error:
        raise OptionError(f'bad value for option "{name}": {error}') from None
