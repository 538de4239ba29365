"""What tests call to play scenarios and cases on the program, with readable failures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import hypothesis
import msgspec
import pytest

from numaproof.conformance.cases import naming, releases, writing
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.execution.harness_run import HarnessRun
from numaproof.conformance.execution.machines import GivenMachine
from numaproof.conformance.execution.runner import SelectedCase, run_case
from numaproof.conformance.fuzzing import strategies
from numaproof.conformance.known_failures import entries
from numaproof.conformance.requirements import load_registry
from numaproof.protocol.events import GOOD, CaseFinished, headline, sentence_of
from numaproof.reports.story import transcript
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import strategies as st

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.execution.run import Target


class Checker:
    """Plays on one implementation.

    Attributes:
        target: the implementation, and the release and level it is tested for.
        known_failures: the failures that are known.
    """

    def __init__(self, target: Target, known_failures: entries.KnownFailures) -> None:
        self.target = target
        self.known_failures = known_failures

    @property
    def capabilities(self) -> Capabilities:
        """What the implementation supports, for strategies that generate only that."""
        return self.target.capabilities

    def scenarios(self) -> st.SearchStrategy[Case]:
        """Scenarios of what it supports: `numaproof.conformance.fuzzing.strategies.scenarios`."""
        return strategies.scenarios(self.capabilities)

    def play(self, scenario: Case) -> None:
        """Plays a scenario that defines its machine.

        If it needs something that the implementation does not support, Hypothesis tries another.

        Raises:
            AssertionError: an invariant is broken, an expectation is not met, an answer differs
                from the reference's at the claimed level, or there is no answer.
        """
        __tracebackhide__ = True
        if scenario.machine is None:
            raise ValueError(
                f"{scenario.id} defines no machine; use the marker numaproof to choose one"
            )
        self._check(SelectedCase(scenario, GivenMachine(scenario.machine)), self._judge_scenario)

    def check(self, selected_case: SelectedCase) -> None:
        """Plays a case on a machine: the value of `numaproof_case`.

        A case that does not apply is skipped; one that fails because of a known defect of the
        kubelet is an expected failure, and so is a known failure.

        Raises:
            AssertionError: as for `play`, and where what an entry names alone fails no more.
        """
        __tracebackhide__ = True
        self._check(selected_case, self._judge)

    def _check(
        self, selected_case: SelectedCase, judge: Callable[[CaseFinished, Case], CaseFinished]
    ) -> None:
        __tracebackhide__ = True
        case, target = selected_case.case, self.target
        if not applies(case.level, target.level):
            pytest.skip(f"{case.id} is of level {case.level}, {target.level} is claimed")
        if not releases.includes(case.kubernetes, target.kubernetes):
            pytest.skip(f"{case.id} is for Kubernetes {case.kubernetes}, not {target.kubernetes}")
        with scratch_folder() as scratch:
            harness_run = HarnessRun(target, load_registry(), "", "")
            played = run_case(selected_case, harness_run, scratch / "run", every_call=True)
        finished = judge(played, case)
        if played.outcome == "unsupported":
            if hypothesis.currently_in_test_context():
                hypothesis.reject()
            pytest.skip(played.message)
        if finished.outcome in ("expected failure", entries.KNOWN):
            if not hypothesis.currently_in_test_context():
                message = headline(sentence_of(finished.message, finished.finding))
                pytest.xfail(f"{played.defect or entries.KNOWN}: {message}")
        elif played.outcome not in GOOD:
            raise AssertionError(_failure(finished, selected_case, played))

    def _judge_scenario(self, case_run: CaseFinished, case: Case) -> CaseFinished:
        """The same of a scenario, which an entry may name as such, with its cause.

        Scenarios differ, so an entry with another cause says nothing about one that is generated.
        """
        known = (
            self.known_failures.judge_scenario(case_run)
            if case_run.outcome not in GOOD
            else case_run
        )
        is_known = known.outcome == entries.KNOWN or case.id == entries.SCENARIO
        return known if is_known else self._judge(case_run, case)

    def _judge(self, case_run: CaseFinished, case: Case) -> CaseFinished:
        """A case run as it counts by what is known.

        Raises:
            AssertionError: an entry is about this run alone, which does not fail as it says.
        """
        known = replace(self.known_failures, names={case.id: naming.names(case)})
        judged = known.judge(case_run)
        for missing in known.missing(0.0):
            raise AssertionError(missing.message)
        return judged


def _failure(judged_run: CaseFinished, selected_case: SelectedCase, case_run: CaseFinished) -> str:
    """What is wrong, the calls that lead there, and the case as a file to keep."""
    parts = [judged_run.message or judged_run.outcome, "\n".join(transcript(judged_run))]
    if case_run.stderr:
        parts.append(f"The end of its standard error:\n{case_run.stderr}")
    if selected_case.case.machine is not None:
        title = (
            headline(sentence_of(case_run.message, case_run.finding)) or selected_case.case.title
        )
        case = msgspec.structs.replace(selected_case.case, title=title)
        parts.append(f"As a case file, for `numaproof replay` and `promote`:\n{writing.text(case)}")
    return "\n\n".join(parts)
