"""Runs scenarios and cases against the program for tests, with readable failures."""

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
    """Runs scenarios and cases against one implementation.

    Attributes:
        target: the implementation, with the tested release and level.
        known_failures: known failures.
    """

    def __init__(self, target: Target, known_failures: entries.KnownFailures) -> None:
        self.target = target
        self.known_failures = known_failures

    @property
    def capabilities(self) -> Capabilities:
        """The implementation's capabilities, for strategies that generate only supported values."""
        return self.target.capabilities

    def scenarios(self) -> st.SearchStrategy[Case]:
        """Returns a strategy for supported scenarios (see `strategies.scenarios`)."""
        return strategies.scenarios(self.capabilities)

    def play(self, scenario: Case) -> None:
        """Runs a scenario that defines its machine.

        If it needs an unsupported feature, Hypothesis tries another one.

        Raises:
            AssertionError: an invariant is broken, an expectation is not met, an answer differs
                from the reference's at the claimed level, or an answer is missing.
        """
        __tracebackhide__ = True
        if scenario.machine is None:
            raise ValueError(
                f"{scenario.id} defines no machine; use the `numaproof` marker to choose one"
            )
        self._check(SelectedCase(scenario, GivenMachine(scenario.machine)), self._judge_scenario)

    def check(self, selected_case: SelectedCase) -> None:
        """Runs a case on a machine, given as the value of `numaproof_case`.

        Cases that do not apply are skipped. Known failures, and failures caused by a known defect
        of the kubelet, are expected failures.

        Raises:
            AssertionError: as for `play`, or a known failure did not occur.
        """
        __tracebackhide__ = True
        self._check(selected_case, self._judge)

    def _check(
        self, selected_case: SelectedCase, judge: Callable[[CaseFinished, Case], CaseFinished]
    ) -> None:
        __tracebackhide__ = True
        case, target = selected_case.case, self.target
        if not applies(case.level, target.level):
            pytest.skip(
                f"{case.id} is for level {case.level}, but the program claims {target.level}"
            )
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
        """Reclassifies a failed scenario if an entry matches its signature.

        Generated scenarios differ, so entries with other signatures do not apply to them.
        """
        known = (
            self.known_failures.judge_scenario(case_run)
            if case_run.outcome not in GOOD
            else case_run
        )
        is_known = known.outcome == entries.KNOWN or case.id == entries.SCENARIO
        return known if is_known else self._judge(case_run, case)

    def _judge(self, case_run: CaseFinished, case: Case) -> CaseFinished:
        """Reclassifies a case run if an entry matches it.

        Raises:
            AssertionError: an entry covers only this run, which did not fail as expected.
        """
        known = replace(self.known_failures, names={case.id: naming.names(case)})
        judged = known.judge(case_run)
        for missing in known.missing(0.0):
            raise AssertionError(missing.message)
        return judged


def _failure(judged_run: CaseFinished, selected_case: SelectedCase, case_run: CaseFinished) -> str:
    """Formats a failure: the message, the calls, and the case as a file to keep."""
    parts = [judged_run.message or judged_run.outcome, "\n".join(transcript(judged_run))]
    if case_run.stderr:
        parts.append(f"End of the program's standard error:\n{case_run.stderr}")
    if selected_case.case.machine is not None:
        title = (
            headline(sentence_of(case_run.message, case_run.finding)) or selected_case.case.title
        )
        case = msgspec.structs.replace(selected_case.case, title=title)
        parts.append(f"Case file for `numaproof replay` and `promote`:\n{writing.text(case)}")
    return "\n\n".join(parts)
