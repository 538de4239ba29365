"""Events become the board data of a run; the journal of a campaign, streams of events."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec
import yaml

from numaproof.protocol.campaign import CampaignPlanned, ScenarioFailed, UnitFinished
from numaproof.protocol.events import (
    CaseFinished,
    DivergenceFound,
    RunEnded,
    RunStarted,
    headline,
)
from numaproof.protocol.machine import MachineInfo
from numaproof.reports.board.data import (
    MOST_LINE,
    MOST_NAME,
    MOST_PARAGRAPH,
    MOST_TEXT,
    Author,
    BoardFinding,
    FoundIn,
    MachineSize,
    RunData,
    kind_of,
)
from numaproof.reports.groups import grouped
from numaproof.reports.story import BROKEN, all_failures, failure_of
from numaproof.reports.summary import summarize
from numaproof.reports.untrusted import one_line, shortened
from numaproof.reports.values import collected, without_machine
from numaproof.reports.wording import claimed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numaproof.protocol.campaign import CampaignEvent, Configuration, UnitEvent
    from numaproof.protocol.events import AnyEvent, ReportedRequirement
    from numaproof.reports.board.data import Kind, Tally
    from numaproof.reports.groups import FailureGroup
    from numaproof.reports.story import Failure
    from numaproof.reports.summary import OutcomeTally, Summary

    CaseText = Callable[[str], str]
    """The file of the case, or the finding, with a name; empty where there is none."""


DISCOVERY = "Discovery"
"""The area of the requirements on what is found out about a machine."""

MOST_FINDINGS = 200
_SIGNATURES = 20
_CHOOSING = ("--machine", "--select", "--exclude")
_QUICK = "--quick"
_CLAIMS = 40


def run_data(summary: Summary, folder: str, text_of: CaseText) -> RunData:
    """The board data of a run.

    Args:
        summary: the run; it has a beginning.
        folder: what to call an implementation that did not say who it is.
        text_of: gives the file of a bundled case by its id, or of a finding by its file's name.
    """
    started = summary.started
    assert started is not None
    release, _ = claimed(started)
    findings = _findings(summary, text_of)
    return RunData(
        kind=started.kind,
        author=_author(summary, folder),
        kubernetes=_name(release),
        level=started.level,
        numaproof=_name(started.numaproof),
        outcomes=dict(summary.tally.counts),
        requirements=_plain(summary.by_requirement),
        machines=_plain(summary.machines),
        discovery=_discovery(summary),
        sizes={_name(name): _size(machine) for name, machine in started.machines.items()},
        findings=findings[:MOST_FINDINGS],
        gaps=tuple(one_line(gap, MOST_LINE) for gap in _gaps(summary)),
        left_out=max(0, len(findings) - MOST_FINDINGS),
    )


def _name(text: str) -> str:
    return one_line(text, MOST_NAME)


def _author(summary: Summary, folder: str) -> Author:
    who = summary.started.implementation if summary.started else None
    if who is None:
        return Author(_name(folder), "unknown", "unknown")
    return Author(
        name=_name(who.name) or "unnamed",
        version=_name(who.version) or "unknown",
        language=_name(who.language),
        operations=tuple(map(_name, who.operations[:_CLAIMS])),
        homepage=(who.homepage or "")[:MOST_LINE],
        discovers=who.discovers and tuple(map(_name, who.discovers[:_CLAIMS])),
    )


def _gaps(summary: Summary) -> Iterator[str]:
    if summary.started and summary.started.implementation is None:
        yield "The program did not answer hello."
    if summary.started and (chosen := _chosen(summary.started.command)):
        yield f"Only a part was asked for: {chosen}"
    yield from summary.gaps


def _chosen(command: str) -> str:
    """The options of a command line that leave something out."""
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


def _plain(tallies: Mapping[str, OutcomeTally]) -> dict[str, Tally]:
    return {_name(name): dict(tally.counts) for name, tally in tallies.items()}


def _discovery(summary: Summary) -> dict[str, Tally]:
    found: dict[str, Tally] = {}
    for run in summary.runs:
        if summary.area(run) == DISCOVERY:
            of_machine = found.setdefault(_name(run.machine), {})
            of_machine[run.outcome] = of_machine.get(run.outcome, 0) + 1
    return found


def _size(machine: MachineInfo) -> MachineSize:
    nodes = machine.topology or ()
    sockets = {core.socket_id for node in nodes for core in node.cores or ()}
    return MachineSize(machine.num_cores, len(nodes), len(sockets))


def _findings(summary: Summary, text_of: CaseText) -> tuple[BoardFinding, ...]:
    """All findings, each with its smallest case; those that nobody accounts for come first."""
    failures = grouped(all_failures(summary))
    met: tuple[CaseFinished | DivergenceFound, ...]
    met = (*summary.known_failures, *summary.known_examples)
    known = collected((one.reason or one.message, failure_of(summary, one)) for one in met)
    expected = collected(
        (run.defect or "", failure_of(summary, run)) for run in summary.expected_failures
    )
    made = [
        _finding("crash" if group.first.outcome in BROKEN else "failed", "", group, text_of)
        for group in failures
    ]
    for reason, several in known.items():
        kind, said = kind_of(reason)
        made.append(_finding(kind, said, _one_group(several), text_of))
    made += [
        _finding("expected", defect, _one_group(several), text_of)
        for defect, several in expected.items()
    ]
    return tuple(made)


def _one_group(failures: Iterable[Failure]) -> FailureGroup:
    """Failures with one reason: the largest group by cause takes in the others."""
    first, *others = grouped(failures)
    signatures = dict(first.signatures)
    rest = list(first.others)
    for group in others:
        rest += [group.first, *group.others]
        for name, count in group.signatures.items():
            signatures[name] = signatures.get(name, 0) + count
    return type(first)(first.first, tuple(rest), signatures)


def _finding(kind: Kind, reason: str, group: FailureGroup, text_of: CaseText) -> BoardFinding:
    first = group.first
    text = text_of(first.name or _file_name(first.file)) if kind != "expected" else ""
    played = not text and kind != "expected"
    named = [*group.signatures.items()]
    return BoardFinding(
        kind=kind,
        outcome=first.outcome,
        title=one_line(first.title, MOST_LINE),
        signatures={one_line(name, MOST_LINE): count for name, count in named[:_SIGNATURES]},
        reason=one_line(reason, MOST_PARAGRAPH),
        message="" if kind == "expected" else one_line(_message(first, reason), MOST_PARAGRAPH),
        case=_name(first.name),
        machine=_name(first.machine) if first.name else "",
        text=shortened(_played(first) if played else text, MOST_TEXT),
        played=played,
        requirements=tuple(_name(one.id) for one in first.requirements),
        cases=_cases((first, *group.others)),
    )


def _message(failure: Failure, reason: str) -> str:
    """What was wrong, without the reason that a known failure's message begins with."""
    message = headline(failure.said)
    _, _, rest = message.partition(f"{reason}: ") if reason else ("", "", "")
    return rest or message


