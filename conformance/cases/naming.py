"""Case ids: their prefixes, and suggestions for misspelt ids."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.conformance.cases.schema import Case

_CLOSE = 0.75
"""The minimum similarity of a suggested id, from 0 to 1."""

PREFIXES: Mapping[str, tuple[str, ...]] = {
    "Checkpoint": ("checkpoint",),
    "Configuration": ("config",),
    "Device Manager": ("dev",),
    "Discovery": ("discovery",),
    "Errors": ("error",),
    "Feature gates": ("gate",),
    "Init containers": ("init",),
    "Memory Manager": ("mem",),
    "None policy": ("none",),
    "Pod examples": ("example",),
    "Policy options": ("opt", "assign"),
    "Reconcile": ("reconcile",),
    "Removal": ("remove",),
    "Reservation": ("reserve",),
    "Restart": ("restart",),
    "Shared pool": ("pool",),
    "Static policy": ("static", "assign"),
    "Topology errors": ("topo-error",),
    "Topology examples": ("topo-example",),
    "Topology hints": ("hint",),
    "Topology merge": ("topo-merge",),
    "Topology options": ("topo-opt",),
    "Topology order": ("topo-order",),
    "Topology policies": ("topo-policy",),
    "Topology restart": ("topo-restart",),
    "Topology scopes": ("topo-scope",),
    "Whole node": ("node", "podlevel"),
}
"""The prefixes of ids, by the area of the first requirement, which is also the area in reports."""


def begins_with(area: str, name: str) -> bool:
    """Whether an id begins with one of its area's prefixes, as the ids of bundled cases must."""
    return name.startswith(tuple(f"{prefix}-" for prefix in PREFIXES[area]))


def names(case: Case) -> tuple[str, ...]:
    """The id of a case and its former ids."""
    return (case.id, *case.aliases)


def did_you_mean(pattern: str, known_ids: Iterable[str]) -> str:
    """Suggests ids or globs similar to one that matches nothing.

    Compares whole ids and their first words, so that ``statik-*`` suggests ``static-*``, and
    ``static-gives`` suggests the ids that begin with these words.

    Args:
        pattern: the id or glob.
        known_ids: all ids.

    Returns:
        Text such as ``; did you mean 'static-*'?``, or an empty string if no id is similar.
    """
    stem = pattern.partition("*")[0].rstrip("-")
    words = stem.count("-") + 1
    beginnings = {one: "-".join(one.split("-")[:words]) for one in known_ids}
    close = [stem]
    if stem not in beginnings.values():
        close = get_close_matches(stem, set(beginnings.values()), n=3, cutoff=_CLOSE)
    if "*" in pattern:
        found = [f"{one}-*" for one in close]
    else:
        whole = get_close_matches(pattern, beginnings, n=3, cutoff=_CLOSE)
        begun = (one for near in close for one in beginnings if beginnings[one] == near)
        found = [*dict.fromkeys((*whole, *begun))][:3]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""
