"""The four sources of runs that may catch a faulty reference.

- `CaseTrials`: the cases, judged by their expectations and the invariants. The bug is active
  while the reference answers.
- `ScenarioTrials`: generated scenarios, compared with a healthy reference.
- `NodeScenarioTrials`: generated scenarios, judged by the invariants alone. The bug is active for
  the whole run, including the generators, the player and the invariants.
- `CitingTrials`: the cases that cite a requirement, at its level. The bug is active for the whole
  run.

Each has a method ``of`` that yields the trials against a bug in order. A trial is a function that
returns how the bug was caught, or None.
"""

from __future__ import annotations

import signal
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.fuzzing.exploration import Explorer, node_scenario, tree, unusual_start
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.judging.baselines import DOCUMENTED, KUBELET
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference
from quality.healthy import HealthyRun, Recorder, run_case, run_scenario
from quality.search import Catch
from quality.suite import Suite, bundled_suite, far_from, firsts, in_turn, nearest, others, target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numaproof.conformance.execution.run import Scenario, Target
    from numaproof.conformance.execution.runner import SelectedCase
    from numaproof.conformance.judging.baselines import Baseline
    from numaproof.protocol.messages import Level
    from quality.seeding import Bug, Fault

    Trial = Callable[[], Catch | None]

__all__ = [
    "CaseTrials",
    "CitingTrials",
    "NodeScenarioTrials",
    "ScenarioTrials",
    "bundled_suite",
    "seeds",
]


class _Trials:
    """Trials with numbered folders for state directories."""

    scratch: Path

    @cached_property
    def _folders(self) -> Iterator[Path]:
        return (self.scratch / f"run-{number}" for number in count(1))


@dataclass
class CaseTrials(_Trials):
    """Plays the cases of a suite, each on its first machine before any runs on a second.

    Answers of healthy references are cached for use with other bugs.

    Attributes:
        suite: the cases, and the machines in the order to try them.
        scratch: an empty folder for state directories.
    """

    suite: Suite
    scratch: Path
    _healthy_runs: dict[tuple[str, str], HealthyRun] = field(default_factory=dict)
    _runs: dict[str, list[tuple[str, SelectedCase]]] = field(default_factory=dict)

    def played_case_ids(self, kubernetes: str = RELEASES[-1]) -> tuple[str, ...]:
        """Returns the ids of the played cases that can catch a bug.

        Cases for named defects can't: the kubelet's own reference already fails them.
        """
        runs = self.firsts(kubernetes)
        return tuple(selected.case.id for _, selected in runs if selected.case.defect is None)

    def of(self, bug: Bug, *, in_order: bool = False) -> Iterator[Trial]:
        """Yields every case on one machine, nearest first unless `in_order`, then on others."""
        one = target(bug.implementation(), bug.kubernetes)
        near = nearest(bug, self.suite.cases)
        runs = self.firsts(one.kubernetes)
        if not in_order:
            place = {case.id: number for number, case in enumerate(near)}
            runs = sorted(runs, key=lambda turn: place[turn[1].case.id])
        for release, selected in runs:
            yield partial(self._catch, bug, replace(one, kubernetes=release), selected, keep=True)
        for selected in others(near, self.suite.catalogue, one):
            yield partial(self._catch, bug, one, selected, keep=False)

    def near(self, bug: Bug) -> int:
        """Returns how many cases are close to the bug. They are played first."""
        far = far_from(bug, self.suite.cases)
        runs = self.firsts(bug.kubernetes or RELEASES[-1])
        return sum(selected.case.id not in far for _, selected in runs)

    def levels(self, bug: Bug, catch: Catch) -> tuple[Level, ...]:
        """Returns the levels at which the case catches the bug."""
        one = target(bug.implementation(), catch.kubernetes)
        case = next(case for case in self.suite.cases if case.id == catch.run)
        runs = in_turn([case], self.suite.catalogue, one)
        selected = next(run for run in runs if run.machine.name == catch.machine)
        return tuple(
            level
            for level in LEVELS
            if applies(case.level, level)
            and not self._run(replace(one, level=level), selected).play().good
        )

    def firsts(self, kubernetes: str) -> list[tuple[str, SelectedCase]]:
        """Returns every case on its first machine, with the release.

        Cases that don't apply to `kubernetes` are played with the newest release they apply
        to.
        """
        if kubernetes not in self._runs:
            found: dict[str, tuple[str, SelectedCase]] = {}
            for release in (kubernetes, *reversed(RELEASES)):
                left = [case for case in self.suite.cases if case.id not in found]
                one = target(InProcess(Reference), release)
                for selected in firsts(left, self.suite.catalogue, one):
                    found[selected.case.id] = release, selected
            self._runs[kubernetes] = [
                found[case.id] for case in self.suite.cases if case.id in found
            ]
        return self._runs[kubernetes]

    def _catch(
        self, bug: Bug, run_target: Target, selected_case: SelectedCase, *, keep: bool
    ) -> Catch | None:
        healthy = self._healthy_run(selected_case, run_target.kubernetes, keep=keep)
        if not healthy.good or not healthy.differs(bug):
            return None
        run = self._run(run_target, selected_case)
        if run.play().good:
            return None
        broke = sorted({violation.invariant for violation in run.player.violations})
        return Catch(
            selected_case.case.id, selected_case.machine.name, run_target.kubernetes, tuple(broke)
        )

    def _healthy_run(
        self, selected_case: SelectedCase, kubernetes: str, *, keep: bool
    ) -> HealthyRun:
        """Returns a healthy reference's run, cached if `keep`."""
        place = (kubernetes, selected_case.case.id)
        if keep and place in self._healthy_runs:
            return self._healthy_runs[place]
        made = run_case(
            target(InProcess(Reference), kubernetes),
            Recorder(InProcess(Reference)),
            selected_case.case,
            selected_case.info,
            selected_case.machine.tree,
            next(self._folders),
        )
        if keep:
            self._healthy_runs[place] = made
        return made

    def _run(self, run_target: Target, selected_case: SelectedCase) -> Run:
        return Run(
            run_target,
            selected_case.case,
            selected_case.info,
            selected_case.machine.tree,
            next(self._folders),
        )


