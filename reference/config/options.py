"""Policy options, whose values are strings in the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.golang import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.config.gates import Maturity


class OptionError(Exception):
    """The policy options are invalid; the text is the kubelet's."""


def as_map(policy_options: Mapping[str, str]) -> str:
    """Formats options as Go formats a map."""
    return f"map[{' '.join(f'{name}:{policy_options[name]}' for name in sorted(policy_options))}]"


def boolean(name: str, value: str) -> bool:
    """Parses the value of a boolean option.

    Raises:
        OptionError: the value is not a boolean.

    Requirements: CPU-CONFIG-005, CPU-CONFIG-006.
    """
    try:
        return text.boolean(value)
    except ValueError as error:
        raise OptionError(f'bad value for option "{name}": {error}') from None


def check_available(
    manager: str,
    name: str,
    maturity: Maturity | None,
    gates: Mapping[str, bool] | None,
    hidden_message: str,
) -> None:
    """Checks that an option exists and that its maturity level is enabled.

    Args:
        manager: the manager that has the option, such as ``CPU Manager``.
        name: the option's name.
        maturity: the option's maturity, or None if the option does not exist.
        gates: the feature gates; None enables all levels.
        hidden_message: the template of the error for an option whose level is disabled.

    Raises:
        OptionError: the option is unknown or disabled.
    """
    if maturity is None:
        raise OptionError(f'unknown {manager} Policy option: "{name}"')
    level = maturity.capitalize()
    gate = f"{manager.replace(' ', '')}Policy{level}Options"
    if gates is not None and maturity in ("alpha", "beta") and not gates[gate]:
        raise OptionError(hidden_message.format(level=maturity, Level=level, name=name))
