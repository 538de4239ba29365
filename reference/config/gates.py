"""Feature gates: the gates of each release, and the gates that a configuration turns on.

``gates.txt`` next to this module lists the gates of all releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from numaproof.reference.config.fields import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Maturity = Literal["alpha", "beta", "stable", "deprecated"]

MATURITIES: dict[str, Maturity] = {
    "a": "alpha",
    "b": "beta",
    "s": "stable",
    "d": "deprecated",
}


class GateError(ConfigError):
    """The kubelet rejects the configured feature gates."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate in one release.

    Attributes:
        maturity: alpha, beta, stable or deprecated.
        default: whether the gate is on by default.
        is_locked: whether the gate is locked to its default.
        needs: the gates that this gate depends on, except those that are always on.
    """

    maturity: Maturity
    default: bool
    is_locked: bool = False
    needs: tuple[str, ...] = ()


@cache
def table() -> Mapping[str, Mapping[str, Gate]]:
    text = Path(__file__).with_name("gates.txt").read_text(encoding="ascii")
    gates, dependencies = (
        [line.split() for line in part.splitlines()]
        for part in text.split("\n\n")
        if not part.startswith("#")
    )
    releases = gates[0][1:]
    found: dict[str, dict[str, Gate]] = {}
    for column, release in enumerate(releases, start=1):
        needs: dict[str, tuple[str, ...]] = {}
        for name, needed, *cells in dependencies[1:]:
            if cells[column - 1] == "x":
                needs[name] = (*needs.get(name, ()), needed)
        found[release] = {
            row[0]: _gate(row[column], needs.get(row[0], ()))
            for row in gates[1:]
            if row[column] != "."
        }
    return found


def of_release(version: str) -> Mapping[str, Gate]:
    """Returns the gates of a release, by name.

    Requirements: CPU-GATE-001, CPU-GATE-003, TOPO-OPT-013, TOPO-OPT-014.
    """
    return MappingProxyType(table()[version])


def _gate(cell: str, needs: tuple[str, ...]) -> Gate:
    letter = cell[0]
    return Gate(
        MATURITIES[letter.lower()],
        default=letter.isupper(),
        is_locked=cell.endswith("!"),
        needs=needs,
    )


def enabled_gates(
    decoded_config: Mapping[str, Any], known_gates: Mapping[str, Gate]
) -> Mapping[str, bool]:
    """Returns whether each of `known_gates` is on in a decoded configuration.

    Raises:
        GateError: a gate is unknown or locked, or is on although a gate that it depends on is off.

    Requirements: CPU-GATE-001, CPU-GATE-002, CPU-GATE-008, CPU-GATE-009, CPU-GATE-010,
    CPU-GATE-011, CPU-GATE-015, MEM-GATE-002.
    """
    wanted = {name: bool(on) for name, on in (decoded_config.get("featureGates") or {}).items()}
    for name, on in sorted(wanted.items()):
        gate = known_gates.get(name)
        if gate is None and name not in ("AllAlpha", "AllBeta"):
            raise GateError(f"unrecognized feature gate: {name}")
        if gate and gate.is_locked and on != gate.default:
            raise GateError(
                f"cannot set feature gate {name} to {str(on).lower()}, feature is locked to "
                f"{str(gate.default).lower()}"
            )
    found = {name: gate.default for name, gate in known_gates.items()}
    for maturity in ("alpha", "beta"):
        every = wanted.get(f"All{maturity.capitalize()}")
        if every is not None:
            found |= {
                name: every for name, gate in known_gates.items() if gate.maturity == maturity
            }
    found |= {name: on for name, on in wanted.items() if name in found}
    problems = list(dependency_problems(found, known_gates))
    if problems:
        text = ", ".join(problems)
        raise GateError(f"[{text}]" if len(problems) > 1 else text)
    return found


def dependency_problems(
    gates: Mapping[str, bool], known_gates: Mapping[str, Gate]
) -> Iterator[str]:
    """Yields a message for each enabled gate that lacks a dependency (in random order in kubelets).

    Requirements: CPU-GATE-011, NODE-PODLEVEL-007.
    """
    for name, gate in known_gates.items():
        if not gate.needs or not gates[name]:
            continue
        missing = [needed for needed in gate.needs if not gates[needed]]
        if missing:
            yield (
                f"{name} is enabled, but depends on features that are disabled: "
                f"[{' '.join(missing)}]"
            )
