"""The contents of a report about a failure, the same for all formats."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numaproof.inputs.plurals import plural
from numaproof.protocol import events
from numaproof.reports.sources import citation
from numaproof.reports.untrusted_text import one_line, visible, whole_line
from numaproof.reports.values import Difference, compact, differences, without_machine
from numaproof.reports.wording import SYMBOLS, baseline_text, problem_lines, short_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reports.summary import Summary


BROKEN: frozenset[events.Outcome] = frozenset({"fault", "crash", "time-out", "protocol error"})
"""Outcomes with a broken program; it broke in the last call of the run."""


_SIDE = 80
"""Maximum length of an expected or actual value in the cause of a failure."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed case run, or a divergence found by fuzzing.

    `name` is the case's id, or empty for a divergence. `machine_info` is None if the stream does
    not describe the machine. Requirements that are not in the registry have a note instead of a
    statement; `documents` are those that the run cites, by key. `violates_own` indicates that the
    answers violated a requirement of the case itself.
    """

    name: str
    title: str
    machine: str
    area: str
    outcome: events.Outcome
    message: str
    requirements: tuple[events.ReportedRequirement, ...]
    steps: tuple[events.ReportedCall, ...]
    pictures: tuple[events.Picture, ...]
    stderr: str
    machine_info: MachineInfo | None
    defect: str | None = None
    file: str | None = None
    reproduce: str = ""
    baseline_divergence: events.BaselineDivergence | None = None
    signature: str = ""
    finding: events.ReportedFinding | None = None
    case_text: str = ""
    violates_own: bool = False
    violated_ids: tuple[str, ...] = ()
    documents: Mapping[str, events.ReportedDocument] = field(default_factory=dict)

    @property
    def sentence(self) -> events.Sentence:
        """The message as a sentence."""
        return events.sentence_of(self.message, self.finding)

    @property
    def extra_sentence(self) -> events.Sentence:
        """The message; empty if the title already contains it."""
        return "" if self.title.startswith(events.headline(self.sentence)) else self.sentence

    @property
    def cause(self) -> str:
        """What went wrong, with the start of the expected and the actual value, on one line."""
        sentence = self.sentence
        if isinstance(sentence, str):
            text = whole_line(sentence) or self.title
            at_fault = self.outcome == "fault" and self.steps
            return f"fault at {self.steps[-1].operation}: {text}" if at_fault else text
        sides = (one_line(side, _SIDE) for side in (sentence.expected, sentence.actual))
        return whole_line(sentence.what) + ": expected {}, got {}".format(*sides)

    @property
    def log_name(self) -> str:
        """The heading of `stderr`, which contains the stack trace after a fault."""
        return "Trace" if self.outcome == "fault" else "Standard error"


@dataclass(frozen=True, slots=True)
class BadStep:
    """A call that is part of a failure; `number` counts from 1."""

    number: int
    step: events.ReportedCall
    differences: tuple[Difference, ...]
    """The differences from the expected answer that the problems don't mention."""
    answer: str
    """The answer as JSON, or a note that there is none; empty if there are differences."""


@dataclass(frozen=True, slots=True)
class HarnessStep:
    """A change that the harness made to the node before call `number`."""

    number: int
    deed: str

    def __str__(self) -> str:
        return f"Before step {self.number}, numaproof {self.deed}"


def failure_of(summary: Summary, event: events.CaseFinished | events.DivergenceFound) -> Failure:
    """Returns the failure of a case run or a divergence."""
    both = {name: getattr(event, name) for name in _OF_BOTH.split()}
    both["documents"] = summary.start.documents if summary.start else {}
    if isinstance(event, events.CaseFinished):
        machines = summary.start.machines if summary.start else {}
        return Failure(
            name=event.case,
            machine=event.machine,
            area=summary.area(event),
            requirements=summary.find_requirements(event.broken_requirements),
            machine_info=machines.get(event.machine),
            defect=event.defect,
            violates_own=event.violates_own,
            violated_ids=event.violated_requirements,
            **both,
        )
    return Failure(
        name="",
        machine="generated",
        area=summary.kind,
        requirements=summary.find_requirements(event.requirements),
        machine_info=event.machine,
        file=event.file,
        **both,
    )


