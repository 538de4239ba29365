"""Everything that reports say about a failure, whatever the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.protocol.events import GOOD, headline, said
from numaproof.reports.values import Difference, compact, differences, without_machine
from numaproof.reports.wording import problem_lines, taken_side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.events import (
        CaseFinished,
        DivergenceFound,
        Outcome,
        Parted,
        Picture,
        ReportedCall,
        ReportedFinding,
        ReportedRequirement,
        Said,
    )
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reports.summary import Summary


BROKEN: frozenset[Outcome] = frozenset({"fault", "crash", "time-out", "protocol error"})
"""Outcomes in which the program broke; the last call of the run is the one that broke it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that did not pass on a machine, or a divergence that fuzzing found.

    `name` is the case's id, empty for a divergence; `drawn` is the machine if the stream describes
    it. Requirements missing from the registry say so.
    """

    name: str
    title: str
    machine: str
    area: str
    outcome: Outcome
    message: str
    requirements: tuple[ReportedRequirement, ...]
    steps: tuple[ReportedCall, ...]
    pictures: tuple[Picture, ...]
    stderr: str
    drawn: MachineInfo | None
    defect: str | None = None
    file: str | None = None
    reproduce: str = ""
    parted: Parted | None = None
    signature: str = ""
    finding: ReportedFinding | None = None

    @property
    def said(self) -> Said:
        """The message."""
        return said(self.message, self.finding)

    @property
    def news(self) -> Said:
        """The message, or empty if the title says the same; the sides stand at their step."""
        return "" if self.title.startswith(headline(self.said)) else self.said

    @property
    def log_name(self) -> str:
        """The heading of `stderr`, which holds the trace of a fault."""
        return "Trace" if self.outcome == "fault" else "Standard error"


@dataclass(frozen=True, slots=True)
class BadStep:
    """A call involved in a failure; `number` counts from 1."""

    number: int
    step: ReportedCall
    found: tuple[Difference, ...]
    """Where the answer differs from what was expected, without what the problems say."""
    answer: str
    """The answer as JSON or why there is none; empty if the differences say enough."""


@dataclass(frozen=True, slots=True)
class HarnessStep:
    """What the harness did to the node before a call; `number` is the call's."""

    number: int
    deed: str

    def __str__(self) -> str:
        return f"Before step {self.number}, numaproof {self.deed}"


def case_failure(summary: Summary, run: CaseFinished) -> Failure:
    """The failure of a case run."""
    machines = summary.started.machines if summary.started else {}
    return Failure(
        name=run.case,
        title=run.title,
        machine=run.machine,
        area=summary.area(run),
        outcome=run.outcome,
        message=run.message,
        requirements=summary.named(run.broken),
        steps=run.steps,
        pictures=run.pictures,
        stderr=run.stderr,
        drawn=machines.get(run.machine),
        defect=run.defect,
        reproduce=run.reproduce,
        parted=run.parted,
        signature=run.signature,
        finding=run.finding,
    )


def divergence_failure(summary: Summary, found: DivergenceFound) -> Failure:
    """The failure that a divergence is."""
    return Failure(
        name="",
        title=found.title,
        machine="generated",
        area=summary.kind,
        outcome=found.outcome,
        message=found.message,
        requirements=summary.named(found.requirements),
        steps=found.steps,
        pictures=found.pictures,
        stderr=found.stderr,
        drawn=found.machine,
        file=found.file,
        reproduce=found.reproduce,
        parted=found.parted,
        signature=found.signature,
        finding=found.finding,
    )


def all_failures(summary: Summary) -> tuple[Failure, ...]:
    """Every failure of a run: case runs first, then divergences, each in order."""
    return (
        *(case_failure(summary, run) for run in summary.failures),
        *(
            divergence_failure(summary, one)
            for one in summary.divergences
            if one.outcome not in GOOD
        ),
    )


def step_differences(step: ReportedCall) -> tuple[Difference, ...]:
    """The differences between a step's answer and what was expected; none if nothing was."""
    if step.expected is None:
        return ()
    return differences(step.expected, step.answer if step.answer is not None else {})


def bad_steps(failure: Failure) -> Iterator[BadStep]:
    """The calls with wrong answers, and the last call if the program broke in it."""
    for number, step in enumerate(failure.steps, 1):
        broke = failure.outcome in BROKEN and number == len(failure.steps)
        # Without an answer everything expected is missing, which is no information.
        found = () if broke and step.answer is None else step_differences(step)
        if step.problems or found or broke:
            more = tuple(one for one in found if not _is_said(one, step))
            yield BadStep(number, step, more, "" if found else _answer(failure, step))


def _is_said(difference: Difference, step: ReportedCall) -> bool:
    """Whether a problem of the step is about the same place."""
    return any(difference.path == one.rule for one in step.findings)


def told_steps(failure: Failure) -> Iterator[BadStep | HarnessStep]:
    """What a failure is told by, in order: the bad calls, and what the harness did meanwhile."""
    bad = {one.number: one for one in bad_steps(failure)}
    for number, step in enumerate(failure.steps, 1):
        yield from (HarnessStep(number, deed) for deed in step.before)
        if number in bad:
            yield bad[number]


def _answer(failure: Failure, step: ReportedCall) -> str:
    if step.answer is not None:
        return compact(step.answer)
    return "(none valid)" if failure.outcome == "protocol error" else "(none)"


def plain_story(failure: Failure) -> str:
    """The failure as plain text: message, requirements, bad steps, how to reproduce it."""
    return "\n".join([*_heading(failure), *_events(failure)])


def plain_events(failure: Failure) -> str:
    """The same without title and requirements, which some formats show differently."""
    return "\n".join([*(problem_lines(failure.news) if failure.news else ()), *_events(failure)])


def _heading(failure: Failure) -> Iterator[str]:
    if failure.news:
        yield from problem_lines(failure.news)
    yield failure.title
    for requirement in failure.requirements:
        yield f"Requirement {requirement.id}: {requirement.statement}"
        if requirement.document:
            yield f"  {source(requirement)}"


def _events(failure: Failure) -> Iterator[str]:
    for bad in told_steps(failure):
        if isinstance(bad, HarnessStep):
            yield str(bad)
            continue
        step = bad.step
        yield f"Step {bad.number}: {step.operation} {compact(without_machine(step.args))}"
        yield from (f"  {line}" for one in step.said for line in problem_lines(one))
        for difference in bad.found:
            yield f"  {difference.path}"
            yield f"    {'expected':8} {difference.expected}"
            yield f"    {'got':8} {difference.got}"
        if bad.answer:
            yield f"  answer {bad.answer}"
    if failure.parted:
        yield f"Before: {taken_side(failure.parted)}"
    if failure.file:
        yield f"Case file: {failure.file}"
    if failure.reproduce:
        yield f"Reproduce: {failure.reproduce}"


def source(requirement: ReportedRequirement) -> str:
    """Where a requirement is written: its document and section."""
    return ", ".join(one for one in (requirement.document, requirement.section) if one)
