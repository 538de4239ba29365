"""The static CPU Manager policy's options: their names, availability and conflicts.

(Kubernetes documentation, "Static policy options".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.reference.config.options import OptionError, as_map, boolean, check_available

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.config.gates import Maturity
    from numaproof.reference.cpu.topology import CPUTopology

FULL_CORES = "full-pcpus-only"
ACROSS_NUMA = "distribute-cpus-across-numa"
ACROSS_CORES = "distribute-cpus-across-cores"
BY_SOCKET = "align-by-socket"
STRICT = "strict-cpu-reservation"
BY_UNCORE = "prefer-align-cpus-by-uncorecache"

_IN_ORDER = (FULL_CORES, ACROSS_NUMA, ACROSS_CORES, BY_SOCKET, STRICT, BY_UNCORE)
"""The options in the order of `StaticOptions`."""

INCOMPATIBLE = (
    (FULL_CORES, ACROSS_CORES),
    (ACROSS_NUMA, ACROSS_CORES),
    (BY_UNCORE, ACROSS_CORES),
    (BY_UNCORE, ACROSS_NUMA),
)
"""Pairs of options that conflict."""

_GATE = "CPUManagerPolicyOptions"


@dataclass(frozen=True, slots=True)
class StaticOptions:
    """The enabled options of the static policy."""

    full_cores: bool = False
    across_numa: bool = False
    across_cores: bool = False
    by_socket: bool = False
    strict: bool = False
    by_uncore: bool = False

    @property
    def place_cpus(self) -> bool:
        """Whether an option controls the placement of CPUs."""
        return self.across_numa or self.across_cores or self.by_uncore


def check_gate(policy_options: Mapping[str, str] | None, gates: Mapping[str, bool]) -> None:
    """Checks the feature gate for policy options, as the kubelet does with its configuration.

    `policy_options` is None if the configuration does not have the field; an empty mapping counts
    as options.

    Raises:
        OptionError: there are options, but their feature gate is off.

    Requirements: CPU-GATE-014.
    """
    if policy_options is not None and not gates[_GATE]:
        raise OptionError(
            f"CPU Manager policy options {as_map(policy_options)}"
            ' require feature gates "CPUManager", '
            f'"{_GATE}" enabled'
        )


def parse(
    policy_options: Mapping[str, str],
    available: Mapping[str, Maturity],
    gates: Mapping[str, bool] | None,
) -> StaticOptions:
    """Reads the configured options; `available` maps the release's options to their maturity.

    If `gates` is None, all maturity levels are enabled. If several options are invalid, the first
    by name is reported; the kubelet reports any one of them.

    Raises:
        OptionError: an option is unknown, disabled or not a boolean, or it conflicts with another.

    Requirements: CPU-CONFIG-007, CPU-ERROR-006, CPU-OPT-001, CPU-OPT-PAIR-001, CPU-OPT-PAIR-002,
    CPU-OPT-PAIR-003, CPU-OPT-PAIR-004.
    """
    on = {
        name: value(name, policy_options[name], available.get(name), gates)
        for name in sorted(policy_options)
    }
    for one, other in INCOMPATIBLE:
        if on.get(one) and on.get(other):
            raise OptionError(
                f"static policy options {one} and {other} can not be used at the same time"
            )
    return StaticOptions(*(on.get(name, False) for name in _IN_ORDER))


def value(
    name: str, text: str, maturity: Maturity | None, gates: Mapping[str, bool] | None
) -> bool:
    """Reads one option of the given maturity; None means that the option does not exist.

    Raises:
        OptionError: the option is unknown, disabled or not a boolean.

    Requirements: CPU-CONFIG-004, CPU-GATE-002, CPU-GATE-004, CPU-GATE-005, CPU-GATE-006.
    """
    check_available(
        "CPU Manager",
        name,
        maturity,
        gates,
        'CPU Manager Policy {Level}-level Options not enabled, but option "{name}" provided',
    )
    return boolean(name, text)


def validate(options: StaticOptions, topology: CPUTopology, topology_policy: str) -> None:
    """Checks the options against the machine and the Topology Manager's policy.

    Raises:
        OptionError: ``align-by-socket`` is incompatible with the policy or the machine.

    Requirements: CPU-OPT-ALIGNSOCKET-004, CPU-OPT-ALIGNSOCKET-005.
    """
    if not options.by_socket:
        return
    if topology_policy == "single-numa-node":
        raise OptionError(
            "Topolgy manager single-numa-node policy is incompatible with CPUManager "
            "align-by-socket policy option"
        )
    if topology.socket_count > len(topology.nodes):
        raise OptionError(
            "Align by socket is not compatible with hardware where number of sockets are more "
            "than number of NUMA"
        )
