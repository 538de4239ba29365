"""The kill matrix: which cases, invariants and generated scenarios catch which seeded bug."""

from __future__ import annotations

from statistics import median

import msgspec


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scenario with which fuzzing caught a bug, after shrinking.

    Attributes:
        number: the number of scenarios played until it was found, itself included.
        kind: the invariant that broke last, or ``difference`` for a difference from the reference.
        pods: the number of pods.
        cores: the number of cores of the machine.
        steps: the number of steps.
    """

    number: int
    kind: str
    pods: int
    cores: int
    steps: int


class Hunt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A seeded bug and what was tried to catch it.

    Attributes:
        bug: the bug's id.
        subject: the part of the node that the bug is in.
        models: the public issues it is modelled on and the requirements it breaks.
        runs: the number of case runs played against it; None if the cases were skipped.
        cases: the cases that caught it.
        invariants: the invariants that broke in those cases.
        examples: the number of scenarios played against it; None if fuzzing was skipped.
        example: the scenario that caught it.
    """

    bug: str
    subject: str
    models: tuple[str, ...]
    runs: int | None = None
    cases: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()
    examples: int | None = None
    example: Example | None = None

    @property
    def survived(self) -> bool:
        """Whether cases or scenarios were played against it and none caught it."""
        tried = self.runs is not None or self.examples is not None
        return tried and not self.cases and self.example is None


class Seconds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds spent playing cases and scenarios against a bug, and shrinking its example."""

    table: float = 0.0
    fuzz: float = 0.0
    shrinking: float = 0.0


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a gauntlet. Everything except `seconds` is the same for the same command.

    Attributes:
        numaproof: the version.
        seed: the seed of the scenarios.
        examples: the maximum number of scenarios per bug.
        whole: whether every case was played against every bug, rather than stopping at the first
            that catches it.
        cases: the ids of the cases played.
        hunts: one for each bug, in the order of the catalogue.
        seconds: the time spent, by bug.
        complete: whether the run got through all bugs.
    """

    numaproof: str
    seed: int
    examples: int
    whole: bool
    cases: tuple[str, ...]
    hunts: tuple[Hunt, ...]
    seconds: dict[str, Seconds]
    complete: bool = True

    @property
    def survivors(self) -> tuple[str, ...]:
        """The bugs that nothing caught."""
        return tuple(hunt.bug for hunt in self.hunts if hunt.survived)

    @property
    def looked_up(self) -> tuple[Hunt, ...]:
        """The bugs that cases were played against."""
        return tuple(hunt for hunt in self.hunts if hunt.runs is not None)

    @property
    def fuzzed(self) -> tuple[Hunt, ...]:
        """The bugs that were fuzzed for."""
        return tuple(hunt for hunt in self.hunts if hunt.examples is not None)

    @property
    def found(self) -> tuple[Example, ...]:
        """The shrunk scenario of each bug that fuzzing caught."""
        return tuple(hunt.example for hunt in self.hunts if hunt.example is not None)

    @property
    def idle(self) -> tuple[str, ...]:
        """The cases that were played against every bug and caught none."""
        if not self.whole:
            return ()
        busy = {case for hunt in self.hunts for case in hunt.cases}
        return tuple(case for case in self.cases if case not in busy)

    def middle(self, name: str) -> float | None:
        """The median of a field over the examples found; None if there are none."""
        numbers = [getattr(example, name) for example in self.found]
        return median(numbers) if numbers else None
