"""Condenses the events of a run, or the journal of a campaign, into board data."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Literal

import msgspec
import yaml

from numaproof.protocol.campaign import CampaignPlanned, ScenarioFailed, UnitFinished
from numaproof.protocol.events import CaseFinished, DivergenceFound, RunEnded, RunStarted, headline
from numaproof.protocol.machine import MachineInfo
from numaproof.reports.board import data
from numaproof.reports.board.data import MAX_LINE, MAX_NAME, MAX_PARAGRAPH
from numaproof.reports.groups import group_failures
from numaproof.reports.story import BROKEN, all_failures, failure_of
from numaproof.reports.summary import summarize
from numaproof.reports.untrusted_text import one_line, shorten
from numaproof.reports.values import group_values, without_machine
from numaproof.reports.wording import release_and_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numaproof.protocol.campaign import CampaignEvent, Configuration, UnitEvent
    from numaproof.protocol.events import AnyEvent, ReportedRequirement
    from numaproof.reports.groups import FailureGroup
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import OutcomeTally, Summary

    CaseText = Callable[[str], str]
    """Returns the file of a case or finding by name; empty if there is none."""


DISCOVERY = "Discovery"
"""The area of requirements on the discovery of machines."""

MAX_FINDINGS = 200
_SIGNATURES = 20
_CHOOSING = ("--machine", "--select", "--exclude")
_QUICK = "--quick"
_CLAIMS = 40


def run_data(summary: Summary, folder: str, text_of: CaseText) -> data.RunData:
    """Returns the board data of a run.

    Args:
        summary: the run, which must have a start event.
        folder: the name for an implementation that did not answer `hello`.
        text_of: returns the text of the case file, given a bundled case's id or a finding's file
            name.
    """
    started = summary.start
    assert started is not None
    release, _ = release_and_level(started)
    findings = _findings(summary, text_of)
    discovered = group_values(
        (_name(run.machine), run.outcome) for run in summary.runs if summary.area(run) == DISCOVERY
    )
    return data.RunData(
        kind=started.kind,
        author=_author(summary, folder),
        kubernetes=_name(release),
        level=started.level,
        numaproof=_name(started.numaproof),
        outcomes=dict(summary.tally.counts),
        requirements=_plain(summary.by_requirement),
        machines=_plain(summary.machines),
        discovery={name: dict(Counter(of)) for name, of in discovered.items()},
        sizes={_name(name): _size(machine) for name, machine in started.machines.items()},
        findings=findings[:MAX_FINDINGS],
        gaps=tuple(one_line(gap, MAX_LINE) for gap in _gaps(summary)),
        left_out=max(0, len(findings) - MAX_FINDINGS),
        date=_date_of(started),
        bound=tuple(one_line(sentence, MAX_LINE) for sentence in started.bound),
    )


def _date_of(start: RunStarted) -> str:
    """Returns the day on which a run started; empty if it is unknown, as for a campaign."""
    day = start.origin.date[:10] if start.origin else ""
    return day if data.DATE.fullmatch(day) else ""


def _name(text: str) -> str:
    return one_line(text, MAX_NAME)


def _author(summary: Summary, folder: str) -> data.Author:
    who = summary.start.implementation if summary.start else None
    if who is None:
        return data.Author(_name(folder), "unknown", "unknown")
    return data.Author(
        name=_name(who.name) or "unnamed",
        version=_name(who.version) or "unknown",
        language=_name(who.language),
        operations=tuple(map(_name, who.operations[:_CLAIMS])),
        homepage=(who.homepage or "")[:MAX_LINE],
        discovers=who.discovers and tuple(map(_name, who.discovers[:_CLAIMS])),
    )


def _gaps(summary: Summary) -> Iterator[str]:
    if summary.start and summary.start.implementation is None:
        yield "The program did not answer hello."
    if summary.start and (chosen := _selection_options(summary.start.command)):
        yield f"Only part of the suite was selected: {chosen}"
    yield from summary.gaps


def _selection_options(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    found: list[str] = []
    for word, after in zip(words, [*words, ""][1:], strict=True):
        option, _, value = word.partition("=")
        if option in _CHOOSING:
            found += [option, value or after]
        elif option == _QUICK:
            found.append(option)
    return shlex.join(found)


def _plain(tallies: Mapping[str, OutcomeTally]) -> dict[str, data.Tally]:
    return {_name(name): dict(tally.counts) for name, tally in tallies.items()}


def _size(machine: MachineInfo) -> data.MachineSize:
    nodes = machine.topology or ()
    sockets = {core.socket_id for node in nodes for core in node.cores or ()}
    return data.MachineSize(machine.num_cores, len(nodes), len(sockets))


def _findings(summary: Summary, text_of: CaseText) -> tuple[data.BoardFinding, ...]:
    """Returns all findings, each with its smallest case; unexplained ones come first."""
    met: tuple[CaseFinished | DivergenceFound, ...]
    met = (*summary.known_failures, *summary.known_examples)
    made = [
        _finding("crash" if group.first.outcome in BROKEN else "failed", "", (group,), text_of)
        for group in group_failures(all_failures(summary))
    ]
    for reason, known in group_values((one.reason or one.message, one) for one in met).items():
        alike = group_failures(failure_of(summary, one) for one in known)
        made.append(_finding(*data.kind_of(reason), alike, text_of))
    expected = group_values((run.defect or "", run) for run in summary.expected_failures)
    for defect, runs in expected.items():
        alike = group_failures(failure_of(summary, run) for run in runs)
        made.append(_finding("expected", defect, alike, text_of))
    return tuple(made)


def _finding(
    kind: data.Kind, reason: str, groups: Sequence[FailureGroup], text_of: CaseText
) -> data.BoardFinding:
    """Returns a finding for failures with the same reason; `groups` starts with the largest."""
    first = groups[0].first
    text = text_of(first.name or _file_name(first.file)) if kind != "expected" else ""
    played = not text and kind != "expected"
    named: Counter[str] = Counter()
    for group in groups:
        named.update(group.signatures)
    shown = [*named.items()][:_SIGNATURES]
    return data.BoardFinding(
        kind=kind,
        outcome=first.outcome,
        title=one_line(first.title, MAX_LINE),
        signatures={one_line(name, MAX_LINE): count for name, count in shown},
        reason=one_line(reason, MAX_PARAGRAPH),
        message="" if kind == "expected" else one_line(_message(first, reason), MAX_PARAGRAPH),
        case=_name(first.name),
        machine=_name(first.machine) if first.name else "",
        text=shorten(_calls_text(first) if played else text, data.MAX_TEXT),
        has_calls=played,
        requirements=tuple(_name(one.id) for one in first.requirements),
        cases=_cases(one for group in groups for one in (group.first, *group.others)),
    )


def _message(failure: Failure, reason: str) -> str:
    """Returns the failure's message, excluding the leading reason of known failures."""
    message = headline(failure.sentence)
    _, _, rest = message.partition(f"{reason}: ") if reason else ("", "", "")
    return rest or message


