"""Options of policies, as the kubelet reads their values from text."""

from __future__ import annotations

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class OptionError(Exception):
    """The options of a policy cannot be; the text is the kubelet's."""


def boolean(name: str, text: str) -> bool:
    """The value of an option that is on or off.

    Raises:
        OptionError: the text is neither.
    """
    if text not in _TRUE | _FALSE:
        raise OptionError(
            f'bad value for option "{name}": strconv.ParseBool: parsing "{text}": invalid syntax'
        )
    return text in _TRUE
