"""What changes between two releases: feature gates, and the options of the managers' policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.reference.config.gates import Maturity
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.protocol.messages import KubeletConfiguration
    from numaproof.reference.config.gates import Gate
    from numaproof.reference.deviations.releases import Release

_OF_MANAGERS = ("CPUManager", "MemoryManager", "PodLevelResource", "TopologyManager")
"""What the names of the resource managers' own gates begin with."""

Kind = Literal["gone", "new", "locked", "unlocked", "default", "maturity"]


class GateChange(msgspec.Struct, frozen=True):
    """A feature gate that is not in both releases as it was.

    `before` and `after` say how it stands, such as ``beta, on``, and are None where the release
    does not know it. `given` is its value in the configuration, None if it has none.
    """

    gate: str
    change: Kind
    before: str | None
    after: str | None
    given: bool | None = None


class OptionChange(msgspec.Struct, frozen=True):
    """A policy option whose maturity differs; None where the release does not know it."""

    field: str
    option: str
    before: Maturity | None
    after: Maturity | None


def gates(before: str, after: str) -> Iterator[GateChange]:
    """Every feature gate that differs, by name."""
    old, new = release(before).gates, release(after).gates
    for name in sorted(old.keys() | new.keys()):
        mine, theirs = old.get(name), new.get(name)
        kind = _kind(mine, theirs)
        if kind:
            yield GateChange(name, kind, _standing(mine), _standing(theirs))


def gates_of_interest(
    before: str, after: str, config: KubeletConfiguration
) -> tuple[GateChange, ...]:
    """The changes of gates that a configuration sets, and of those of the resource managers."""
    given = config.get("featureGates")
    values = given if isinstance(given, dict) else {}
    return tuple(
        msgspec.structs.replace(one, given=values.get(one.gate))
        for one in gates(before, after)
        if one.gate in values or one.gate.startswith(_OF_MANAGERS)
    )


def options(before: str, after: str) -> Iterator[OptionChange]:
    """Every policy option that differs, field by field."""
    old, new = options_of(release(before)), options_of(release(after))
    for field, known in old.items():
        for name in sorted(known.keys() | new[field].keys()):
            mine, theirs = known.get(name), new[field].get(name)
            if mine != theirs:
                yield OptionChange(field, name, mine, theirs)


def options_of_interest(
    before: str, after: str, config: KubeletConfiguration
) -> tuple[OptionChange, ...]:
    """The changes of options that a configuration sets."""
    return tuple(
        one for one in options(before, after) if one.option in (config.get(one.field) or {})
    )


def options_of(one: Release) -> Mapping[str, Mapping[str, Maturity]]:
    """The options of a release by the field that sets them."""
    return {
        "cpuManagerPolicyOptions": one.cpu_options,
        "topologyManagerPolicyOptions": one.topology_options,
    }


def _kind(before: Gate | None, after: Gate | None) -> Kind | None:
    if before is None or after is None:
        return "gone" if after is None else "new"
    if before.locked != after.locked:
        return "locked" if after.locked else "unlocked"
    if before.default != after.default:
        return "default"
    return "maturity" if before.maturity != after.maturity else None


def _standing(gate: Gate | None) -> str | None:
    if gate is None:
        return None
    on = "on" if gate.default else "off"
    return f"{gate.maturity}, locked {on}" if gate.locked else f"{gate.maturity}, {on}"