_OF_BOTH = (
    "title outcome message steps pictures stderr reproduce baseline_divergence signature finding"
    " case_text"
)
"""The fields that case runs and divergences share with `Failure`."""


def all_failures(summary: Summary) -> tuple[Failure, ...]:
    """Returns all failures of a run: case runs, then divergences, each in order."""
    found = (one for one in summary.divergences if one.outcome not in events.GOOD)
    failed: tuple[events.CaseFinished | events.DivergenceFound, ...] = (*summary.failures, *found)
    return tuple(failure_of(summary, one) for one in failed)


def step_differences(step: events.ReportedCall) -> tuple[Difference, ...]:
    """Returns the differences from a step's expected answer, if it has one."""
    if step.expected is None:
        return ()
    return differences(step.expected, step.answer if step.answer is not None else {})


def bad_steps(failure: Failure) -> Iterator[BadStep]:
    """Yields the calls with wrong answers, and the last call if the program broke."""
    for number, step in enumerate(failure.steps, 1):
        broke = failure.outcome in BROKEN and number == len(failure.steps)
        # If there is no answer, listing every missing field would not help.
        found = () if broke and step.answer is None else step_differences(step)
        if step.problems or found or broke:
            more = tuple(one for one in found if not _is_reported(one, step))
            yield BadStep(number, step, more, "" if found else _answer(failure, step))


def _is_reported(difference: Difference, step: events.ReportedCall) -> bool:
    return any(difference.path == one.rule for one in step.findings)


def story_steps(failure: Failure) -> Iterator[BadStep | HarnessStep]:
    """Yields the bad calls and the harness's actions, in order."""
    bad = {one.number: one for one in bad_steps(failure)}
    for number, step in enumerate(failure.steps, 1):
        yield from (HarnessStep(number, deed) for deed in step.before)
        if number in bad:
            yield bad[number]


def _answer(failure: Failure, step: events.ReportedCall) -> str:
    none = "(none valid)" if failure.outcome == "protocol error" else "(none)"
    return none if step.answer is None else compact(step.answer)


def plain_story(failure: Failure) -> str:
    """Formats a failure as plain text: message, requirements, bad steps, and reproduction."""
    return "\n".join([*_extra_lines(failure), *_heading(failure), *_events(failure)])


def plain_events(failure: Failure) -> str:
    """Formats a failure like `plain_story`, but without the title and the requirements."""
    return "\n".join([*_extra_lines(failure), *_events(failure)])


def _extra_lines(failure: Failure) -> tuple[str, ...]:
    return problem_lines(failure.extra_sentence) if failure.extra_sentence else ()


def _heading(failure: Failure) -> Iterator[str]:
    yield failure.title
    main, others = split_requirements(failure)
    for requirement in main:
        yield f"Requirement {requirement.id}: {requirement.statement}"
        if requirement.document:
            yield f"  {citation(requirement, failure.documents)}"
    if others:
        yield others


_MAX_REQUIREMENTS = 3


def split_requirements(failure: Failure) -> tuple[tuple[events.ReportedRequirement, ...], str]:
    """Returns the requirements to state, and a line about the others of the case, if any.

    Those to state are the violated ones or, if they are unknown, the first few.
    """
    every = failure.requirements
    main = tuple(one for one in every if one.id in failure.violated_ids)
    main = main or every[:_MAX_REQUIREMENTS]
    others = [one.id for one in every if one not in main]
    return main, f"The case also tests {', '.join(others)}." if others else ""


