"""`numaproof diff`: plays scenarios on two sides and reports where their answers differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from numaproof import fakesys
from numaproof.conformance.cases import writing
from numaproof.conformance.cases.releases import includes
from numaproof.conformance.cases.schema import Case, Machines, NoArguments, Step
from numaproof.conformance.differential.by_release import common, common_fields
from numaproof.conformance.differential.diff_options import FILE, LIFE, START, TREE, DiffOptions
from numaproof.conformance.differential.lockstep import LockstepResult, Pair, examine
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.run import Scenario
from numaproof.conformance.fuzzing import shrinking
from numaproof.conformance.fuzzing.exploration import (
    checkpoint_pair,
    node_scenario,
    tree,
    unusual_start,
    upgrade,
)
from numaproof.conformance.trees import ExistingTree
from numaproof.inputs.shell_words import quote_words
from numaproof.protocol import discovery, events
from numaproof.protocol.features import claimed_features
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import TOLD, Hello, Told
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun

_SHRINK_SECONDS = 60.0
"""The time limit for shrinking a difference; `docs/fidelity.md` and the command's help mention it.
"""

_SHRINK_TRIES = 3
"""The number of runs of each scenario while shrinking. If chance hides the difference, the scenario
only stays larger.
"""

_GENERATORS = {LIFE: node_scenario, START: unusual_start, FILE: checkpoint_pair}

_NAMES = {LIFE: "seed", START: "start", FILE: "file"}

_SLOW = frozenset({"time-out", "crash", "protocol error"})
"""Outcomes after which a program restarts, or that take the whole time limit."""


@dataclass(frozen=True)
class NamedScenario:
    """A scenario with a name that is unique in the run."""

    name: str
    scenario: Scenario


def shared_optional_fields(shared: Capabilities) -> tuple[Told, ...]:
    """The optional fields that both sides can include in answers.

    Metrics are not compared, because a kubelet's drift depends on the order of a map.
    """
    return tuple(one for one in TOLD if one != "metrics" and shared.makes(f"feature {one}"))


def shared_capabilities(left: Hello, right: Hello, kubernetes: str) -> Capabilities:
    """The capabilities that both sides claim, under the right side's name."""
    merged = msgspec.structs.replace(
        right,
        kubernetes=common(right.kubernetes, left.kubernetes),
        operations=common(right.operations, left.operations),
        policies=common_fields(right.policies, left.policies),
        options=common_fields(right.options, left.options),
        features=common(claimed_features(right), claimed_features(left)),
        discovers=discovery.common(right, left),
    )
    return Capabilities(merged, kubernetes)


def seeded_scenarios(
    seeds: Iterable[int], capabilities: Capabilities, kind: str = LIFE
) -> Iterator[NamedScenario]:
    """Generates scenarios from seeds, deterministically for the same claims.

    `kind` is `LIFE`, `START` or `FILE`.
    """
    for seed in seeds:
        yield NamedScenario(f"{_NAMES[kind]} {seed}", _GENERATORS[kind](seed, capabilities))


def upgrades(
    seeds: Sequence[int], capabilities: Capabilities, steps: Iterable[tuple[str, str]]
) -> Iterator[NamedScenario]:
    """Generates scenarios from seeds for each pair of releases; the two may be the same."""
    for before, after in steps:
        for seed in seeds:
            made = upgrade(seed, capabilities.of(before), after)
            yield NamedScenario(f"upgrade {seed} from {before} to {after}", made)


def generated_trees(seeds: Iterable[int]) -> Iterator[NamedScenario]:
    """Generates trees and scenarios that discover them; each tree exists until the next one."""
    for seed in seeds:
        with scratch_folder() as folder:
            yield NamedScenario(f"{TREE} {seed}", tree(seed, folder))


def case_scenarios(
    cases: Iterable[Case], catalogue: Sequence[machines.ProfileMachine], kubernetes: str
) -> Iterator[NamedScenario]:
    """Cases on every machine that they apply to, without expectations."""
    for case in cases:
        if not includes(case.kubernetes, kubernetes):
            continue
        if case.machine is not None:
            yield NamedScenario(f"{case.id} on its own machine", Scenario(case, case.machine))
            continue
        for machine in machines.select(catalogue, case):
            named = msgspec.structs.replace(case, machines=Machines(names=(machine.name,)))
            tree = machine.tree if _needs_tree(case) else None
            yield NamedScenario(
                f"{case.id} on {machine.name}", Scenario(named, machine.info or MachineInfo(), tree)
            )


def tree_scenarios(trees: Iterable[Path]) -> Iterator[NamedScenario]:
    """Scenarios that discover trees in directories or archives (unpacked until the next scenario).

    Raises:
        TreeError: a path is not a tree.
    """
    for path in trees:
        with fakesys.open_tree(path) as root:
            case = Case(
                id=path.name.partition(".")[0],
                title="A tree is discovered",
                requirements=(),
                machines=Machines(names=(path.name,)),
                steps=(Step(discover=NoArguments(), expect="anything"),),
            )
            yield NamedScenario(
                f"discovery of {path.name}", Scenario(case, MachineInfo(), ExistingTree(root))
            )


