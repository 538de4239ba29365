"""Executes units of a campaign, sharing machines, cases and implementations among them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import count, islice
from typing import TYPE_CHECKING

import msgspec

from numaproof.campaign.planning import digest_of_cases
from numaproof.conformance.cases import loading, writing
from numaproof.conformance.execution import harness_run, implementation, machines, runner
from numaproof.conformance.execution.run import Target, reference
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.conformance.execution.truncation import reported_finding
from numaproof.conformance.exhaustion.bounds import BOUNDS
from numaproof.conformance.exhaustion.search import Search
from numaproof.conformance.fuzzing.exploration import Explorer, node_scenario, on_its_machine
from numaproof.conformance.fuzzing.fuzz_finding import FuzzFinding
from numaproof.conformance.fuzzing.lineage import Lineage
from numaproof.conformance.judging.baselines import DOCUMENTED, KUBELET
from numaproof.conformance.requirements import Registry
from numaproof.protocol import campaign as events
from numaproof.protocol import codec, messages
from numaproof.protocol.events import GOOD
from numaproof.reference.deviations.releases import release
from numaproof.workdir.removal import remove_tree
from numaproof.workdir.scratch import needing_room

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.campaign.planning import Job
    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.run import RunResult, Scenario
    from numaproof.conformance.exhaustion.bounds import Part
    from numaproof.conformance.fuzzing.exploration import ScenarioRun
    from numaproof.conformance.judging.baselines import Baseline
    from numaproof.protocol.events import CaseFinished, Outcome
    from numaproof.protocol.messages import Hello

FINDINGS = "findings"
"""The folder for case files within the campaign's folder."""


class WorkerMismatchError(Exception):
    """A worker does not match the campaign's plan; the message describes the difference."""


@dataclass(frozen=True)
class UnitResult:
    """The result of a unit: its events as lines of the journal, and its files."""

    lines: bytes
    files: Mapping[str, str]


class UnitWorker:
    """Executes units, opening what they need on first use.

    The program is started once for each thread, and `close` kills it.

    Args:
        job: the campaign's job.
        folder: an existing folder for trees and state directories.

    Raises:
        WorkerMismatchError: another version of numaproof is installed here.
    """

    def __init__(self, job: Job, folder: Path) -> None:
        here = version("numaproof")
        if here != job.numaproof:
            raise WorkerMismatchError(
                f"a worker runs numaproof {here} (expected {job.numaproof}, as in the campaign)"
            )
        self._job = job
        self._folder = folder
        self._number = count()
        self._own = threading.local()
        self._implementations: list[implementation.Implementation] = []

    def close(self) -> None:
        """Stops all programs."""
        for one in self._implementations:
            one.close()
        self._implementations.clear()

    @cached_property
    def _machines(self) -> dict[str, machines.ProfileMachine]:
        trees = self._folder / "trees"
        return {
            one.profile.name: machines.ProfileMachine(one.profile, trees, one.given_name)
            for one in self._job.machines
        }

    @cached_property
    def _cases(self) -> dict[str, Case]:
        cases = loading.bundled_cases()
        if digest_of_cases(cases) != self._job.cases:
            raise WorkerMismatchError("a worker's case table differs from the campaign's")
        return {case.id: case for case in cases}

    def _implementation(self, baseline: Baseline) -> implementation.Implementation:
        kept: dict[Baseline | None, implementation.Implementation] = self._own.__dict__.setdefault(
            "kept", {}
        )
        which = None if self._job.program else baseline  # programs do not depend on the baseline
        if which not in kept:
            kept[which] = self._open(baseline)
        return kept[which]

    def _open(self, baseline: Baseline) -> implementation.Implementation:
        job = self._job
        reached: implementation.Implementation = reference(baseline)
        if job.program:
            reached = Subprocess(job.program, job.timeout)
        try:
            self._compare(implementation.patient_handshake(reached, f"numaproof {job.numaproof}"))
        except BaseException:
            reached.close()
            raise
        self._implementations.append(reached)
        return reached

    def _compare(self, hello: Hello) -> None:
        wanted = self._job.hello
        if hello != wanted:
            raise WorkerMismatchError(
                f"a worker's implementation ({hello.name} {hello.version}) differs from the"
                f" campaign's ({wanted.name} {wanted.version}) in its name, version or claims"
            )

    def _target(self, configuration: events.Configuration) -> Target:
        documents_first = configuration.baseline == "documented"
        reference_baseline = DOCUMENTED if documents_first else KUBELET
        compared = self._job.program or configuration.baseline == "either"
        return Target(
            implementation=self._implementation(reference_baseline),
            hello=self._job.hello,
            kubernetes=configuration.kubernetes,
            level=configuration.level,
            command=self._job.program,
            oracle=reference if compared else None,
            baseline=configuration.baseline,
        )

    def do(self, unit: events.Unit) -> UnitResult:
        """Executes a unit.

        Raises:
            WorkerMismatchError: this worker does not match the campaign.
            ImplementationFailure: the handshake failed here.
            CaseError: a case cannot run as written.
        """
        began = time.monotonic()
        target = self._target(unit.configuration)
        before = len(implementation.leftovers_of(target.implementation))
        scratch = self._folder / f"unit-{next(self._number)}"
        scratch.mkdir()
        try:
            one = _UnitRun(target, scratch, harness_run.timeout_options(self._job.timeout))
            with needing_room(scratch):
                match unit:
                    case events.CaseSlice():
                        one.add_cases(self._runs(unit))
                    case events.SeedSlice():
                        one.add_seeds(unit)
                    case events.BoundSlice():
                        one.add_parts(unit)
                    case events.Shrink(kind=""):
                        one.add_smallest(unit)
                    case events.Shrink():
                        one.add_first(unit, self._job.bound)
        finally:
            remove_tree(scratch)
        left = implementation.leftovers_of(target.implementation)[before:]
        return one.result(unit, time.monotonic() - began, left)

    def _runs(self, unit: events.CaseSlice) -> Iterator[runner.SelectedCase]:
        for name in unit.cases:
            case = self._cases[name]
            machine: machines.AnyMachine
            if case.machine is not None:
                machine = machines.GivenMachine(case.machine)
            else:
                machine = self._machines[unit.machine]
            yield runner.SelectedCase.on(machine, case)


