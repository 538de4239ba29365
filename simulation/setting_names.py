"""The names that settings of the resource managers know, and the one that is probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.inputs.documents import value_at
from numaproof.inputs.names import closest, is_slip
from numaproof.protocol.releases import RELEASES
from numaproof.reference.config.eviction import SIGNALS
from numaproof.reference.config.reservation import RESERVABLE
from numaproof.reference.config.validation import TOPOLOGY_POLICIES
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numaproof.inputs.documents import PathTuple

_VALUES: Mapping[str, Collection[str]] = {
    "cpuManagerPolicy": ("none", "static"),
    "memoryManagerPolicy": ("None", "Static"),
    "topologyManagerPolicy": TOPOLOGY_POLICIES,
    "topologyManagerScope": ("container", "pod"),
}
"""The values of the fields that name something."""

_SHORTEST = 4
"""The minimum length of a key to compare, because shorter ones resemble too many others."""

_KEYS: Mapping[str, Collection[str]] = {
    "evictionHard": SIGNALS,
    "kubeReserved": RESERVABLE,
    "systemReserved": RESERVABLE,
}
"""The keys of the fields that are mappings, where no release differs."""


def meant_name(config: Mapping[str, Any], path: PathTuple, kubernetes: str) -> str:
    """Returns the name that is probably meant by the one at a path; empty if there is none.

    A name that some other release knows is not misspelt.
    """
    field, rest = str(path[0]) if path else "", path[1:]
    if not rest:
        value = value_at(config, path)
        known = _VALUES.get(field, ())
        is_unknown = isinstance(value, str) and value not in known
        return (closest(value, known) or "") if is_unknown else ""
    name = str(rest[0])
    if len(name) < _SHORTEST or any(name in _keys(field, one) for one in RELEASES):
        return ""
    meant = closest(name, _keys(field, kubernetes)) or ""
    # Gates are many and alike, and those of the past are not misspelt.
    return meant if field != "featureGates" or is_slip(name, meant) else ""


def _keys(field: str, kubernetes: str) -> Collection[str]:
    known = release(kubernetes)
    of_releases: Mapping[str, Collection[str]] = {
        "cpuManagerPolicyOptions": known.cpu_options,
        "topologyManagerPolicyOptions": known.topology_options,
        "featureGates": known.gates,
    }
    return of_releases.get(field) or _KEYS.get(field, ())
