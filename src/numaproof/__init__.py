"""Conformance and fuzz testing for the Kubernetes node resource managers.

The public interface is listed here; everything else may change at any time:

- `check` runs the bundled cases against an implementation, and yields events;
- `events`: the events, which `numaproof check` also writes to ``events.jsonl``;
- `Reference`: the reference implementation, which answers one protocol request at a time;
- `messages`: the requests and answers;
- `bundled_profiles`, `load_profile` and `build_tree`: machines and their trees;
- `bundled_cases`: the cases.

Names are loaded on first use, so importing the package has no side effects.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numaproof.conformance.cases.loading import bundled_cases
    from numaproof.conformance.library import check
    from numaproof.fakesys import build_tree, bundled_profiles, load_profile
    from numaproof.protocol import events, messages
    from numaproof.reference.implementation import Reference

__all__ = [
    "Reference",
    "build_tree",
    "bundled_cases",
    "bundled_profiles",
    "check",
    "events",
    "load_profile",
    "messages",
]

_PLACES = {
    "Reference": "numaproof.reference.implementation",
    "build_tree": "numaproof.fakesys",
    "bundled_cases": "numaproof.conformance.cases.loading",
    "bundled_profiles": "numaproof.fakesys",
    "check": "numaproof.conformance.library",
    "events": "numaproof.protocol",
    "load_profile": "numaproof.fakesys",
    "messages": "numaproof.protocol",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = import_module(_PLACES[name])
    return getattr(place, name, None) or import_module(f"{_PLACES[name]}.{name}")
