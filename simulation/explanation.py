"""The parts of an explanation of an admission, which `numaproof.simulation.explaining` builds."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import comb
from operator import or_
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import TopologyHint
from numaproof.reference.topology.search.enumeration import among, interchangeable
from numaproof.reference.topology.search.symmetry import NodeClasses
from numaproof.simulation.amounts import amount, free_of, masked, nodes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.reference.topology.hints import Demand


Preference = Literal["preferred", "possible", "impossible"]
"""Whether a set of NUMA nodes is a preferred hint, another hint, or no hint for a request."""


class Candidate(msgspec.Struct, frozen=True):
    """A set of NUMA nodes for a request; `text` says what it has of what was asked for.

    `alike` is the number of other sets that differ only in node ids.
    """

    numa: NUMASet
    mark: Preference
    text: str
    alike: int = 0


class Candidates(msgspec.Struct, frozen=True):
    """The sets worth showing (`told`), and how many more there are."""

    told: tuple[Candidate, ...] = ()
    more: int = 0


class RequestedResources(msgspec.Struct, frozen=True, tag_field="step", tag="request"):
    """The aligned resources that a container (None: the pod as a whole) asks for."""

    container: str | None
    asks: dict[str, int]
    text: str


class ManagerHints(msgspec.Struct, frozen=True, tag_field="step", tag="hints"):
    """The hints of a manager for a resource (None: it has no preference for any)."""

    manager: str
    resource: str | None
    text: str
    candidates: Candidates = Candidates()


class Merge(msgspec.Struct, frozen=True, tag_field="step", tag="merge"):
    """The merged hint; `numa` is None for no affinity."""

    policy: str
    numa: NUMASet | None
    preferred: bool
    admitted: bool
    text: str


class Allocation(msgspec.Struct, frozen=True, tag_field="step", tag="allocation"):
    """A failed allocation; `message` is the kubelet's own.

    `container` is None for the pod as a whole.
    """

    manager: str
    container: str | None
    message: str
    text: str
    candidates: Candidates = Candidates()


class Scheduling(msgspec.Struct, frozen=True, tag_field="step", tag="scheduling"):
    """Why the scheduler would not place the pod on this node."""

    text: str


ExplanationStep = RequestedResources | ManagerHints | Merge | Allocation | Scheduling


class Explanation(msgspec.Struct, frozen=True):
    """Why a pod was refused or admitted: in one sentence, and step by step.

    `advice` says what would certainly help, if anything.
    """

    summary: str
    steps: tuple[ExplanationStep, ...]
    advice: tuple[str, ...] = ()


MOST_SHOWN = 8
MOST_OTHERS = 2
_MOST_IN_SENTENCE = 3
_MOST_SINGLE = 8
"""On machines with more nodes, sets that differ only in node ids are shown as one."""


def candidates(demand: Demand, resources: tuple[str, ...]) -> Candidates:
    """The sets worth showing: those preferred on an empty machine, then the other hints.

    `resources` names the resource of each of the demand's needs.
    """
    classes = _classes(demand)
    now = {hint.nodes: hint for hint in _among(demand, classes)}
    empty = [hint.nodes for hint in _among(_emptied(demand), classes) if hint.preferred]
    wanted = [now.get(nodes) or nodes for nodes in empty]
    wanted += [group for group in _groups_in_use(demand) if group not in now and group not in empty]
    others = [hint for nodes, hint in now.items() if nodes not in empty]
    if not (wanted or others):
        wanted = [reduce(or_, (1 << node for node in demand.nodes), 0)]
    # If not all can be shown, prefer sets that work, then those that lack little.
    best = sorted(
        wanted, key=lambda one: (not isinstance(one, TopologyHint), _lacking(demand, one))
    )
    shown = [one for one in wanted if one in best[:MOST_SHOWN]] + others[:MOST_OTHERS]
    return Candidates(
        tuple(_candidate(demand, resources, classes, one) for one in shown),
        len(wanted) + len(others) - len(shown),
    )


def places(lacking: Sequence[Candidate]) -> str:
    """Says in a sentence which sets lack what; single nodes that lack the same are grouped."""
    shown = []
    if all(len(one.numa) == 1 and not one.alike for one in lacking):
        nodes: dict[str, list[int]] = {}
        for one in lacking:
            nodes.setdefault(one.text, []).extend(one.numa)
        shown = [f"{nodes_text(NUMASet(members))}: {text}" for text, members in nodes.items()]
    else:
        shown = [f"{nodes_text(one.numa)}{likewise(one)}: {one.text}" for one in lacking]
    others = ["and others"] if len(shown) > _MOST_IN_SENTENCE else []
    return "; ".join(shown[:_MOST_IN_SENTENCE] + others)


def likewise(one: Candidate) -> str:
    """A suffix for the set's name that says how many other sets are like it."""
    return f" (and {one.alike} like it)" if one.alike else ""


