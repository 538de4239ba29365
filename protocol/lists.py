"""Normalizes answers for comparison: sorts lists that represent sets and fills in empty values.

Every list field of an answer is in one of the tables below. cAdvisor's lists are in discovery
order, which matters only at level ``kubelet``; at other levels, they are compared as sets.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import codec, machine, messages
from numaproof.protocol.mismatch import short_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SETS: Mapping[type[msgspec.Struct], tuple[str, ...]] = {
    messages.Hello: ("kubernetes", "operations", "features", "discovers"),
    messages.Policies: ("cpu", "memory", "topology", "scope"),
    messages.Options: ("cpu", "topology"),
    messages.Started: ("memory",),
    messages.Container: ("memory", "devices"),
    messages.Coverage: ("blocks",),
}
"""List fields that represent sets at every level."""

AS_FOUND: Mapping[type[msgspec.Struct], tuple[str, ...]] = {
    machine.MachineInfo: ("hugepages", "topology"),
    machine.Node: ("hugepages", "cores", "caches"),
    machine.Core: ("thread_ids", "uncore_caches", "caches"),
}
"""List fields in cAdvisor's order, which matters only at level ``kubelet``."""

ORDERED: Mapping[type[msgspec.Struct], tuple[str, ...]] = {
    messages.NodeHints: ("cpu", "memory", "devices"),
    messages.Reconciled: ("updates",),
    messages.Admitted: ("preempted",),
    machine.Node: ("distances",),
}
"""List fields whose order always matters."""

EMPTY: Mapping[type[msgspec.Struct], Callable[[], Any]] = {
    messages.Container: dict,
    messages.NodeHints: dict,
    machine.MachineInfo: tuple,
    machine.Node: tuple,
    machine.Core: tuple,
}
"""The value of a null or missing field of these types, if the field is in a table above."""


class _Set(list[Any]):
    """The sorted items of a list that represents a set."""


def in_order(message: msgspec.Struct, *, exact: bool) -> Any:
    """Returns the message as plain values, with sorted lists in place of sets.

    Null and missing fields become empty if that means the same.

    Args:
        message: an answer.
        exact: whether to keep the order of cAdvisor's lists.
    """
    return _sort(message, codec.to_plain(message), {} if exact else AS_FOUND)


def _sort(value: Any, plain: Any, as_found: Mapping[type, tuple[str, ...]]) -> Any:
    if isinstance(value, msgspec.Struct):
        kind = type(value)
        sets = (*SETS.get(kind, ()), *as_found.get(kind, ()))
        if empty := EMPTY.get(kind):
            named = (*SETS.get(kind, ()), *AS_FOUND.get(kind, ()), *ORDERED.get(kind, ()))
            plain |= {name: empty() for name in named if plain.get(name) is None}
        for name in value.__struct_fields__:
            if name in plain:
                made = _sort(getattr(value, name), plain[name], as_found)
                plain[name] = _as_set(made) if name in sets else made
        return plain
    if isinstance(value, dict):
        return {key: _sort(item, plain[str(key)], as_found) for key, item in value.items()}
    if isinstance(value, tuple) and value and not isinstance(value[0], int | str):
        return [_sort(*both, as_found) for both in zip(value, plain, strict=True)]
    return plain


def _as_set(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _as_set(items) for key, items in plain.items()}
    return _Set(sorted(plain, key=_place)) if isinstance(plain, list | tuple) else plain


def _place(item: Any) -> tuple[int, str]:
    """The sort key: a number's value, or the JSON text of anything else."""
    return (item, "") if isinstance(item, int) else (0, json.dumps(item, sort_keys=True))


def remark(expected: object, actual: object) -> str:
    """Describes in brackets how two lists differ; empty if there is nothing to add."""
    if not (isinstance(expected, list | tuple) and isinstance(actual, list | tuple)):
        return ""
    counts = [Counter(map(_text, items)) for items in (expected, actual)]
    if isinstance(actual, _Set):
        twice = [item for item, count in counts[1].items() if count > 1]
        return f" (lists {short_text(json.loads(twice[0]))} more than once)" if twice else ""
    return " (only the order differs)" if counts[0] == counts[1] else ""


def repetition_remark(items: object) -> str:
    """Describes in brackets which item is repeated in a list that represents a set, if any."""
    return remark((), _Set(items)) if isinstance(items, list | tuple) else ""


def _text(item: object) -> str:
    return json.dumps(codec.to_plain(item), sort_keys=True)
