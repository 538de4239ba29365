"""What a campaign does, what its workers know, and its units in an order that follows from that."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.machines import GivenMachine
from numaproof.protocol import codec
from numaproof.protocol.campaign import CampaignPlanned, CaseSlice, Configuration, Seeds, SeedSlice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.conformance.execution.run import Target
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.protocol.campaign import Unit
    from numaproof.protocol.messages import Hello


@dataclass(frozen=True)
class NamedProfile:
    """A machine's profile, and how a person names it where that is not its own name."""

    profile: fakesys.Profile
    given_name: str


@dataclass(frozen=True)
class Job:
    """The same for all units of a campaign; it is sent to each worker once.

    Attributes:
        key: of the campaign.
        numaproof: the version that a worker must have.
        cases: the digest of the table that a worker must have.
        machines: on which cases run.
        program: the words of the implementation's command; none for the reference.
        timeout: seconds that one call of the program may take.
        hello: what the implementation said of itself where the campaign began.
    """

    key: str
    numaproof: str
    cases: str
    machines: tuple[NamedProfile, ...]
    program: tuple[str, ...]
    timeout: float
    hello: Hello


def digest_of_cases(cases: Iterable[Case]) -> str:
    """Tells one table of cases from another."""
    return _digest(codec.encode(tuple(cases)))


def digest_of_machine(profile: fakesys.Profile) -> str:
    """Tells a profile from another of the same name."""
    return _digest(fakesys.dump_profile(profile).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@dataclass(frozen=True)
class CampaignSpec:
    """What the user asked for.

    Attributes:
        targets: what is tested, once for each configuration; it may have ended since.
        cases: the table, which every worker has.
        machines: that cases run on.
        selected_cases: those of the cases that are run.
        seeds: of the scenarios; none are made for an implementation without `start`.
        cases_per_unit: at the most.
        seeds_per_unit: at the most.
        shrinks: distinct failures of scenarios to shrink.
        timeout: seconds that one call of a program may take.
        numaproof: the version of this project.
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
    def plan(self) -> CampaignPlanned:
        """The plan; its digests tell whether another one is the same."""
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
            units=slices + len(self._runs) * len(ranges),
        )

    @property
    def job(self) -> Job:
        """What every worker has to know."""
        plan = self.plan
        return Job(
            key=plan.key,
            numaproof=plan.numaproof,
            cases=plan.cases,
            machines=tuple(NamedProfile(one.profile, one.requested_name) for one in self.machines),
            program=plan.program,
            timeout=plan.timeout,
            hello=plan.implementation,
        )

    def units(self) -> Iterator[Unit]:
        """The units of cases and of seeds, made as they are asked for."""
        yield from self._case_slices()
        for configuration in self._runs:
            for first in range(self._seeds.first, self._seeds.stop, self.seeds_per_unit):
                count = min(self.seeds_per_unit, self._seeds.stop - first)
                yield SeedSlice(configuration, first, count)

    def _case_slices(self) -> Iterator[CaseSlice]:
        """The same cases on a machine come in one configuration after the other."""
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
    """The ids of cases, of each machine; of no machine those that bring their own."""
    found: dict[str, list[str]] = {}
    for run in runs:
        name = "" if isinstance(run.machine, GivenMachine) else run.machine.name
        found.setdefault(name, []).append(run.case.id)
    return found