def _events(failure: Failure) -> Iterator[str]:
    for bad in story_steps(failure):
        if isinstance(bad, HarnessStep):
            yield str(bad)
            continue
        step = bad.step
        yield f"Step {bad.number}: {step.operation} {compact(without_machine(step.args))}"
        yield from (f"  {line}" for one in step.sentences for line in problem_lines(one))
        for difference in bad.differences:
            yield f"  {difference.path}"
            yield f"    {'expected':8} {difference.expected}"
            yield f"    {'got':8} {difference.actual}"
        if bad.answer:
            yield f"  answer {bad.answer}"
    if failure.baseline_divergence:
        yield f"Before: {baseline_text(failure.baseline_divergence)}"
    if failure.file:
        yield f"Case file: {failure.file}"
    if failure.reproduce:
        yield f"Reproduce: {failure.reproduce}"


_WIDEST = 500
"""Maximum length of a line."""

_TRACE = re.compile(
    r"Traceback \(most recent call last\)|panic: |fatal error: |Exception in thread "
    r"|thread '.*' panicked at |(?:Uncaught )?[\w.$]*(?:Error|Exception)\b"
)
"""The start of a trace in Python, Go, Java, Rust and JavaScript."""


def both_ends(log: str, most: int) -> str:
    """Returns up to about `most` lines of a log, with hidden characters made visible.

    The cause of a crash is at the start of the trace in some languages and at the end in others.
    For longer logs, returns the start of the trace and the end of the log, with a note about the
    omitted lines.
    """
    lines = [_shorten_line(line) for line in visible(log).strip("\n").split("\n")]
    if len(lines) <= most:
        return "\n".join(lines)
    starts = (number for number, line in enumerate(lines) if _TRACE.match(line))
    start = next(starts, 0)
    half = most // 2
    shown = [f"… {plural(start, 'line')} before …"] if start else []
    rest = lines[start:]
    if len(rest) > most:
        left = len(rest) - 2 * half
        rest = [*rest[:half], f"… {plural(left, 'line')} between …", *rest[-half:]]
    return "\n".join([*shown, *rest])


def _shorten_line(line: str) -> str:
    half = _WIDEST // 2
    return line if len(line) <= _WIDEST else f"{line[:half]} … {line[-half:]}"


_VALUE = 300
"""Maximum length of a call's arguments or answer in a transcript."""

_MANIFEST = ("uid", "name", "namespace")


def transcript(run: events.CaseFinished) -> Iterator[str]:
    """Yields lines that show a case run call by call.

    `run` must include its steps; see `numaproof.conformance.check`.
    """
    yield f"{run.case} on {run.machine}: {run.title}"
    for number, step in enumerate(run.steps, 1):
        yield from (f"     numaproof {one_line(deed, _VALUE)}" for deed in step.before)
        yield f"{number:>4} {step.operation} {_short(_arguments(step))}"
        answer = "no answer" if step.answer is None else _short(step.answer)
        yield f"     {answer}"
        for problem in step.sentences:
            first, *sides = short_lines(problem, _VALUE)
            yield f"     {SYMBOLS['fail']} {first}"
            yield from (f"       {line}" for line in sides)
    defect = f" ({run.defect})" if run.defect else ""
    is_shown = any(run.message in step.problems for step in run.steps)
    message_of_run = "" if is_shown else events.sentence_of(run.message, run.finding)
    first, *sides = short_lines(message_of_run, _VALUE)
    message = f": {first}" if first else ""
    side = f", {baseline_text(run.baseline_divergence)}" if run.baseline_divergence else ""
    yield f"  {SYMBOLS[run.outcome]} {run.outcome}{defect}{side}{message}"
    yield from (f"    {line}" for line in sides)


def _arguments(step: events.ReportedCall) -> dict[str, Any]:
    args = without_machine(step.args)
    pods = args.get("pods")
    if isinstance(pods, list) and pods:
        args["pods"] = [_name(pod) for pod in pods]
    return args


def _name(pod: Any) -> str:
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    known = metadata if isinstance(metadata, dict) else {}
    return next((str(known[key]) for key in _MANIFEST if key in known), "?")


def _short(value: Any) -> str:
    return one_line(compact(value), _VALUE)
