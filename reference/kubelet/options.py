"""Policy options, whose values a configuration gives as text."""

from __future__ import annotations

from numaproof.reference.golang import text


class OptionError(Exception):
    """The policy options are invalid; the text is the kubelet's."""


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