def _file_name(path: str | None) -> str:
    return path.replace("\\", "/").rpartition("/")[2] if path else ""


def _calls_text(failure: Failure) -> str:
    calls = [{one.operation: without_machine(one.args)} for one in failure.steps]
    if not calls:
        return ""
    return yaml.safe_dump(calls, sort_keys=False, allow_unicode=True, width=100)


def _cases(failures: Iterable[Failure]) -> tuple[data.FoundIn, ...]:
    found = group_values((_where(one), _name(one.machine)) for one in failures if one.name)
    return tuple(
        msgspec.structs.replace(where, machines=tuple(sorted(machines)))
        for where, machines in found.items()
    )


def _where(failure: Failure) -> data.FoundIn:
    return data.FoundIn(
        case=_name(failure.name),
        outcome=failure.outcome,
        machines=(),
        requirements=tuple(_name(row.id) for row in failure.requirements),
        discovers=failure.area == DISCOVERY,
        signature=one_line(failure.signature, MAX_LINE),
    )


_UNFINISHED = "The campaign is not finished; run the same command to resume it."

_NO_MACHINE = MachineInfo(0, 0, 0, 0, (), ())


class _ConfigurationResults:
    def __init__(self) -> None:
        self.cases: list[CaseFinished] = []
        self.shrunk_divergences: list[DivergenceFound] = []
        self.failed_scenarios: dict[str, ScenarioFailed] = {}
        self.shrunk_signatures: set[str] = set()
        self.scenarios: Counter[str] = Counter()

    def add(self, unit: Iterable[UnitEvent], unit_end: UnitFinished) -> None:
        for event in unit:
            if isinstance(event, CaseFinished):
                self.cases.append(event)
            elif isinstance(event, ScenarioFailed):
                self.failed_scenarios.setdefault(event.signature, event)
            elif isinstance(event, DivergenceFound):
                self.shrunk_divergences.append(event)
        if unit_end.signature:
            self.shrunk_signatures.add(unit_end.signature)
        elif "/seeds/" in unit_end.unit:
            self.scenarios.update(unit_end.outcomes)

    def divergences(self) -> Iterator[DivergenceFound]:
        """Yields the shrunk divergences, then the first failure of each unshrunk cause."""
        yield from self.shrunk_divergences
        for signature, one in self.failed_scenarios.items():
            if signature not in self.shrunk_signatures:
                yield DivergenceFound(
                    at=one.at,
                    title=f"Scenario of seed {one.seed}",
                    outcome=one.outcome,
                    message=one.message,
                    finding=one.finding,
                    machine=_NO_MACHINE,
                    steps=(),
                    signature=signature,
                    reason=one.reason,
                )