def _needs_tree(case: Case) -> bool:
    return any(step.discover or (step.start and step.start.tree) for step in case.steps)


def differences(
    pair: Pair,
    scenarios: Iterable[NamedScenario],
    total: int,
    harness_run: HarnessRun,
    options: DiffOptions,
) -> Iterator[events.AnyEvent]:
    """Plays scenarios on both sides and yields events.

    Ends at the first difference unless `options.keep_going` is set. Each difference is shrunk and
    saved as a case file. A failure explained by a named defect of the release is reported but
    doesn't count as a difference.

    Raises:
        CaseError: a case can't be played as written.
    """
    yield harness_run.started_event("diff", total, {})
    outcomes: Counter[str] = Counter()
    with scratch_folder() as scratch:
        for number, named in enumerate(scenarios, 1):
            played = examine(pair, named.scenario, scratch, options.tries)
            outcomes[played.outcome] += 1
            if played.chance:
                yield _chance_event(named, played, harness_run)
            if played.defect:
                yield _expected_failure_event(named, played, harness_run)
            if played.outcome not in events.GOOD:
                yield _difference_event(
                    _Difference(pair, named, played), harness_run, options, scratch
                )
                if not options.keep_going:
                    break
            yield events.Progress(at=harness_run.elapsed_seconds(), played_examples=number)
    yield harness_run.ended_event(outcomes, other_implementations=(pair.left,))


def _chance_event(
    named_scenario: NamedScenario, result: LockstepResult, harness_run: HarnessRun
) -> events.AnsweredByChance:
    return events.AnsweredByChance(
        at=harness_run.elapsed_seconds(),
        scenario=named_scenario.name,
        call=result.calls,
        operation=result.operation,
        message=result.message,
        finding=result.reported_finding(),
    )


def _expected_failure_event(
    named_scenario: NamedScenario, result: LockstepResult, harness_run: HarnessRun
) -> events.CaseFinished:
    """The event for a scenario that ended with a named defect of the kubelet."""
    return events.CaseFinished(
        at=harness_run.elapsed_seconds(),
        case=named_scenario.name,
        title=named_scenario.scenario.case.title,
        machine="its own machine",
        outcome=result.outcome,
        seconds=0.0,
        requirements=(),
        message=result.message,
        steps=result.steps,
        pictures=result.pictures,
        stderr=result.stderr,
        defect=result.defect,
        reproduce=harness_run.rerun_command or harness_run.command,
        finding=result.reported_finding(),
    )


@dataclass(frozen=True)
class _Difference:
    pair: Pair
    named_scenario: NamedScenario
    result: LockstepResult

    def smallest(self, scratch: Path, tries: int) -> tuple[Scenario, LockstepResult, bool]:
        """Shrinks the scenario; also returns its result and whether time ran out."""

        def shows(scenario: Scenario) -> bool:
            return self._same(scenario, scratch, min(tries, _SHRINK_TRIES)) is not None

        if self.result.outcome in _SLOW:
            return self.named_scenario.scenario, self.result, False
        search = shrinking.Shrinking(shows, _SHRINK_SECONDS)
        scenario = search.smallest(self.named_scenario.scenario)
        played = self._same(scenario, scratch, tries)
        if played is None:
            scenario, played = self.named_scenario.scenario, self.result
        return scenario, played, search.timed_out

    def _same(self, scenario: Scenario, scratch: Path, tries: int) -> LockstepResult | None:
        played = examine(self.pair, scenario, scratch, tries)
        mine = self.result
        alike = (played.outcome, played.operation) == (mine.outcome, mine.operation)
        return played if alike else None


def _difference_event(
    difference: _Difference, harness_run: HarnessRun, options: DiffOptions, scratch: Path
) -> events.DivergenceFound:
    scenario, played, cut_short = difference.smallest(scratch, options.tries)
    message = f"{difference.named_scenario.name}: {played.message}"
    finding = played.reported_finding(f"{difference.named_scenario.name}: ")
    title = events.headline(events.sentence_of(message, finding))
    if cut_short:
        title += f" ({shrinking.CUT_SHORT})"
    case = shrinking.case_of(scenario, title)
    file = options.findings / writing.name_of(case)
    text = writing.write(case, file)
    return events.DivergenceFound(
        at=harness_run.elapsed_seconds(),
        title=title,
        outcome=played.outcome,
        message=message,
        machine=scenario.machine,
        steps=played.steps,
        pictures=played.pictures,
        stderr=played.stderr,
        file=str(file),
        reproduce=quote_words(("numaproof", "diff", str(file), *options.options)),
        signature=played.signature,
        baseline_divergence=played.baseline_divergence,
        finding=finding,
        case_text=text,
    )
