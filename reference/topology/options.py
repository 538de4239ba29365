"""The options of the Topology Manager's policies: names, availability and values.

(Kubernetes documentation, "Topology manager policy options".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reference.config import options
from numaproof.reference.config.options import OptionError, as_map, boolean
from numaproof.reference.golang import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.config.gates import Maturity

CLOSEST = "prefer-closest-numa-nodes"
MAX_ALLOWABLE_NUMA_NODES = "max-allowable-numa-nodes"

DEFAULT_MAX_ALLOWABLE_NUMA_NODES = 8
"""The number of NUMA nodes that all policies but ``none`` support by default."""

HIDDEN = 'topology manager policy {level}-level options not enabled, but option "{name}" provided'
"""The kubelet's message for an option whose maturity level is disabled."""

_GATE = "TopologyManagerPolicyOptions"


@dataclass(frozen=True, slots=True)
class TopologyOptions:
    """Whether to prefer close nodes, and the maximum number of nodes on a machine."""

    closest: bool = False
    most_nodes: int = DEFAULT_MAX_ALLOWABLE_NUMA_NODES


def check_gate(policy_options: Mapping[str, str] | None, gates: Mapping[str, bool]) -> None:
    """Checks the feature gate for policy options, as the kubelet does with its configuration.

    `policy_options` is None if the configuration does not have the field; an empty mapping counts
    as options.

    Raises:
        OptionError: there are options, but their feature gate is off.

    Requirements: TOPO-ERROR-009.
    """
    if policy_options is not None and not gates[_GATE]:
        raise OptionError(
            f"topology manager policy options {as_map(policy_options)}"
            f' require feature gates "{_GATE}" '
            "enabled"
        )


def parse(
    policy_options: Mapping[str, str],
    available: Mapping[str, Maturity],
    gates: Mapping[str, bool] | None,
    hidden_message: str = HIDDEN,
) -> TopologyOptions:
    """Reads the configured options; `available` maps the release's options to their maturity.

    If `gates` is None, all maturity levels are enabled. `hidden_message` is a template for
    `check_available`. If several options are invalid, the first by name is reported; the kubelet
    reports any one of them.

    Raises:
        OptionError: an option is unknown or disabled, or its value is invalid.

    Requirements: TOPO-ERROR-004, TOPO-ERROR-006, TOPO-OPT-015.
    """
    for name in sorted(policy_options):
        check_available(name, available, gates, hidden_message)
        _ = (
            boolean(name, policy_options[name])
            if name == CLOSEST
            else read_most_nodes(policy_options[name])
        )
    return TopologyOptions(
        closest=CLOSEST in policy_options and boolean(CLOSEST, policy_options[CLOSEST]),
        most_nodes=read_most_nodes(
            policy_options.get(MAX_ALLOWABLE_NUMA_NODES, str(DEFAULT_MAX_ALLOWABLE_NUMA_NODES))
        ),
    )


def check_available(
    name: str,
    available: Mapping[str, Maturity],
    gates: Mapping[str, bool] | None,
    hidden_message: str = HIDDEN,
) -> None:
    """Checks that an option exists and that its maturity level is enabled.

    Raises:
        OptionError: the option is unknown or disabled.

    Requirements: TOPO-ERROR-004, TOPO-ERROR-010, TOPO-OPT-016, TOPO-OPT-017.
    """
    options.check_available("Topology Manager", name, available.get(name), gates, hidden_message)


def read_most_nodes(text: str) -> int:
    """Reads the maximum number of NUMA nodes on a machine.

    Raises:
        OptionError: the value is not an integer, or is below `DEFAULT_MAX_ALLOWABLE_NUMA_NODES`.

    Requirements: TOPO-ERROR-007, TOPO-ERROR-008.
    """
    try:
        most = numbers.parse_signed(text)
    except numbers.NumeralError as error:
        raise OptionError(
            f'unable to convert policy option to integer "{MAX_ALLOWABLE_NUMA_NODES}": {error}'
        ) from None
    if most < DEFAULT_MAX_ALLOWABLE_NUMA_NODES:
        raise OptionError(
            f'the minimum value of "{MAX_ALLOWABLE_NUMA_NODES}" should not be less than '
            f"{DEFAULT_MAX_ALLOWABLE_NUMA_NODES}"
        )
    return most
