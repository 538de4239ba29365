"""What a command line makes of a configuration, for whoever asks what is in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reference.config import flags
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.errors import NotBuiltError

if TYPE_CHECKING:
    from numaproof.protocol.messages import KubeletConfiguration


def in_force(
    config: KubeletConfiguration, command_line: tuple[str, ...], kubernetes: str
) -> KubeletConfiguration:
    """The configuration with what the flags set; as it is where they are refused.

    Requirements: CPU-CONFIG-016, CPU-CONFIG-017.
    """
    if not command_line:
        return config
    try:
        given = flags.read(command_line, kubernetes)
    except (ConfigError, NotBuiltError):
        return config
    if "reservedMemory" in given:
        given["reservedMemory"] = [
            {"numaNode": node, "limits": dict(limits)} for node, limits in given["reservedMemory"]
        ]
    gates = config.get("featureGates") or {}
    if "featureGates" in given and isinstance(gates, dict):
        given["featureGates"] = {**gates, **given["featureGates"]}
    return {**config, **given}
