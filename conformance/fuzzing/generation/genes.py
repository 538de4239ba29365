"""Lives that can be changed in one place: each part of a life has choices of its own.

A life from `scenarios` is one sequence of choices, so a change in it changes everything after it.
Here the machine, the configuration and each action have their own, so a copy of a life can have
another machine or one action less and otherwise do the same. Whatever the changes, the generators
make the steps, so a life stays within the claims.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.life import ACTIONS, NodeScenario
from numaproof.conformance.fuzzing.generation.machines import machine
from numaproof.conformance.fuzzing.generation.scenarios import (
    MAX_ACTIONS,
    MIN_ACTIONS,
    case_of,
    on_its_tree,
)
from numaproof.conformance.fuzzing.generation.unusual import UNUSUAL_ACTIONS

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices

_MAX_ACTIONS_OF_COPIES = 40
_MAX_SEED = (1 << 32) - 1
_MAX_CHOICES = 60
"""The number of choices of a part among which a change selects the one to shift."""

_ACTIONS = {**ACTIONS, **UNUSUAL_ACTIONS}
_SURROUNDINGS = 4

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Gene:
    """The choices of a part of a life: those of a seed, some of them shifted to a neighbour.

    `shifts` has the number of a choice and the distance to the choice that is made instead.
    """

    seed: int
    shifts: tuple[tuple[int, int], ...] = ()

    @property
    def choices(self) -> Choices:
        """The choices, from the first."""
        return _Shifted(self)


class _Shifted(Seeded):
    def __init__(self, gene: Gene) -> None:
        super().__init__(gene.seed)
        self._shifts = dict(gene.shifts)
        self._number = 0

    def integer(self, low: int, high: int) -> int:
        shift = self._shifts.get(self._number, 0)
        self._number += 1
        return low + (super().integer(low, high) - low + shift) % (high - low + 1)


@dataclass(frozen=True, slots=True)
class Genes:
    """The parts of a life.

    Attributes:
        surroundings: the genes of the machine, the focus, the first start and the tree.
        actions: the name and the gene of each action.
    """

    surroundings: tuple[Gene, ...]
    actions: tuple[tuple[str, Gene], ...]


def new_genes(choices: Choices, capabilities: Capabilities) -> Genes:
    """Chooses the genes of a new life; like a scenario, it leaves out some kinds of actions."""
    kinds = [
        name
        for name, action in _ACTIONS.items()
        if capabilities.makes(*action.needs) and (name == "admit" or not choices.chance(3))
        for _ in range(action.weight)
    ]
    count = choices.integer(MIN_ACTIONS, MAX_ACTIONS) if kinds else 0
    actions = tuple((choices.pick(kinds), _gene(choices)) for _ in range(count))
    return Genes(tuple(_gene(choices) for _ in range(_SURROUNDINGS)), actions)


def life(genes: Genes, capabilities: Capabilities, name: str) -> Case:
    """Returns the life with these genes; actions that are impossible in it are left out."""
    of_machine, of_focus, of_start, of_tree = (gene.choices for gene in genes.surroundings)
    info = machine(of_machine)
    node = NodeScenario(of_focus, info, capabilities)
    steps = [*node.begin(of_start)]
    for action, gene in genes.actions:
        if capabilities.makes(*_ACTIONS[action].needs) and _ACTIONS[action].possible(node):
            steps += _ACTIONS[action].act(node, gene.choices)
    case = case_of(name, "A generated node and its life", steps, info)
    return on_its_tree(case, of_tree, capabilities)


# Changes


def mutate(choices: Choices, genes: Genes, other: Genes) -> Genes:
    """Returns a copy with one to four changes; some add parts of another life."""
    for _ in range(choices.pick((1, 1, 2, 4))):
        changes = _CHANGES if genes.actions else (_act,)
        genes = choices.pick(changes)(choices, genes, other)
    return genes


def _gene(choices: Choices) -> Gene:
    return Gene(choices.integer(0, _MAX_SEED))


def _delete(choices: Choices, genes: Genes, _: Genes) -> Genes:
    first = choices.integer(0, len(genes.actions) - 1)
    count = choices.pick((1, 1, 2, 4))
    return replace(genes, actions=genes.actions[:first] + genes.actions[first + count :])


def _insert(choices: Choices, genes: Genes, *actions: tuple[str, Gene]) -> Genes:
    place = choices.integer(0, len(genes.actions))
    longer = genes.actions[:place] + actions + genes.actions[place:]
    return replace(genes, actions=longer[:_MAX_ACTIONS_OF_COPIES])


def _repeat(choices: Choices, genes: Genes, _: Genes) -> Genes:
    return _insert(choices, genes, *_part(choices, genes))


def _take_over(choices: Choices, genes: Genes, other: Genes) -> Genes:
    return _insert(choices, genes, *_part(choices, other))


def _cross(choices: Choices, genes: Genes, other: Genes) -> Genes:
    mine, theirs = (choices.integer(0, len(one.actions)) for one in (genes, other))
    crossed = genes.actions[:mine] + other.actions[theirs:]
    return replace(genes, actions=crossed[:_MAX_ACTIONS_OF_COPIES])


def _part(choices: Choices, genes: Genes) -> tuple[tuple[str, Gene], ...]:
    first = choices.integer(0, len(genes.actions))
    return genes.actions[first : first + choices.pick((1, 1, 2, 4))]


def _act(choices: Choices, genes: Genes, _: Genes) -> Genes:
    kinds = choices.pick((ACTIONS, ACTIONS, UNUSUAL_ACTIONS))
    return _insert(choices, genes, (choices.pick(tuple(kinds)), _gene(choices)))


def _swap(choices: Choices, genes: Genes, _: Genes) -> Genes:
    actions = list(genes.actions)
    one, two = (choices.integer(0, len(actions) - 1) for _ in range(2))
    actions[one], actions[two] = actions[two], actions[one]
    return replace(genes, actions=tuple(actions))


def _shift_action(choices: Choices, genes: Genes, _: Genes) -> Genes:
    place = choices.integer(0, len(genes.actions) - 1)
    name, gene = genes.actions[place]
    shifted = (name, _shift(choices, gene))
    return replace(genes, actions=_with(genes.actions, place, shifted))


def _shift_surroundings(choices: Choices, genes: Genes, _: Genes) -> Genes:
    place = choices.integer(0, _SURROUNDINGS - 1)
    shifted = _shift(choices, genes.surroundings[place])
    return replace(genes, surroundings=_with(genes.surroundings, place, shifted))


def _move(choices: Choices, genes: Genes, other: Genes) -> Genes:
    place = choices.integer(0, _SURROUNDINGS - 1)
    gene = choices.pick((other.surroundings[place], _gene(choices)))
    return replace(genes, surroundings=_with(genes.surroundings, place, gene))


def _with(items: tuple[_T, ...], place: int, item: _T) -> tuple[_T, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _shift(choices: Choices, gene: Gene) -> Gene:
    # The first choices decide most.
    number = choices.integer(0, choices.integer(0, _MAX_CHOICES - 1))
    return replace(gene, shifts=(*gene.shifts, (number, choices.pick((1, -1, 2, -2, 3, 5)))))


_CHANGES = (
    _delete,
    _repeat,
    _take_over,
    _cross,
    _act,
    _act,
    _act,
    _swap,
    _shift_action,
    _shift_action,
    _shift_surroundings,
    _move,
    _move,
)