def _parts(unit: events.BoundSlice, kubernetes: str) -> Iterator[tuple[int, Part]]:
    """Yields the parts of a unit with their numbers."""
    parts = BOUNDS[unit.bound].parts(unit.kind, release(kubernetes, follows_docs=True))
    return islice(enumerate(parts), unit.first, unit.first + unit.count)


def _failed_scenario(number: int, scenario_run: ScenarioRun) -> events.ScenarioFailed:
    """The event of a failed scenario, which came from this seed or part."""
    result = scenario_run.result
    return events.ScenarioFailed(
        0.0,
        number,
        scenario_run.signature,
        result.outcome,
        result.message,
        finding=reported_finding(result.finding),
    )


class _UnitRun:
    def __init__(self, target: Target, scratch: Path, options: tuple[str, ...]) -> None:
        registry = Registry(documents={}, requirements=())
        self._harness_run = harness_run.HarnessRun(target, registry, "", "", options=options)
        self._target = target
        self._scratch = scratch
        self._events: list[events.UnitEvent] = []
        self._outcomes: Counter[Outcome] = Counter()
        self._files: dict[str, str] = {}
        self._notes: list[str] = []
        self._blocks: set[str] = set()
        self._kept_scenarios = 0

    def add_cases(self, runs: Iterator[runner.SelectedCase]) -> None:
        campaign = self._harness_run
        for number, run in enumerate(runs):
            finished = first = runner.run_case(run, campaign, self._scratch / str(number))
            if first.outcome in implementation.FROM_OUTSIDE:
                finished = runner.run_case(run, campaign, self._scratch / f"{number}-again")
                self._compare(f"case {run.case.id}", first, finished)
            self._outcomes[finished.outcome] += 1
            self._events.append(finished)

    def add_seeds(self, unit: events.SeedSlice) -> None:
        capabilities = self._target.capabilities
        lineage = Lineage(capabilities)
        found: set[str] = set()
        self._take_blocks("before the first scenario")  # discards what other units reached
        for seed in range(unit.first, unit.first + unit.count):
            scratch = self._scratch / str(seed)
            scenario = lineage.next(seed) if unit.is_guided else node_scenario(seed, capabilities)
            played = self._play(Explorer(self._target, scratch), scenario, seed)
            remove_tree(scratch)
            blocks = self._take_blocks(f"of scenario {seed}")
            self._blocks |= blocks
            if unit.is_guided:
                lineage.add(blocks)
            result = played.result
            self._outcomes[result.outcome] += 1
            if result.outcome not in GOOD:
                failed = _failed_scenario(seed, played)
                if unit.is_guided and failed.signature not in found:
                    case = writing.text(played.case())
                    failed = msgspec.structs.replace(failed, case=case)
                found.add(failed.signature)
                self._events.append(failed)
        self._kept_scenarios = lineage.kept_lives

    def _take_blocks(self, whose: str) -> frozenset[str]:
        """Returns the blocks that the program has reached since the last call of this function."""
        if not self._target.capabilities.has("coverage"):
            return frozenset()
        answer: object
        try:
            answer = self._target.implementation.call("coverage", messages.NoArgs())
        except implementation.ImplementationFailure as failure:
            answer = failure
        if isinstance(answer, messages.Coverage):
            return frozenset(answer.blocks)
        self._notes.append(f"the coverage {whose} is missing: {answer}")
        return frozenset()

    def add_parts(self, unit: events.BoundSlice) -> None:
        for number, part in _parts(unit, self._target.kubernetes):
            search = Search(self._target)
            found: dict[str, events.ScenarioFailed] = {}
            for failure in search.failures(part):
                first = found.get(failure.signature) or msgspec.structs.replace(
                    _failed_scenario(number, failure), kind=unit.kind, count=0
                )
                found[failure.signature] = msgspec.structs.replace(first, count=first.count + 1)
            self._outcomes += search.outcomes
            self._events += found.values()

    def add_first(self, unit: events.Shrink, bound: str) -> None:
        one = events.BoundSlice(unit.configuration, bound, unit.kind, unit.seed, 1)
        for _, part in _parts(one, self._target.kubernetes):
            failures = Search(self._target).failures(part)
            for failure in (one for one in failures if one.signature == unit.signature):
                # It is minimal already, because smaller examples come first.
                self._divergence(failure)
                return

    def add_smallest(self, unit: events.Shrink) -> None:
        explorer = Explorer(self._target, self._scratch)
        if unit.case:
            (case,) = loading.parse(unit.case, f"life {unit.seed}")
            scenario = on_its_machine(case)
        else:
            scenario = node_scenario(unit.seed, self._target.capabilities)
        first = self._play(explorer, scenario, unit.seed)
        # A failure that does not recur has no steps to show.
        if first.result.outcome not in GOOD:
            self._divergence(explorer.smallest(first))

    def _play(self, explorer: Explorer, scenario: Scenario, seed: int) -> ScenarioRun:
        first = explorer.play(scenario)
        played = explorer.confirm(first)
        if played is not first:
            self._compare(f"scenario {seed}", first.result, played.result)
        return played

    def _compare(
        self, what: str, first: RunResult | CaseFinished, again: RunResult | CaseFinished
    ) -> None:
        """Notes a failure that did not recur, which is not a finding but worth mentioning."""
        if again.outcome not in implementation.FROM_OUTSIDE:
            self._notes.append(f"{what}: {first.outcome}: {first.message}; it did not recur")

    def _divergence(self, scenario_run: ScenarioRun) -> None:
        found = FuzzFinding.of_failure(scenario_run)
        name = f"{FINDINGS}/{writing.name_of(found.case)}"
        self._files[name] = text = writing.text(found.case)
        reproduce = self._harness_run.replay_file(name)
        self._events.append(
            msgspec.structs.replace(
                found.draft_event, file=name, reproduce=reproduce, case_text=text
            )
        )

    def result(
        self, unit: events.Unit, seconds: float, leftover_processes: Sequence[str]
    ) -> UnitResult:
        self._notes += [
            f"could not kill process {one}, which the program started" for one in leftover_processes
        ]
        ended = events.UnitFinished(
            at=0.0,
            unit=unit.id,
            configuration=unit.configuration,
            outcomes=dict(sorted(self._outcomes.items())),
            seconds=round(seconds, 6),
            machine=unit.machine if isinstance(unit, events.CaseSlice) else "",
            signature=unit.signature if isinstance(unit, events.Shrink) else "",
            notes=tuple(self._notes),
            blocks=tuple(sorted(self._blocks)),
            kept_scenarios=self._kept_scenarios,
        )
        lines = (codec.encode(one) + b"\n" for one in (*self._events, ended))
        return UnitResult(b"".join(lines), self._files)
