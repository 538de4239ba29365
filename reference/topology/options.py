"""The options of the Topology Manager's policies: which exist, which are open, what they mean.

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
"""How many NUMA nodes every policy but none takes without an option."""

HIDDEN = 'topology manager policy {level}-level options not enabled, but option "{name}" provided'
"""The refusal of an option whose maturity level is not open."""

_GATE = "TopologyManagerPolicyOptions"


@dataclass(frozen=True, slots=True)
class TopologyOptions:
    """Whether the closest nodes are preferred, and how many nodes a machine may have."""

    closest: bool = False
    most_nodes: int = DEFAULT_MAX_ALLOWABLE_NUMA_NODES


def check_gate(policy_options: Mapping[str, str] | None, gates: Mapping[str, bool]) -> None:
    """Checks that options may be given at all; the kubelet does so with its configuration.

    `policy_options` is None where the configuration says nothing of options, not even that there
    are none.

    Raises:
        OptionError: there are options, and their feature gate is off.

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
    """The options that a configuration asks for, out of those that exist and their maturity.

    `gates` None opens all maturity levels; `hidden_message` is the text of `check_available`. Of
    several bad options the first by name is reported; the kubelet picks any.

    Raises:
        OptionError: unknown, hidden by its gate, or not a value that it can have.

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
        OptionError: it is unknown, or hidden by its gate.

    Requirements: TOPO-ERROR-004, TOPO-ERROR-010, TOPO-OPT-016, TOPO-OPT-017.
    """
    options.check_available("Topology Manager", name, available.get(name), gates, hidden_message)


def read_most_nodes(text: str) -> int:
    """The number of NUMA nodes that a machine may have.

    Raises:
        OptionError: it is no integer, or less than `DEFAULT_MAX_ALLOWABLE_NUMA_NODES`.

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
