"""All mutations of the reference, and a seeded sample of them.

Cosmic Ray makes ten mutations of every ``|`` and one of every ``if``. So that the sample is one of
the code and not of the operators, places are drawn, and for each place one of its mutations.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import excluded
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.work_item import MutationSpec, WorkItem
from parso.tree import Leaf
from tree import TESTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from parso.tree import NodeOrLeaf
    from tree import SourceTree

_FAMILY = re.compile(r"^(.*/Replace(?:Binary|Unary|Comparison)Operator)_.*")
_TOKENS = {"name", "string", "newline", "endmarker"}
_PUNCTUATION = {"(", ")", "[", "]", "{", "}", ",", ".", ":", "="}


@dataclass(frozen=True)
class Population:
    """What a sample is drawn from.

    Attributes:
        places: the mutations of each place, by a name that only the place has, in order.
        excluded: how many mutations are not made, by reason.
    """

    places: dict[str, tuple[MutationSpec, ...]]
    excluded: dict[str, int]

    @property
    def mutations(self) -> int:
        """How many mutations there are to draw from."""
        return sum(map(len, self.places.values()))

    def sample(self, seed: int, size: int) -> list[WorkItem]:
        """The first `size` places in the order of a seed, each with one mutation.

        A larger sample of the same seed begins with the smaller one, and a change of the code
        changes no more of a sample than what it touches. An item's id is its place in the order.
        """
        ranked = sorted((_rank(seed, name), name) for name in self.places)
        return [
            WorkItem.single(f"{number:05}", self._drawn(rank, name))
            for number, (rank, name) in enumerate(ranked[:size], start=1)
        ]

    def _drawn(self, rank: int, name: str) -> MutationSpec:
        mutations = self.places[name]
        return mutations[rank % len(mutations)]


def _rank(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest())


def population(tree: SourceTree, modules: Sequence[Path]) -> Population:
    """Every mutation that Cosmic Ray makes of some modules of a tree, by place."""
    sources = {
        str(path.relative_to(tree.folder)): path.read_text(encoding="utf-8") for path in modules
    }
    spans = {name: excluded.spans(source) for name, source in sources.items()}
    places: defaultdict[MutationPlace, list[MutationSpec]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    for mutation in _every(tree, modules):
        why = excluded.reason(mutation, spans[str(mutation.module_path)])
        if why:
            left_out[why] += 1
        else:
            places[MutationPlace.of(mutation)].append(mutation)
    lines = {name: source.splitlines() for name, source in sources.items()}
    named: dict[str, tuple[MutationSpec, ...]] = {}
    alike: Counter[str] = Counter()
    for place in sorted(places):
        name = place.name(lines[place.module][place.start[0] - 1])
        alike[name] += 1
        named[f"{name} {alike[name]}"] = tuple(sorted(places[place], key=_order))
    return Population(named, dict(left_out))


class MutationPlace(NamedTuple):
    """Where something is changed: the code between two positions, and what of it."""

    module: str
    start: tuple[int, int]
    end: tuple[int, int]
    kind: str
    within: str

    @classmethod
    def of(cls, mutation: MutationSpec) -> MutationPlace:
        """The place of a mutation."""
        kind = _FAMILY.sub(r"\1", str(mutation.operator_name))
        within = mutation.definition_name or ""
        return cls(str(mutation.module_path), mutation.start_pos, mutation.end_pos, kind, within)

    def name(self, line: str) -> str:
        """Names it by the text of its line, which stays when the line moves."""
        column = self.start[1] - (len(line) - len(line.lstrip()))
        return f"{self.module} {self.within} {self.kind} {column} {line.strip()}"


def module_of(mutation: MutationSpec) -> str:
    """A mutation's module, below the reference's folder."""
    return str(mutation.module_path.relative_to(TESTED))


def _every(tree: SourceTree, modules: Iterable[Path]) -> Iterator[MutationSpec]:
    """All mutations, their modules relative to the tree, counted as Cosmic Ray counts them."""
    operators = [(name, plugins.get_operator(name)) for name in plugins.operator_names()]
    plain = [(name, make()) for name, make in operators if not make.arguments()]
    for module in modules:
        tree_nodes = ast_nodes(get_ast_from_path(module))
        nodes = [node for node in tree_nodes if not _is_never_mutated(node)]
        for name, operator in plain:
            positions = (
                (node, *place) for node in nodes for place in operator.mutation_positions(node)
            )
            for occurrence, (node, start, end) in enumerate(positions):
                yield MutationSpec(
                    module_path=module.relative_to(tree.folder),
                    operator_name=name,
                    occurrence=occurrence,
                    start_pos=start,
                    end_pos=end,
                    definition_name=ASTQuery(node).get_definition_name(),
                )


def _is_never_mutated(node: NodeOrLeaf) -> bool:
    """Whether it is one of the many leaves that no operator looks at; leaving them out saves time.

    The occurrences that an operator counts stay the same.
    """
    return isinstance(node, Leaf) and (node.type in _TOKENS or node.value in _PUNCTUATION)


def _order(mutation: MutationSpec) -> tuple[str, int]:
    return str(mutation.operator_name), mutation.occurrence
