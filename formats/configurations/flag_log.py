"""The flags that a kubelet logs when it starts.

It logs all of them, also those that are not on its command line. Their defaults say nothing,
because the file of ``--config`` overrides them. (Kubernetes, component-base, ``PrintFlags``.)
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from numaproof.formats.configurations.configuration import Configuration, Flag, scalar
from numaproof.inputs.documents import Document, MergedDocument
from numaproof.reference.config import eviction
from numaproof.reference.config.flags import field

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGED = re.compile(
    r'\bFLAG: --(?P<name>[a-z][\w-]*)=(?P<value>"(?:[^"\\]|\\.)*")\s*$', re.MULTILINE
)
_DEFAULTS = {
    "cpu-cfs-quota": "true",
    "cpu-manager-policy": "none",
    "cpu-manager-reconcile-period": "10s",
    "max-pods": "110",
    "memory-manager-policy": "None",
    "topology-manager-policy": "none",
    "topology-manager-scope": "container",
}
_OTHERS = ("config", "config-dir", "max-pods")
"""Flags that matter although the managers don't read them."""


def is_flag_log(text: str) -> bool:
    """Whether a text has lines in which a kubelet logs its flags."""
    return _LOGGED.search(text) is not None


def read(text: str, file: str) -> Iterator[Configuration]:
    """Yields the flags of the kubelet's last start that are not the defaults."""
    logged = {one["name"]: one for one in _LOGGED.finditer(text)}

    def place(line: re.Match[str]) -> Document:
        return Document(file, (text.count("\n", 0, line.start()), {}), {})

    flags = [
        Flag(name, value, scalar(place(one), value))
        for name, one in logged.items()
        if field(name) or name in _OTHERS
        for value in _values(name, json.loads(one["value"]))
    ]
    start = MergedDocument(place(next(iter(logged.values()))), {})
    note = "left out flags with their default values: they may not be on the command line"
    yield Configuration("a kubelet's log", "", start, tuple(flags)).note((), note)


def _values(name: str, value: str) -> Iterator[str]:
    """Yields the values with which a flag is set; none if it has its default."""
    if value == _DEFAULTS.get(name, ""):
        return
    if name == "cpu-manager-policy-options":
        yield from value.split(",")  # each is a flag of its own
    elif name == "reserved-memory":
        yield re.sub(r",(?=[0-9]+:)", ";", value)
    elif name != "eviction-hard" or not _are_default_thresholds(value):
        yield value


def _are_default_thresholds(value: str) -> bool:
    pairs = {key: amount for key, _, amount in (one.partition("<") for one in value.split(","))}
    return pairs.items() <= eviction.DEFAULTS.items()
