"""Topology hints: the sets of NUMA nodes that could serve a request, and which are preferred.

A provider says for each resource where a request could be met. It may list its hints, or describe
them: a machine of 34 nodes has 2^34 sets of nodes, so a `Family` says which sets are hints
without listing them. (Kubernetes documentation, "Topology Manager: how it works".)

Sets of NUMA nodes are bit masks in this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Hint(NamedTuple):
    """A set of nodes, not empty, and whether no smaller one would do on an empty machine."""

    nodes: int
    preferred: bool


class Supply(NamedTuple):
    """An `amount` that a set of nodes has if any of `nodes` is in it.

    A node's free memory stands on that node alone; a device may be near several nodes.
    """

    nodes: int
    amount: int


@dataclass(frozen=True, slots=True)
class Need:
    """An `amount` of one thing: what is `free` now, and what an empty machine has in `total`.

    `reusable` is free for those exact sets of nodes besides.
    """

    amount: int
    free: tuple[Supply, ...]
    total: tuple[Supply, ...]
    reusable: tuple[Supply, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """Hints described by what a set of nodes must have.

    A set of nodes out of `nodes` is a hint when it has enough free of every one of `needs`; when
    it has a node of each set in `touching` (what is to be used again lies there); and when it is
    exactly ``cells[node]`` for each of its nodes that `cells` names (nodes in use as a group).

    A hint is preferred when it has as few nodes as any set with enough on an empty machine; or,
    where `sockets` (the nodes of each socket) are given, when it touches as few sockets as that
    many nodes fill.
    """

    nodes: tuple[int, ...]
    needs: tuple[Need, ...]
    touching: tuple[int, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    sockets: tuple[int, ...] = ()


Hints = tuple[Hint, ...] | Family
"""The hints for one resource, listed or described; without any, it cannot be had anywhere."""

Resources = Mapping[str, Hints | None]
"""A provider's hints by resource; None for a resource without preference, nothing at all for a
provider without preference."""
