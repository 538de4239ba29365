"""Plans a campaign: the job of its workers, and its units in a reproducible order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.machines import GivenMachine
from numaproof.conformance.exhaustion.bounds import BOUNDS
from numaproof.conformance.exhaustion.kinds import KINDS
from numaproof.protocol import codec
from numaproof.protocol.campaign import (
    BoundSlice,
    CampaignPlanned,
    CaseSlice,
    Configuration,
    Seeds,
    SeedSlice,
)
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.protocol.campaign import Unit
    from numaproof.protocol.messages import Hello


_PARTS_PER_UNIT = 4
"""The maximum number of parts of a bound in a unit."""


@dataclass(frozen=True)
class NamedProfile:
    """A machine's profile, and the name that the user gave if it differs."""

    profile: fakesys.Profile
    given_name: str


@dataclass(frozen=True)
class Job:
    """The data shared by all units of a campaign, sent to each worker once.

    Attributes:
        key: the campaign's key.
        numaproof: the version that workers must have.
        cases: the digest of the case table that workers must have.
        machines: the machines that cases run on.
        program: the words of the implementation's command; empty for the reference.
        timeout: the time limit of a call in seconds.
        hello: the implementation's `hello` at the start of the campaign.
        bound: the name of the bound within which to enumerate everything; empty for none.
    """

    key: str
    numaproof: str
    cases: str
    machines: tuple[NamedProfile, ...]
    program: tuple[str, ...]
    timeout: float
    hello: Hello
    bound: str = ""


def digest_of_cases(cases: Iterable[Case]) -> str:
    """Identifies a table of cases by its contents."""
    return _digest(codec.encode(tuple(cases)))


def digest_of_machine(profile: fakesys.Profile) -> str:
    """Identifies a profile by its contents."""
    return _digest(fakesys.dump_profile(profile).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@dataclass(frozen=True)
class CampaignSpec:
    """The campaign that the user requested.

    Attributes:
        targets: the target for each configuration, which may have stopped since.
        cases: the case table, which every worker has.
        machines: the machines that cases run on.
        selected_cases: the cases to run.
        seeds: the seeds of scenarios, ignored if the implementation cannot be fuzzed.
        cases_per_unit: the maximum number of cases in a unit.
        seeds_per_unit: the maximum number of seeds in a unit.
        shrinks: the maximum number of distinct failures to shrink.
        timeout: the time limit of a call in seconds.
        numaproof: this project's version.
        bound: the name of the bound within which to enumerate everything; empty for none.
        is_guided: whether the scenarios of a unit are led by the program's coverage.
    """

    targets: tuple[Target, ...]
    cases: tuple[Case, ...]
    machines: tuple[ProfileMachine, ...]
    selected_cases: tuple[Case, ...]
    seeds: Seeds
    cases_per_unit: int
    seeds_per_unit: int
    shrinks: int
    timeout: float
    numaproof: str
    bound: str = ""
    is_guided: bool = False

    @cached_property
    def _runs(self) -> Mapping[Configuration, list[SelectedCase]]:
        return {
            _configuration(one): runner.select(self.selected_cases, self.machines, one)
            for one in self.targets
        }

    @cached_property
    def _seeds(self) -> Seeds:
        can = self.targets[0].capabilities.can_be_fuzzed
        return self.seeds if can else Seeds(0, 0)

    @cached_property
    def _slices_of_bound(self) -> list[BoundSlice]:
        """The slices of the bound; how many parts it has depends on the release."""
        if not self.bound:
            return []
        bound, slices = BOUNDS[self.bound], []
        for one in self._runs:
            rules = release(one.kubernetes, follows_docs=True)
            for kind in KINDS:
                parts = sum(1 for _ in bound.parts(kind, rules))
                for first in range(0, parts, _PARTS_PER_UNIT):
                    count = min(_PARTS_PER_UNIT, parts - first)
                    slices.append(BoundSlice(one, self.bound, kind, first, count))
        return slices

    @cached_property
    def plan(self) -> CampaignPlanned:
        """The plan, with digests that show whether another plan is identical."""
        first = self.targets[0]
        ranges = range(self._seeds.first, self._seeds.stop, self.seeds_per_unit)
        slices = sum(1 for unit in self._case_slices())
        return CampaignPlanned(
            at=0.0,
            numaproof=self.numaproof,
            program=first.command,
            timeout=self.timeout,
            implementation=first.hello,
            configurations=tuple(self._runs),
            cases=digest_of_cases(self.cases),
            selected_cases=digest_of_cases(self.selected_cases),
            machines={one.name: digest_of_machine(one.profile) for one in self.machines},
            runs=sum(map(len, self._runs.values())),
            seeds=self._seeds,
            cases_per_unit=self.cases_per_unit,
            seeds_per_unit=self.seeds_per_unit,
            shrinks=self.shrinks,
            units=slices + len(self._runs) * len(ranges) + len(self._slices_of_bound),
            bound=self.bound,
            bound_covers=tuple(map(BOUNDS[self.bound].sentence, KINDS)) if self.bound else (),
            is_guided=self.is_guided,
        )

    @property
    def job(self) -> Job:
        """The data for every worker."""
        plan = self.plan
        return Job(
            key=plan.key,
            numaproof=plan.numaproof,
            cases=plan.cases,
            machines=tuple(NamedProfile(one.profile, one.requested_name) for one in self.machines),
            program=plan.program,
            timeout=plan.timeout,
            hello=plan.implementation,
            bound=plan.bound,
        )

    def units(self) -> Iterator[Unit]:
        """Yields the units of cases and seeds."""
        yield from self._case_slices()
        for configuration in self._runs:
            for first in range(self._seeds.first, self._seeds.stop, self.seeds_per_unit):
                count = min(self.seeds_per_unit, self._seeds.stop - first)
                yield SeedSlice(configuration, first, count, self.is_guided)
        yield from self._slices_of_bound

    def _case_slices(self) -> Iterator[CaseSlice]:
        """Yields slices of the cases: each slice for all configurations, then the next slice."""
        chosen = {one: _by_machine(runs) for one, runs in self._runs.items()}
        order = [case.id for case in self.selected_cases]
        for name in dict.fromkeys(name for machines in chosen.values() for name in machines):
            of_machine = {one: set(machines.get(name, ())) for one, machines in chosen.items()}
            somewhere = set().union(*of_machine.values())
            cases = [case for case in order if case in somewhere]
            for number, first in enumerate(range(0, len(cases), self.cases_per_unit)):
                for configuration, applying in of_machine.items():
                    part = cases[first : first + self.cases_per_unit]
                    if played := tuple(case for case in part if case in applying):
                        yield CaseSlice(configuration, name, number, played)


def _configuration(target: Target) -> Configuration:
    return Configuration(target.kubernetes, target.level, target.baseline)


def _by_machine(runs: list[SelectedCase]) -> dict[str, list[str]]:
    """Returns the ids of cases by machine; ``""`` holds the cases that define their own machine."""
    found: dict[str, list[str]] = {}
    for run in runs:
        name = "" if isinstance(run.machine, GivenMachine) else run.machine.name
        found.setdefault(name, []).append(run.case.id)
    return found
