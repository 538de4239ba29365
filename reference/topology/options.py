"""The options of the Topology Manager's policies: which exist, which are open, what they mean.

(Kubernetes documentation, "Topology manager policy options".)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.kubernetes.releases import Release

CLOSEST = "prefer-closest-numa-nodes"
MOST_NODES = "max-allowable-numa-nodes"

MOST_NODES_BY_DEFAULT = 8
"""How many NUMA nodes every policy but none takes without an option."""

_GATE = "TopologyManagerPolicyOptions"
_GATES = {
    "alpha": "TopologyManagerPolicyAlphaOptions",
    "beta": "TopologyManagerPolicyBetaOptions",
}

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGERS = range(-(1 << 63), 1 << 63)


class TopologyOptionError(Exception):
    """The options cannot be; the text is the kubelet's."""


@dataclass(frozen=True, slots=True)
class TopologyOptions:
    """Whether the closest nodes are preferred, and how many nodes a machine may have."""

    closest: bool = False
    most_nodes: int = MOST_NODES_BY_DEFAULT


def check_gate(given: Mapping[str, str], gates: Mapping[str, bool]) -> None:
    """Checks that options may be given at all; the kubelet does so with its configuration.

    Raises:
        TopologyOptionError: there are options, and their feature gate is off.
    """
    if given and not gates[_GATE]:
        written = " ".join(f"{name}:{given[name]}" for name in sorted(given))
        raise TopologyOptionError(
            f'topology manager policy options map[{written}] require feature gates "{_GATE}" '
            "enabled"
        )


def parse(
    given: Mapping[str, str], release: Release, gates: Mapping[str, bool] | None
) -> TopologyOptions:
    """The options that a configuration asks for; `gates` None opens all maturity levels.

    Of several bad options the first by name is reported; the kubelet picks any.

    Raises:
        TopologyOptionError: unknown, hidden by its gate, or not a value that it can have.
    """
    for name in sorted(given):
        _check_available(name, release, gates)
        _ = _closest(given[name]) if name == CLOSEST else _most_nodes(given[name])
    return TopologyOptions(
        closest=CLOSEST in given and _closest(given[CLOSEST]),
        most_nodes=_most_nodes(given.get(MOST_NODES, str(MOST_NODES_BY_DEFAULT))),
    )


def _check_available(name: str, release: Release, gates: Mapping[str, bool] | None) -> None:
    maturity = release.topology_options.get(name)
    if maturity is None:
        raise TopologyOptionError(f'unknown Topology Manager Policy option: "{name}"')
    if gates is not None and maturity in _GATES and not gates[_GATES[maturity]]:
        raise TopologyOptionError(
            f"topology manager policy {maturity}-level options not enabled, but option "
            f'"{name}" provided'
        )


def _closest(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise TopologyOptionError(
            f'bad value for option "{CLOSEST}": strconv.ParseBool: parsing "{text}": invalid syntax'
        )
    return text in _TRUE


def _most_nodes(text: str) -> int:
    wrong = ""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        wrong = "invalid syntax"
    elif int(text) not in _INTEGERS:
        wrong = "value out of range"
    if wrong:
        raise TopologyOptionError(
            f'unable to convert policy option to integer "{MOST_NODES}": strconv.Atoi: '
            f'parsing "{text}": {wrong}'
        )
    if int(text) < MOST_NODES_BY_DEFAULT:
        raise TopologyOptionError(
            f'the minimum value of "{MOST_NODES}" should not be less than {MOST_NODES_BY_DEFAULT}'
        )
    return int(text)
