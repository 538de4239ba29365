"""Why pods are refused, in terms that are equal for pods refused for the same reason."""

from __future__ import annotations

from typing import Literal

import msgspec

from numaproof.simulation.requests import CPU

CauseKind = Literal[
    "empty node",
    "preferred nodes",
    "one node",
    "common nodes",
    "free",
    "whole cores",
    "multiple of a core",
    "not whole bytes",
    "pod's shared pool",
    "allocatable",
    "device plugin",
    "evicted",
]
"""What is missing; `_TEXTS` has each in words."""

_TEXTS: dict[CauseKind, str] = {
    "empty node": "not enough {} even if the node were empty",
    "preferred nodes": "no preferred set of NUMA nodes has enough {} free",
    "one node": "the policy allows one NUMA node, and no node has enough {} even if empty",
    "common nodes": "no set of NUMA nodes is preferred for all of {}",
    "free": "not enough {} free",
    "whole cores": "not enough whole cores free",
    "multiple of a core": "the number of CPUs is not a multiple of a core's",
    "not whole bytes": "an amount of memory is not a whole number of bytes",
    "pod's shared pool": "no CPUs of the pod's budget are left for its other containers",
    "allocatable": "not enough allocatable {} left",
    "device plugin": "no device plugin provides {}",
    "evicted": "evicted to make room for a critical pod",
}


class Cause(msgspec.Struct, frozen=True):
    """Why a pod is refused, without the amounts and names that differ from pod to pod.

    `resources` are those that are missing.
    """

    kind: CauseKind
    resources: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Returns the cause in words."""
        names = [_WORDS.get(one, one) for one in self.resources]
        return _TEXTS[self.kind].format(" and ".join(names))


_WORDS = {CPU: "CPUs"}
