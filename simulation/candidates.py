"""The sets of NUMA nodes that a request could go to, and what those that can't have it lack.

What a set must have is read off the hints that the reference describes (`Family`): the amounts,
nodes of which one must be among them, nodes in use as a group. Which sets are hints, and which are
preferred, the reference itself says; so it does of the same machine with nothing in use, which
tells the sets that matter: those that would be preferred there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import comb
from operator import or_
from typing import TYPE_CHECKING

from numaproof.protocol.sets import NUMASet
from numaproof.reference.topology.hints import Hint
from numaproof.reference.topology.search.symmetry import Twins, classify
from numaproof.simulation.amounts import amount, free_of, masked, nodes_text
from numaproof.simulation.explanation import Candidate, Candidates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.reference.topology.hints import Family, Need, Supply

MOST_TOLD = 8
MOST_OTHERS = 2
_MOST_IN_SENTENCE = 3
_MOST_SINGLE = 8
"""On machines of more nodes, sets that differ in ids alone are told as one."""


def candidates(family: Family, resources: tuple[str, ...]) -> Candidates:
    """The sets worth telling: those preferred on an empty machine, then the other hints.

    `resources` names what each of the family's needs is of.
    """
    twins = _twins(family)
    now = {hint.nodes: hint for hint in _among(family, twins)}
    empty = [hint.nodes for hint in _among(_emptied(family), twins) if hint.preferred]
    wanted = [now.get(nodes) or nodes for nodes in empty]
    wanted += [group for group in _groups_in_use(family) if group not in now and group not in empty]
    others = [hint for nodes, hint in now.items() if nodes not in empty]
    if not (wanted or others):
        wanted = [reduce(or_, (1 << node for node in family.nodes), 0)]
    # Where not all can be told: what works, then what lacks little.
    best = sorted(wanted, key=lambda one: (not isinstance(one, Hint), _lacking(family, one)))
    told = [one for one in wanted if one in best[:MOST_TOLD]] + others[:MOST_OTHERS]
    return Candidates(
        tuple(_told(family, resources, twins, one) for one in told),
        len(wanted) + len(others) - len(told),
    )


def places(lacking: Sequence[Candidate]) -> str:
    """Which sets lack what, in a sentence; single nodes with the same lack together."""
    told = []
    if all(len(one.numa) == 1 and not one.alike for one in lacking):
        nodes: dict[str, list[int]] = {}
        for one in lacking:
            nodes.setdefault(one.text, []).extend(one.numa)
        told = [f"{nodes_text(NUMASet(members))}: {text}" for text, members in nodes.items()]
    else:
        told = [f"{nodes_text(one.numa)}{likewise(one)}: {one.text}" for one in lacking]
    others = ["and others"] if len(told) > _MOST_IN_SENTENCE else []
    return "; ".join(told[:_MOST_IN_SENTENCE] + others)


def likewise(one: Candidate) -> str:
    """How many more sets are like this one, to stand behind its name."""
    return f" (and {one.alike} like it)" if one.alike else ""


def lacks(family: Family, resources: tuple[str, ...], nodes: int) -> Iterator[str]:
    """Why a set of nodes is no hint, part by part; nothing for one that is."""
    for need, resource in zip(family.needs, resources, strict=True):
        if _free(need, nodes) < need.amount:
            total = _sum(need.total, nodes)
            text = free_of(resource, _free(need, nodes), need.amount)
            # Nothing that runs here is to blame then.
            yield text if total >= need.amount else f"{text} ({amount(resource, total)} in all)"
    for node, group in family.cells:
        if nodes >> node & 1 and nodes != group:
            alone = group == 1 << node
            yield f"node {node} is in use " + ("alone" if alone else f"as one of {masked(group)}")
    for group in family.touching:
        if not nodes & group:
            yield f"what an init container of the pod had is on {masked(group)}"


def _told(family: Family, resources: tuple[str, ...], twins: Twins, one: Hint | int) -> Candidate:
    nodes = one.nodes if isinstance(one, Hint) else one
    alike = _alike(twins, nodes)
    numa = NUMASet.from_mask(nodes)
    if not isinstance(one, Hint):
        return Candidate(numa, "impossible", ", ".join(lacks(family, resources, nodes)), alike)
    have = ", ".join(
        free_of(resource, _free(need, nodes), need.amount)
        for need, resource in zip(family.needs, resources, strict=True)
    )
    if one.preferred:
        return Candidate(numa, "preferred", have, alike)
    fewer = "sockets" if family.sockets else "nodes"
    return Candidate(
        numa, "possible", f"{have}; an empty machine would do with fewer {fewer}", alike
    )


def _emptied(family: Family) -> Family:
    """The same request on the machine with nothing in use."""
    needs = tuple(replace(need, free=need.total, reusable=()) for need in family.needs)
    return replace(family, needs=needs, touching=(), cells=())


def _groups_in_use(family: Family) -> list[int]:
    """The groups of several nodes that are in use together."""
    return sorted({group for _, group in family.cells if group.bit_count() > 1})


def _twins(family: Family) -> Twins:
    if len(family.nodes) <= _MOST_SINGLE:
        return Twins(tuple((node,) for node in sorted(family.nodes)))
    return classify(family.nodes, family.signatures.__getitem__)


def _among(family: Family, twins: Twins) -> list[Hint]:
    """The hints, those of fewer nodes first."""

    def order(hint: Hint) -> tuple[int, tuple[int, ...]]:
        return hint.nodes.bit_count(), tuple(NUMASet.from_mask(hint.nodes))

    return sorted(family.among(twins), key=order)


def _alike(twins: Twins, nodes: int) -> int:
    """How many more sets have as many nodes of each class of twins."""
    sets = 1
    for members in twins.classes:
        inside = sum(nodes >> node & 1 for node in members)
        sets *= comb(len(members), inside)
    return sets - 1


def _lacking(family: Family, one: Hint | int) -> float:
    """How much of what is asked a set of nodes lacks: a sum of shares."""
    nodes = one.nodes if isinstance(one, Hint) else one
    return sum(
        max(0, need.amount - _free(need, nodes)) / need.amount
        for need in family.needs
        if need.amount
    )


def _free(need: Need, nodes: int) -> int:
    reusable = sum(supply.amount for supply in need.reusable if supply.nodes == nodes)
    return _sum(need.free, nodes) + reusable


def _sum(supplies: Iterable[Supply], nodes: int) -> int:
    return sum(supply.amount for supply in supplies if supply.nodes & nodes)