def lacks(demand: Demand, resources: tuple[str, ...], nodes: int) -> Iterator[str]:
    """The reasons why a set of nodes is not a hint; none for a hint."""
    for need, resource in zip(demand.needs, resources, strict=True):
        if need.free_on(nodes) < need.amount:
            total = need.total_on(nodes)
            text = free_of(resource, need.free_on(nodes), need.amount)
            # The total shows when even an idle machine could not satisfy the request.
            yield text if total >= need.amount else f"{text} ({amount(resource, total)} in total)"
    for node, group in demand.cells:
        if nodes >> node & 1 and nodes != group:
            alone = group == 1 << node
            yield f"node {node} is in use " + (
                "on its own" if alone else f"as part of the group of {masked(group)}"
            )
    for group in demand.touching:
        if not nodes & group:
            yield f"an init container of the pod used {masked(group)}, which must be reused"


def _candidate(
    demand: Demand, resources: tuple[str, ...], classes: NodeClasses, one: TopologyHint | int
) -> Candidate:
    nodes = one.nodes if isinstance(one, TopologyHint) else one
    alike = _alike(classes, nodes)
    numa = NUMASet.from_mask(nodes)
    if not isinstance(one, TopologyHint):
        return Candidate(numa, "impossible", ", ".join(lacks(demand, resources, nodes)), alike)
    have = ", ".join(
        free_of(resource, need.free_on(nodes), need.amount)
        for need, resource in zip(demand.needs, resources, strict=True)
    )
    if one.preferred:
        return Candidate(numa, "preferred", have, alike)
    fewer = "sockets" if demand.sockets else "nodes"
    return Candidate(numa, "possible", f"{have}; an empty machine would need fewer {fewer}", alike)


def _emptied(demand: Demand) -> Demand:
    """The same request on an idle machine."""
    needs = tuple(replace(need, free=need.total, reusable=()) for need in demand.needs)
    return replace(demand, needs=needs, touching=(), cells=())


def _groups_in_use(demand: Demand) -> list[int]:
    """The groups of two or more nodes that are in use together."""
    return sorted({group for _, group in demand.cells if group.bit_count() > 1})


def _classes(demand: Demand) -> NodeClasses:
    if len(demand.nodes) <= _MOST_SINGLE:
        return NodeClasses.all_distinct(demand.nodes)
    return interchangeable(demand)


def _among(demand: Demand, classes: NodeClasses) -> list[TopologyHint]:
    """The hints, those with fewer nodes first."""

    def order(hint: TopologyHint) -> tuple[int, tuple[int, ...]]:
        return hint.nodes.bit_count(), tuple(NUMASet.from_mask(hint.nodes))

    return sorted(among(demand, classes), key=order)


def _alike(classes: NodeClasses, nodes: int) -> int:
    """How many other sets have the same number of nodes from each class."""
    sets = 1
    for members in classes.classes:
        inside = sum(nodes >> node & 1 for node in members)
        sets *= comb(len(members), inside)
    return sets - 1


def _lacking(demand: Demand, one: TopologyHint | int) -> float:
    """How much of the request a set of nodes lacks, as a sum of fractions."""
    nodes = one.nodes if isinstance(one, TopologyHint) else one
    return sum(
        max(0, need.amount - need.free_on(nodes)) / need.amount
        for need in demand.needs
        if need.amount
    )
