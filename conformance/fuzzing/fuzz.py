"""Fuzzing: runs generated nodes and call sequences until one fails or the budget is spent.

Hypothesis generates examples in batches, whose seeds are derived from a single seed; each batch is
guided by one target. Failures are shrunk and saved as concrete steps in a case file, never only as
a seed. Failures and a sample of passing examples are replayed: different answers to the same calls
are a separate finding.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from numaproof.conformance.claims.review import ClaimsTally
from numaproof.conformance.fuzzing.coverage import CoverageTotals, Feature, features_of_answers
from numaproof.conformance.fuzzing.determinism import REPEATS, DeterminismCheck, Nondeterminism
from numaproof.conformance.fuzzing.example_databases import Scoped
from numaproof.conformance.fuzzing.exploration import (
    ExampleFailedError,
    ExampleRun,
    Explorer,
    NullRun,
    ScenarioRun,
)
from numaproof.conformance.fuzzing.fuzz_finding import FuzzFinding, KnownExamples
from numaproof.conformance.fuzzing.fuzz_options import CI, Budget, FuzzOptions
from numaproof.conformance.fuzzing.interrupts import (
    Interrupts,
    OutOfTimeError,
    TimeLimit,
    with_time_limit,
)
from numaproof.conformance.fuzzing.state_machine import TARGETS, NodeMachine
from numaproof.conformance.known_failures.entries import KNOWN, KnownFailures
from numaproof.protocol import events
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hypothesis.database import ExampleDatabase

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.machine import MachineInfo

SHRINKS = 150
"""Maximum number of examples for Hypothesis to try while shrinking a failure."""

STEPS = 12
"""Maximum number of steps of an example after the first start."""


class _EnoughError(KeyboardInterrupt):
    """Ends a batch early; Hypothesis lets a KeyboardInterrupt through immediately."""


def fuzz(
    harness_run: HarnessRun, budget: Budget, seed: int, findings: Path, options: FuzzOptions = CI
) -> Iterator[events.AnyEvent]:
    """Fuzzes a target and yields events; stops at the first finding unless `options` say otherwise.

    The smallest example of each known failure is reported at the end.

    A target without `start` is tested with operations that need no node. A target that supports
    only discovery cannot be fuzzed; this counts as one unsupported example. Without a database or a
    time budget, the same seed yields the same events, except for their times.

    Args:
        harness_run: the run, with its target.
        budget: when to stop.
        seed: determines the examples.
        findings: the directory for case files of findings.
        options: the database, how often to replay examples, and whether to continue after findings.
    """
    limit = TimeLimit(harness_run.elapsed_seconds)
    if budget.seconds is not None:
        implementation = with_time_limit(harness_run.target.implementation, limit)
        target = replace(harness_run.target, implementation=implementation)
        harness_run = replace(harness_run, target=target)
    yield harness_run.started_event("fuzz", budget.examples or 0, {}, seed)
    if not harness_run.target.capabilities.can_be_fuzzed:
        yield harness_run.ended_event({"unsupported": 1})
        return
    seeds = random.Random(seed)  # noqa: S311 - reproducible on purpose
    aims = tuple(TARGETS)
    outcomes: Counter[str] = Counter()
    with scratch_folder() as scratch, Interrupts() as interrupts:
        offset = seeds.getrandbits(32)
        search = _Search(harness_run, budget, limit, scratch, options, offset, interrupts)
        kept = Scoped(options.database, harness_run.target) if options.database else None
        number = done = 0
        try:
            while not search.over and budget.allows_another(done, harness_run.elapsed_seconds()):
                count = budget.batch(done, len(aims))
                interrupts.check()
                _batch(search, seeds.getrandbits(64), count, aims[number % len(aims)], kept)
                played = min(count, search.pop_example_count())
                number, done = number + 1, done + played
                found = search.finding()
                outcomes += search.pop_skipped(played - bool(found))
                if found:
                    outcomes[found.draft_event.outcome] += 1
                    yield search.event(found, findings)
                    if kept:
                        kept.keep()
                yield events.Progress(at=harness_run.elapsed_seconds(), played_examples=done)
            search.shrink_known()
        except KeyboardInterrupt:
            left = (search.unshrunk_finding(), *search.known_examples.findings())
            yield from (search.event(one, findings) for one in left if one)
            yield events.Progress(at=harness_run.elapsed_seconds(), played_examples=done)
            raise
        yield from (search.event(one, findings) for one in search.known_examples.findings())
        outcomes["pass"] = done - outcomes.total()
    yield search.coverage.event(harness_run.elapsed_seconds())
    yield harness_run.ended_event(outcomes, claims=search.claims.review())


@dataclass
class _Search:
    """The state of a fuzz run.

    `known_outcomes` maps the causes found so far, and those listed as known failures, to the
    outcome of later examples with the same cause. `known_examples` holds the smallest examples of
    known failures. `interrupts` end the run, and `limit` ends the current activity.
    """

    harness_run: HarnessRun
    budget: Budget
    limit: TimeLimit
    scratch: Path
    options: FuzzOptions
    offset: int
    interrupts: Interrupts
    coverage: CoverageTotals = field(default_factory=CoverageTotals)
    failures: list[ExampleFailedError] = field(default_factory=list)
    nondeterminism: Nondeterminism | None = None
    known_failures: KnownFailures = field(init=False)
    known_outcomes: dict[str, events.Outcome] = field(init=False)
    known_examples: KnownExamples = field(default_factory=KnownExamples)
    finding_count: int = 0
    _skipped_outcomes: list[events.Outcome] = field(default_factory=list)
    _shrinks_left: int = SHRINKS
    _example_count: int = 0
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _playing: bool = False
    _shrink_until: float | None = None
    _determinism: DeterminismCheck = field(init=False)
    claims: ClaimsTally = field(init=False)

    def __post_init__(self) -> None:
        self.known_failures = self.options.known_failures or KnownFailures()
        self.known_outcomes = dict.fromkeys(self.known_failures.causes_of_scenarios(), KNOWN)
        self.claims = ClaimsTally(self.harness_run.target.hello, "example")
        self._determinism = DeterminismCheck(self.harness_run.target, self.scratch / "repeats")

    @property
    def over(self) -> bool:
        return self.finding_count > 0 and not self.options.keep_going

    def pop_example_count(self) -> int:
        """Returns the number of examples since the last call, excluding shrinking attempts."""
        taken, self._example_count = self._example_count, 0
        return taken

    def pop_skipped(self, most: int) -> Counter[events.Outcome]:
        """Returns the outcomes of examples skipped since the last call."""
        counted, self._skipped_outcomes = self._skipped_outcomes[:most], []
        return Counter(counted)

    def open(self, machine: MachineInfo, *, from_tree: bool) -> ExampleRun | NullRun:
        """Opens the next example, or a null run if shrinking has used up its tries."""
        self.interrupts.check()
        self._playing = False
        if self.failures:
            self.limit.until = self._until()
            self._shrinks_left -= 1
        elif self.coverage.examples:
            self.limit.until = self.budget.search_until
        self.limit.check()
        if self._shrinks_left < 0:
            return NullRun()
        self._playing = not self.failures
        self._example_count += self._playing
        return ExampleRun(
            self.harness_run.target,
            machine,
            self.scratch / f"example-{next(self._numbers)}",
            failures=self.failures,
            known_outcomes=self.known_outcomes,
            from_tree=from_tree,
        )

    def end_example(
        self,
        run: ExampleRun | NullRun | None,
        features: Mapping[Feature, int],
        values: Mapping[str, float],
    ) -> None:
        """Adds the coverage of an example, and replays the example if a replay is due."""
        self._playing = False
        if not isinstance(run, ExampleRun) or self.failures:
            return
        session = run.inner.player.session
        self.coverage.add({**features, **features_of_answers(session.calls)}, values)
        if run.known_outcome == KNOWN:
            self.known_examples.add(run)
        if run.known_outcome:
            self._skipped_outcomes.append(run.known_outcome)
            return
        if run.inner.player.out_of_step:
            self._skipped_outcomes.append("unsupported")
        self.claims.count(
            session.needed_claims, session.missing_claim, session.declined_claims, has_failed=False
        )
        every = self.options.replay_every
        if every and (self.coverage.examples + self.offset) % every == 0:
            found = self._determinism.nondeterminism(run.scenario(), run.inner, times=1)
            if found and self.known_outcomes.get(found.signature) == KNOWN:
                self.known_examples.add_finding(FuzzFinding.of_nondeterminism(found))
            elif found and found.signature not in self.known_outcomes:
                self.nondeterminism = found
                raise _EnoughError

    def cut_short(self) -> None:
        """Records that the time limit was reached; an unfinished example no longer counts."""
        self._example_count -= self._playing
        self._playing = False

    def _until(self) -> float:
        if self._shrink_until is None:
            keep_going = self.options.keep_going
            elapsed = self.harness_run.elapsed_seconds()
            self._shrink_until = self.budget.shrink_until(elapsed, keep_going=keep_going)
        return self._shrink_until

    def finding(self) -> FuzzFinding | None:
        """Shrinks and returns the finding since the last call; its cause is known from then on.

        Hypothesis shrinks first, then `shrink` removes parts. If replays get different answers, the
        finding is the nondeterminism instead. If time runs out, the smallest failure so far is
        used.
        """
        nondeterminism, found = self.nondeterminism, None
        if self.failures:
            self.limit.until = self._until()
            first = self._first()
            smallest = self._smallest(first)
            nondeterminism = self._repeat(smallest)
            found = None if nondeterminism else FuzzFinding.of_failure(smallest)
            if nondeterminism:
                # Otherwise, a failure that depends on the process would be found repeatedly.
                self.known_outcomes[first.signature] = first.result.outcome
        self.limit.until = self.budget.until
        if nondeterminism:
            found = FuzzFinding.of_nondeterminism(self._determinism.smallest(nondeterminism))
        if found and self.known_outcomes.get(found.draft_event.signature) == KNOWN:
            self.known_examples.add_finding(found)
            self._skipped_outcomes.append(KNOWN)
            found = None
        if found:
            self.known_outcomes[found.draft_event.signature] = found.draft_event.outcome
            self.finding_count += 1
        self.failures, self.nondeterminism, self._shrinks_left = [], None, SHRINKS
        self._shrink_until = None
        return found

    def _repeat(self, smallest: ScenarioRun) -> Nondeterminism | None:
        """Replays a failure, if there is time, and returns any difference in the answers."""
        self.limit.until = self.budget.until
        times = 1 if smallest.result.outcome == "time-out" else REPEATS
        with suppress(OutOfTimeError):
            return self._determinism.nondeterminism(smallest.scenario, smallest.run, times)
        return None

    def unshrunk_finding(self) -> FuzzFinding | None:
        """Returns the failure that could not be shrunk because the run was interrupted."""
        return FuzzFinding.of_failure(self._first()) if self.failures else None

    def _first(self) -> ScenarioRun:
        return min((found.run for found in self.failures), key=attrgetter("size")).scenario_run()

    def _smallest(self, first: ScenarioRun) -> ScenarioRun:
        """Shrinks a failure; if this leads to a known cause, preserves the original cause."""
        explorer = self._explorer()
        smallest = explorer.smallest(first)
        if smallest.signature in self.known_outcomes:
            return explorer.smallest(first, key=attrgetter("signature"))
        return smallest

    def _explorer(self) -> Explorer:
        folder = self.scratch / f"smaller-{next(self._numbers)}"
        return Explorer(self.harness_run.target, folder)

    def shrink_known(self) -> None:
        """Shrinks the examples of known failures, unless the run has a time limit."""
        if self.budget.seconds is None:
            self.known_examples.shrink(self._explorer(), self.coverage.examples)

    def event(self, finding: FuzzFinding, findings: Path) -> events.DivergenceFound:
        """Writes the case file of a finding, and returns its event."""
        return self.known_failures.judge_scenario(finding.event(self.harness_run, findings))


def _batch(
    search: _Search, seed: int, count: int, aim: str, database: ExampleDatabase | None
) -> None:
    """Runs `count` examples; failures are in `search` afterwards."""

    class Node(NodeMachine):
        capabilities = search.harness_run.target.capabilities
        aims = (aim,)

        def open_example(self, machine: MachineInfo, *, from_tree: bool) -> ExampleRun | NullRun:
            return search.open(machine, from_tree=from_tree)

        def end_example(self, features: Mapping[Feature, int], values: Mapping[str, float]) -> None:
            search.end_example(self.example, features, values)

    phases = (Phase.generate, Phase.target, Phase.shrink)
    profile = settings(
        max_examples=count,
        stateful_step_count=STEPS,
        database=database,
        # In CI, Hypothesis would use its own seed.
        derandomize=False,
        deadline=None,
        print_blob=False,
        phases=(Phase.reuse, *phases) if database else phases,
        suppress_health_check=tuple(HealthCheck),
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(with_seed(seed)(Node), settings=profile)
    except OutOfTimeError:
        search.cut_short()
    except (ExampleFailedError, _EnoughError):
        pass
    except (Flaky, BaseExceptionGroup):
        search.interrupts.check()
        # The repeated calls got different answers, or the calls themselves differed.
        if not search.failures:
            raise
    except Exception:
        search.interrupts.check()
        raise
