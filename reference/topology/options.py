"""The options of the Topology Manager's policies: which exist, which are open, what they mean.

(Kubernetes documentation, "Topology manager policy options".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reference.departures.topology import DistancesByPosition
from numaproof.reference.golang import numbers
from numaproof.reference.kubelet.options import OptionError, boolean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.departures.releases import Release

CLOSEST = "prefer-closest-numa-nodes"
MOST_NODES = "max-allowable-numa-nodes"

MOST_NODES_BY_DEFAULT = 8
"""How many NUMA nodes every policy but none takes without an option."""

_GATE = "TopologyManagerPolicyOptions"
_GATES = {
    "alpha": "TopologyManagerPolicyAlphaOptions",
    "beta": "TopologyManagerPolicyBetaOptions",
}


@dataclass(frozen=True, slots=True)
class TopologyOptions:
    """Whether the closest nodes are preferred, and how many nodes a machine may have.

    `by_position`: whether distances are looked up as if the ids of nodes had no gaps.
    """

    closest: bool = False
    most_nodes: int = MOST_NODES_BY_DEFAULT
    by_position: bool = False


def check_gate(given: Mapping[str, str], gates: Mapping[str, bool]) -> None:
    """Checks that options may be given at all; the kubelet does so with its configuration.

    Raises:
        OptionError: there are options, and their feature gate is off.
    """
    if given and not gates[_GATE]:
        written = " ".join(f"{name}:{given[name]}" for name in sorted(given))
        raise OptionError(
            f'topology manager policy options map[{written}] require feature gates "{_GATE}" '
            "enabled"
        )


def parse(
    given: Mapping[str, str], release: Release, gates: Mapping[str, bool] | None
) -> TopologyOptions:
    """The options that a configuration asks for; `gates` None opens all maturity levels.

    Of several bad options the first by name is reported; the kubelet picks any.

    Raises:
        OptionError: unknown, hidden by its gate, or not a value that it can have.
    """
    for name in sorted(given):
        _check_available(name, release, gates)
        _ = boolean(name, given[name]) if name == CLOSEST else _most_nodes(given[name])
    return TopologyOptions(
        closest=CLOSEST in given and boolean(CLOSEST, given[CLOSEST]),
        most_nodes=_most_nodes(given.get(MOST_NODES, str(MOST_NODES_BY_DEFAULT))),
        by_position=release.has(DistancesByPosition.departure.name),
    )


def _check_available(name: str, release: Release, gates: Mapping[str, bool] | None) -> None:
    maturity = release.topology_options.get(name)
    if maturity is None:
        raise OptionError(f'unknown Topology Manager Policy option: "{name}"')
    if gates is not None and maturity in _GATES and not gates[_GATES[maturity]]:
        raise OptionError(
            f"topology manager policy {maturity}-level options not enabled, but option "
            f'"{name}" provided'
        )


def _most_nodes(text: str) -> int:
    try:
        most = numbers.signed(text)
    except numbers.NumeralError as error:
        raise OptionError(
            f'unable to convert policy option to integer "{MOST_NODES}": {error}'
        ) from None
    if most < MOST_NODES_BY_DEFAULT:
        raise OptionError(
            f'the minimum value of "{MOST_NODES}" should not be less than {MOST_NODES_BY_DEFAULT}'
        )
    return most