def summaries(
    events: Iterable[CampaignEvent], registry: tuple[ReportedRequirement, ...]
) -> Iterator[Summary]:
    """Turns a campaign's journal into summaries of runs; ignores unfinished units.

    Args:
        events: the journal, which starts with the plan.
        registry: the requirements, which a journal mentions only by id.
    """
    plan: CampaignPlanned | None = None
    played: defaultdict[Configuration, _ConfigurationResults] = defaultdict(_ConfigurationResults)
    unit: list[UnitEvent] = []
    done = 0
    ended: RunEnded | None = None
    for event in events:
        match event:
            case CampaignPlanned():
                plan = plan or event
            case UnitFinished():
                played[event.configuration].add(unit, event)
                unit, done = [], done + (not event.signature)
            case RunEnded():
                unit, ended = [], event
            case _:
                unit.append(event)
    if plan is None:
        return
    complete = ended is not None and ended.complete and done >= plan.units
    message = "" if complete else f"{_UNFINISHED} {ended.message if ended else ''}".rstrip()
    for configuration in plan.configurations:
        one = played[configuration]
        started = RunStarted(
            at=0.0,
            kind="check",
            numaproof=plan.numaproof,
            kubernetes=configuration.kubernetes,
            level=configuration.level,
            command="",
            total=0,
            machines={},
            requirements=registry,
            implementation=plan.implementation,
        )
        if one.cases or not (plan.runs == 0 or complete):
            runs = sorted(one.cases, key=lambda run: (run.case, run.machine))
            yield summarize(
                _events(started, "check", Counter(run.outcome for run in runs), runs, message)
            )
        if one.scenarios:
            found = sorted(
                one.divergences(), key=lambda divergence: (divergence.signature, divergence.title)
            )
            yield summarize(_events(started, "fuzz", one.scenarios, found, message))


def _events(
    start: RunStarted,
    kind: Literal["check", "fuzz"],
    outcomes: Counter[str],
    results: Iterable[AnyEvent],
    incomplete_reason: str,
) -> Iterator[AnyEvent]:
    """Yields the events of a run; `incomplete_reason` is empty for a complete run."""
    yield msgspec.structs.replace(start, kind=kind, total=outcomes.total())
    yield from results
    yield RunEnded(
        at=0.0, complete=not incomplete_reason, outcomes=dict(outcomes), message=incomplete_reason
    )
