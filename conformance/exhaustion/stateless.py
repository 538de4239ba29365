"""Every question that needs no node: assignments on a machine, and merges of a policy.

The questions of a unit share what is prepared once: a machine with options, or a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, combinations_with_replacement
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import msgspec

from numaproof.conformance.cases.machine_properties import facts_of
from numaproof.conformance.cases.schema import AssignStep, Case, MergeStep, open_step
from numaproof.conformance.execution.run import Scenario
from numaproof.protocol import codec, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference import operations
from numaproof.reference.cpu.options import STRICT
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.topology.options import CLOSEST

if TYPE_CHECKING:
    from numaproof.conformance.exhaustion.shapes import Shape
    from numaproof.protocol.messages import Hint, ProviderHints
    from numaproof.reference.deviations.releases import Release

T = TypeVar("T")

Answering = Callable[[messages.Args], messages.Answer]
"""Answers the questions of one unit."""


class Unit(Protocol):
    """Questions that share a preparation.

    Attributes:
        operation: the protocol's operation.
        machine: the machine; an empty one if questions have none.
    """

    @property
    def operation(self) -> str: ...

    @property
    def machine(self) -> MachineInfo: ...

    def __len__(self) -> int:
        """The number of questions."""

    def questions(self) -> Iterator[messages.Args]:
        """The arguments of the operation, each once."""

    def reference(self, release: Release) -> Answering:
        """The reference's answers as a release, without the costs of a call.

        Raises:
            StartError: the release has no such options, or they don't fit the machine.
        """

    def scenario(self, question: messages.Args) -> Scenario:
        """A scenario that asks only this question."""


@dataclass(frozen=True)
class Assignments:
    """Every assignment on a machine: every set of free CPUs, every count and one more."""

    shape: Shape
    options: tuple[str, ...]
    kubernetes: str
    operation: ClassVar[str] = "assign"

    @cached_property
    def machine(self) -> MachineInfo:
        return self.shape.machine()

    @cached_property
    def _options(self) -> dict[str, str]:
        return dict.fromkeys(self.options, "true")

    def __len__(self) -> int:
        count = self.machine.num_cores
        # A set of n CPUs has n + 1 counts; sets have half of the CPUs on average.
        return count * (1 << count) // 2 + (1 << count) - 1

    def questions(self) -> Iterator[messages.AssignArgs]:
        machine, options = self.machine, self._options
        for free in _subsets(machine):
            for count in range(1, len(free) + 2):
                yield messages.AssignArgs(machine, free, count, options, self.kubernetes)

    def reference(self, release: Release) -> Answering:
        take = operations.assigner(self.machine, self._options, release)

        def answer(question: messages.Args) -> messages.Answer:
            assert isinstance(question, messages.AssignArgs)
            try:
                return messages.Assigned(
                    CPUSet.from_mask(take(question.available.mask, question.count))
                )
            except AdmissionError as error:
                return messages.AdmissionRefused(error.reason, str(error))

        return answer

    def scenario(self, question: messages.Args) -> Scenario:
        assert isinstance(question, messages.AssignArgs)
        step = AssignStep(str(question.available), question.count, question.options)
        case = _case("an assignment", assign=step)
        return Scenario(msgspec.structs.replace(case, machine=self.machine), self.machine)


def assignments(shape: Shape, release: Release) -> Iterator[Assignments]:
    """Every legal combination of options on a machine.

    ``strict-cpu-reservation`` is left out, because nothing is reserved.
    """
    names = sorted(release.cpu_options.keys() - {STRICT})
    for options in _combinations(names):
        unit = Assignments(shape, options, release.version)
        try:
            unit.reference(release)
        except StartError:
            continue
        yield unit


@dataclass(frozen=True)
class MachineAssignments:
    """Every assignment on a machine, with every legal combination of options."""

    shape: Shape
    release: Release

    def units(self) -> Iterator[Assignments]:
        """Yields the combinations. Checking which are legal takes longer than finding a machine."""
        return assignments(self.shape, self.release)


def _subsets(machine: MachineInfo) -> Iterator[CPUSet]:
    """The nonempty sets of the machine's CPUs."""
    for free in _combinations(tuple(facts_of(machine).all)):
        if free:
            yield CPUSet(free)


def _combinations(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


@dataclass(frozen=True)
class Merges:
    """Every merge of lists of up to `most_hints` hints from `providers` providers.

    The order of providers doesn't matter, so that each combination occurs once.
    """

    nodes: int
    providers: int
    most_hints: int
    policy: str
    by_distance: bool
    kubernetes: str
    operation: ClassVar[str] = "merge"
    machine: ClassVar[MachineInfo] = MachineInfo()

    @cached_property
    def _lists(self) -> list[ProviderHints | None]:
        sets = [NUMASet(one) for one in _combinations(list(range(self.nodes))) if one]
        hints = [
            messages.Hint(nodes, preferred=preferred)
            for nodes in (*sets, None)
            for preferred in (True, False)
        ]
        lists: Iterator[tuple[Hint, ...]] = chain.from_iterable(
            combinations(hints, size) for size in range(self.most_hints + 1)
        )
        some: list[ProviderHints | None] = [{"resource": one} for one in lists]
        return [None, {"resource": None}, *some]

    @cached_property
    def _distances(self) -> dict[str, tuple[int, ...]] | None:
        """Each node is farther from those with more distant numbers."""
        if not self.by_distance:
            return None
        every = range(self.nodes)
        return {str(one): tuple(10 * (1 + abs(one - other)) for other in every) for one in every}

    @cached_property
    def _options(self) -> dict[str, str]:
        return {CLOSEST: "true"} if self.by_distance else {}

    def __len__(self) -> int:
        count, total = len(self._lists), 1
        for number in range(self.providers):
            total = total * (count + number) // (number + 1)
        return total

    def questions(self) -> Iterator[messages.MergeArgs]:
        nodes = tuple(range(self.nodes))
        for providers in combinations_with_replacement(self._lists, self.providers):
            yield messages.MergeArgs(
                nodes, self.policy, providers, self._options, self._distances, self.kubernetes
            )

    def reference(self, release: Release) -> Answering:
        nodes = tuple(range(self.nodes))
        policy = operations.merging_policy(
            nodes, self.policy, self._options, self._distances or {}, release
        )
        by_id = {id(one): operations.resources(one) for one in self._lists}

        def answer(question: messages.Args) -> messages.Answer:
            assert isinstance(question, messages.MergeArgs)
            hint, admit = policy.merge([by_id[id(one)] for one in question.providers])
            return messages.Merged(messages.Hint(hint.numa, hint.preferred), admit)

        return answer

    def scenario(self, question: messages.Args) -> Scenario:
        assert isinstance(question, messages.MergeArgs)
        step = MergeStep(
            question.nodes,
            question.policy,
            tuple(codec.to_plain(one) for one in question.providers),
            question.options,
            question.distances,
        )
        return Scenario(_case("a merge", merge=step), MachineInfo())


def merges(nodes: int, providers: int, most_hints: int, release: Release) -> Iterator[Merges]:
    """Every policy, with and without distances."""
    for policy in ("best-effort", "restricted", "single-numa-node"):
        for by_distance in (False, True) if CLOSEST in release.topology_options else (False,):
            yield Merges(nodes, providers, most_hints, policy, by_distance, release.version)


def _case(title: str, **verb: AssignStep | MergeStep) -> Case:
    return Case("exhaust", title, (), (open_step(**verb),))