_TURNS = ("life",) * 2 + ("start",) + ("life",) * 3 + ("start",) + ("life",) * 2 + ("tree",)
"""The kinds of scenarios, repeated in this order."""

_LARGEST_SEED = (1 << 32) - 1

_BASELINES = 400
"""How many scenarios' answers to cache. Most bugs are caught by fewer scenarios."""


def seeds(seed: int, count: int) -> tuple[int, ...]:
    """Returns `count` seeds for scenarios."""
    choices = Seeded(seed)
    return tuple(choices.integer(0, _LARGEST_SEED) for _ in range(count))


@dataclass
class ScenarioTrials(_Trials):
    """Plays the same generated scenarios against every bug: nodes, unusual starts and trees."""

    seeds: tuple[int, ...]
    scratch: Path
    _scenarios: dict[tuple[str, int], tuple[Scenario, HealthyRun]] = field(default_factory=dict)

    def of(self, bug: Bug) -> Iterator[Trial]:
        """Yields one trial for each scenario."""
        one = target(bug.implementation(), bug.kubernetes, with_oracle=True)
        explorer = Explorer(one, next(self._folders))
        for number, seed in enumerate(self.seeds):
            yield partial(self._catch, bug, one, explorer, seed, _TURNS[number % len(_TURNS)])

    def _catch(
        self, bug: Bug, run_target: Target, explorer: Explorer, seed: int, kind: str
    ) -> Catch | None:
        scenario, healthy = self._scenario_run(run_target, seed, kind)
        if not healthy.good or not healthy.differs(bug):
            return None
        broken = explorer.play(scenario).failure_kind
        return Catch(f"{kind} {seed}", "", run_target.kubernetes, (broken,)) if broken else None

    def _scenario_run(
        self, run_target: Target, seed: int, kind: str
    ) -> tuple[Scenario, HealthyRun]:
        """Returns a seed's scenario, and a healthy reference's run of it."""
        place = (run_target.kubernetes, seed)
        if place in self._scenarios:
            return self._scenarios[place]
        scenario = self._make_scenario(run_target, seed, kind)
        healthy = target(InProcess(Reference), run_target.kubernetes)
        noting = Recorder(InProcess(Reference))
        folder = next(self._folders)
        if scenario.tree is None:
            made = run_scenario(healthy, noting, scenario.case, folder)
        else:
            made = run_case(healthy, noting, scenario.case, scenario.machine, scenario.tree, folder)
        if len(self._scenarios) < _BASELINES:
            self._scenarios[place] = scenario, made
        return scenario, made

    def _make_scenario(self, run_target: Target, seed: int, kind: str) -> Scenario:
        if kind == "tree":
            return tree(seed, next(self._folders))
        return (unusual_start if kind == "start" else node_scenario)(seed, run_target.capabilities)


