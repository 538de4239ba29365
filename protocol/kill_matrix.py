"""The kill matrix: which cases, invariants and made-up scenarios catch which seeded bug."""

from __future__ import annotations

from statistics import median

import msgspec


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scenario by which fuzzing caught a bug, after shrinking.

    Attributes:
        number: how many scenarios it took, this one included.
        kind: the invariant that broke last, or ``difference`` for a difference from the reference.
        pods: how many pods it has.
        cores: the cores of its machine.
        steps: its steps.
    """

    number: int
    kind: str
    pods: int
    cores: int
    steps: int


class Hunt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bug, and what was tried against it.

    Attributes:
        bug: its id.
        subject: the part of the node that it is in.
        models: the public issues that it is modelled on and the requirements that it breaks.
        runs: case runs that it was looked for in; None where the table was left out.
        cases: those that caught it.
        invariants: that broke in them.
        examples: scenarios that it was looked for in; None where fuzzing was left out.
        example: the one that caught it.
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
        """Whether something was tried and nothing caught it."""
        tried = self.runs is not None or self.examples is not None
        return tried and not self.cases and self.example is None


class Seconds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a bug was looked for, and how long its example was shrunk."""

    table: float = 0.0
    fuzz: float = 0.0
    shrinking: float = 0.0


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the gauntlet came to. All but `seconds` is the same for the same command.

    Attributes:
        numaproof: the version.
        seed: where the scenarios come from.
        examples: scenarios that fuzzing had for a bug, at the most.
        whole: whether every case was played against every bug, and not only until one caught it.
        cases: the ids of the cases that were played.
        hunts: one for each bug, in the order of the catalogue.
        seconds: by bug.
        complete: whether no bug was left when the run ended.
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
        """The bugs that the table was tried against."""
        return tuple(hunt for hunt in self.hunts if hunt.runs is not None)

    @property
    def fuzzed(self) -> tuple[Hunt, ...]:
        """The bugs that fuzzing was tried against."""
        return tuple(hunt for hunt in self.hunts if hunt.examples is not None)

    @property
    def found(self) -> tuple[Example, ...]:
        """What fuzzing found, one for each bug that it caught."""
        return tuple(hunt.example for hunt in self.hunts if hunt.example is not None)

    @property
    def idle(self) -> tuple[str, ...]:
        """The cases that were played against every bug and never caught one."""
        if not self.whole:
            return ()
        busy = {case for hunt in self.hunts for case in hunt.cases}
        return tuple(case for case in self.cases if case not in busy)

    def middle(self, name: str) -> float | None:
        """The median of a number of the examples that were found; None where there is none."""
        numbers = [getattr(example, name) for example in self.found]
        return median(numbers) if numbers else None