def _file_name(path: str | None) -> str:
    return path.replace("\\", "/").rpartition("/")[2] if path else ""


def _played(failure: Failure) -> str:
    """The calls of a failure, which no case file has."""
    calls = [{one.operation: without_machine(one.args)} for one in failure.steps]
    if not calls:
        return ""
    return yaml.safe_dump(calls, sort_keys=False, allow_unicode=True, width=100)


def _cases(failures: Iterable[Failure]) -> tuple[FoundIn, ...]:
    """Where failures were found: a case once for each cause, and what it breaks."""
    found: dict[FoundIn, list[str]] = {}
    for one in failures:
        if one.name:
            where = FoundIn(
                case=_name(one.name),
                outcome=one.outcome,
                machines=(),
                requirements=tuple(_name(row.id) for row in one.requirements),
                discovers=one.area == DISCOVERY,
                signature=one_line(one.signature, MOST_LINE),
            )
            found.setdefault(where, []).append(_name(one.machine))
    return tuple(
        msgspec.structs.replace(where, machines=tuple(sorted(machines)))
        for where, machines in found.items()
    )


_UNFINISHED = "The campaign is not finished: the same command resumes it."

_NO_MACHINE = MachineInfo(0, 0, 0, 0, (), ())


class _Played:
    """What came back of one configuration of a campaign."""

    def __init__(self) -> None:
        self.cases: list[CaseFinished] = []
        self.found: list[DivergenceFound] = []
        self.failed: dict[str, ScenarioFailed] = {}
        self.shrunk: set[str] = set()
        self.scenarios: Counter[str] = Counter()

    def add(self, unit: Iterable[UnitEvent], ended: UnitFinished) -> None:
        for event in unit:
            if isinstance(event, CaseFinished):
                self.cases.append(event)
            elif isinstance(event, ScenarioFailed):
                self.failed.setdefault(event.signature, event)
            elif isinstance(event, DivergenceFound):
                self.found.append(event)
        if ended.signature:
            self.shrunk.add(ended.signature)
        elif "/seeds/" in ended.unit:
            self.scenarios.update(ended.outcomes)

    def divergences(self) -> Iterator[DivergenceFound]:
        """What was shrunk, then what was not: of each cause the first."""
        yield from self.found
        for signature, one in self.failed.items():
            if signature not in self.shrunk:
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
    """The runs that a campaign amounts to; a unit without its end counts for nothing.

    Args:
        events: the journal, which begins with its plan.
        registry: the requirements, which a journal only names.
    """
    plan: CampaignPlanned | None = None
    played: dict[Configuration, _Played] = {}
    unit: list[UnitEvent] = []
    done = 0
    ended: RunEnded | None = None
    for event in events:
        if isinstance(event, CampaignPlanned):
            plan = plan or event
        elif isinstance(event, UnitFinished):
            played.setdefault(event.configuration, _Played()).add(unit, event)
            unit, done = [], done + (not event.signature)
        elif isinstance(event, RunEnded):
            unit, ended = [], event
        else:
            unit.append(event)
    if plan is None:
        return
    complete = ended is not None and ended.complete and done >= plan.units
    message = "" if complete else _UNFINISHED
    if ended and ended.message and not complete:
        message = f"{_UNFINISHED} {ended.message}"
    for configuration in plan.configurations:
        one = played.get(configuration, _Played())
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
            found = sorted(one.divergences(), key=lambda one: (one.signature, one.title))
            yield summarize(_events(started, "fuzz", one.scenarios, found, message))


def _events(
    started: RunStarted,
    kind: Literal["check", "fuzz"],
    outcomes: Counter[str],
    played: Iterable[AnyEvent],
    unfinished: str,
) -> Iterator[AnyEvent]:
    """The events of a run; `unfinished` says why it is not complete, and is empty where it is."""
    yield msgspec.structs.replace(started, kind=kind, total=outcomes.total())
    yield from played
    yield RunEnded(at=0.0, complete=not unfinished, outcomes=dict(outcomes), message=unfinished)