@dataclass
class NodeScenarioTrials(_Trials):
    """Plays generated scenarios that only the invariants judge."""

    seeds: tuple[int, ...]
    scratch: Path

    def of(self, bug: Bug) -> Iterator[Trial]:
        """Yields one trial for each scenario."""
        explorer = Explorer(target(InProcess(Reference), bug.kubernetes), next(self._folders))
        for seed in self.seeds:
            yield partial(self._catch, bug, explorer, seed)

    def _catch(self, bug: Bug, explorer: Explorer, seed: int) -> Catch | None:
        with bug.inject():
            played = explorer.play_seed(seed)
        violations = played.run.player.violations
        if not violations or played.failure_kind != violations[-1].invariant:
            return None
        return Catch(f"life {seed}", "", RELEASES[-1], (violations[0].invariant,))


MAX_CITING = 300
"""How many runs of citing cases are tried in the fault's own release."""

SECONDS = 20
"""The time limit of a run in seconds, because a fault can make a rule loop forever."""


@dataclass
class CitingTrials(_Trials):
    """Plays the cases that cite a requirement against faults in the rules that implement it.

    A run is compared with a healthy reference only by its outcome.

    Attributes:
        suite: the cases, the registry, and the machines in the order to try them.
        scratch: an empty folder for state directories.
    """

    suite: Suite
    scratch: Path
    _healthy: dict[tuple[str, ...], str] = field(default_factory=dict)

    def of(self, fault: Fault, requirement: str | None = None) -> Iterator[Trial]:
        """Yields the cases that cite the broken requirements, or only `requirement`, at its level.

        First come all machines in the fault's own release (or the newest), on a kubelet, or
        on a
        reference without defects if the case shows a defect. Then comes the first machine
        of each
        case: in that release with the two references swapped, because a deviation may
            override
        the broken rule or build on it, and finally on kubelets of all other releases.
        """
        broken = {*fault.models} if requirement is None else {requirement}
        of_requirement = self.suite.registry.by_id()[requirement].level if requirement else None
        level = fault.level or of_requirement or LEVELS[-1]
        cases = [case for case in self.suite.cases if not broken.isdisjoint(case.requirements)]
        own = fault.kubernetes or RELEASES[-1]
        catalogue = self.suite.catalogue
        first, catalogue = _at(own, level), self.suite.catalogue
        turns = [
            (own, (KUBELET, DOCUMENTED), islice(in_turn(cases, catalogue, first), MAX_CITING)),
            (own, (DOCUMENTED, KUBELET), firsts(cases, catalogue, first)),
            *(
                (release, (KUBELET, KUBELET), firsts(cases, catalogue, _at(release, level)))
                for release in reversed(RELEASES)
                if release != own
            ),
        ]
        for release, baselines, runs in turns:
            for selected in runs:
                judged = baselines[selected.case.defect is not None]
                yield partial(self._catch, fault, _at(release, level, judged), selected)

    def _catch(self, fault: Fault, run_target: Target, selected_case: SelectedCase) -> Catch | None:
        """Returns how the fault changes the outcome of a run."""
        healthy = self._healthy_outcome(run_target, selected_case)
        if healthy not in ("pass", "expected failure"):
            return None
        with fault.inject():
            outcome = self._faulty_outcome(run_target, selected_case, survives=fault.breaks_down)
        if outcome == healthy or (not fault.breaks_down and outcome != "fail"):
            return None
        return Catch(
            selected_case.case.id, selected_case.machine.name, run_target.kubernetes, (outcome,)
        )

    def _healthy_outcome(self, run_target: Target, selected_case: SelectedCase) -> str:
        run = (
            run_target.kubernetes,
            run_target.baseline,
            run_target.level,
            selected_case.case.id,
            selected_case.machine.name,
        )
        if run not in self._healthy:
            self._healthy[run] = self._outcome(run_target, selected_case)
        return self._healthy[run]

    def _faulty_outcome(
        self, run_target: Target, selected_case: SelectedCase, *, survives: bool
    ) -> str:
        if not survives:
            return self._outcome(run_target, selected_case)
        try:
            with _time_limit(SECONDS):
                return self._outcome(run_target, selected_case)
        except Exception as error:  # noqa: BLE001 - the harness breaks down with the rule
            return type(error).__name__

    def _outcome(self, run_target: Target, selected_case: SelectedCase) -> str:
        run = Run(
            run_target,
            selected_case.case,
            selected_case.info,
            selected_case.machine.tree,
            next(self._folders),
        )
        with closing(run_target.implementation):
            return run.play().outcome


def _at(release: str, level: Level, baseline: Baseline = KUBELET) -> Target:
    return replace(reference_target(release, baseline), oracle=None, level=level)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raises `TimeoutError` in code that takes longer."""

    def raise_timeout(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
