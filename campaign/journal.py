"""The journal of a campaign: its results, unit by unit, so that a killed campaign can resume.

The events of a unit are written in one go and end with its `UnitFinished`. Lines after the last
`UnitFinished`, left by a killed run, are removed when the campaign is resumed. Lines that belong to
no valid unit are damaged: they are removed, and their units are executed again. A `UnitFinished`
holds the number of lines in its unit, and a checksum of the plan, those lines and itself. Each unit
can therefore be verified independently of the rest of the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import msgspec

from numaproof.campaign.summary import FinishedUnits
from numaproof.inputs import door
from numaproof.protocol import codec
from numaproof.protocol.campaign import CampaignEvent, CampaignPlanned, UnitEvent, UnitFinished
from numaproof.protocol.events import CaseFinished, RunEnded
from numaproof.workdir.output_files import naming, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from io import FileIO
    from pathlib import Path
    from types import TracebackType

    from numaproof.campaign.worker import UnitResult
    from numaproof.conformance.known_failures.entries import KnownFailures

EVENTS = "events.jsonl"


class JournalError(Exception):
    """A journal cannot be used for a campaign; the message names the file and suggests a fix."""


class Journal:
    """The journal of a campaign, opened for writing. It is a context manager.

    Args:
        folder: the campaign's folder, created if missing.
        plan: the campaign's plan.
        elapsed_seconds: returns the seconds since the campaign started or resumed.
        fresh: whether to discard earlier results.
        known_failures: known failures.

    Raises:
        JournalError: the file belongs to another campaign, or another process is writing to it.
        DocumentError: the file is not a regular file, or has a line that is too long.
        OSError: the file cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        plan: CampaignPlanned,
        elapsed_seconds: Callable[[], float],
        *,
        fresh: bool = False,
        known_failures: KnownFailures | None = None,
    ) -> None:
        self.folder = folder
        self.path = folder / EVENTS
        self.finished_units = FinishedUnits(plan, known_failures)
        self._plan = plan
        self._elapsed_seconds = elapsed_seconds
        self._before = 0.0
        self._valid_bytes = 0
        self.damage_notes: list[str] = []
        """Descriptions of damaged lines, whose units will be executed again."""
        folder.mkdir(parents=True, exist_ok=True)
        number = door.descriptor(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._file: FileIO = os.fdopen(number, "a+b", buffering=0)
        try:
            self._lock_and_read(fresh=fresh)
        except BaseException:
            self._file.close()
            raise

    def _lock_and_read(self, *, fresh: bool) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(f"{self.path}: another campaign is writing to it") from None
        if not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat()):
            # The previous writer replaced the file, and is writing to the new one.
            raise JournalError(f"{self.path}: another campaign is writing to it")
        if not fresh:
            self._read()
        if not self._valid_bytes:
            self._append(codec.encode(self._plan) + b"\n")

    def _append(self, lines: bytes) -> None:
        """Writes lines after the valid ones, replacing anything else."""
        with naming(self.path):
            self._file.truncate(self._valid_bytes)
            unwritten = memoryview(lines)
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        self._valid_bytes += len(lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    @property
    def seconds(self) -> float:
        """The campaign's running time in seconds, excluding interruptions."""
        return self._before + self._elapsed_seconds()

    def _read(self) -> None:
        """Reads earlier results, and keeps only valid units."""
        reading = JournalLines(self._plan)
        kept: list[tuple[int, int]] = []
        with self.path.open("rb") as lines:
            for unit in reading.units(door.lines(lines, str(self.path))):
                self.finished_units.add(unit.events, unit.end_event)
                self._before = max(self._before, unit.end_event.at)
                if kept and kept[-1][1] == unit.start:
                    kept[-1] = kept[-1][0], unit.stop
                else:
                    kept.append((unit.start, unit.stop))
            size = lines.tell()
        self.damage_notes = list(reading.damage_notes)
        if reading.recorded_plan != self._plan and size:
            if not kept:
                raise self._plan_mismatch(reading.recorded_plan)
            self.damage_notes.insert(0, "line 1 is damaged")
        self._valid_bytes = kept[-1][1] if kept else 0
        if self.damage_notes:
            self._replace(kept)

    def case_runs(self) -> list[CaseFinished]:
        """Returns every case run in the journal."""
        with self.path.open("rb") as lines:
            units = [*JournalLines(self._plan).units(door.lines(lines, str(self.path)))]
        return [one for unit in units for one in unit.events if isinstance(one, CaseFinished)]

    def _replace(self, spans: Iterable[tuple[int, int]]) -> None:
        part = self.path.with_name(f".{self.path.name}")
        with self.path.open("rb") as lines, self._file:
            self._file = part.open("wb", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._valid_bytes = 0
            self._append(codec.encode(self._plan) + b"\n")
            for start, stop in spans:
                lines.seek(start)
                self._append(lines.read(stop - start))
            part.replace(self.path)

    def _plan_mismatch(self, other_plan: CampaignPlanned | None) -> JournalError:
        if other_plan is None:
            return self._unusable("line 1 is not the plan of a campaign")
        for name in other_plan.__struct_fields__:
            old, new = getattr(other_plan, name), getattr(self._plan, name)
            if old != new:
                words = name.removeprefix("is_").replace("_", " ")
                return self._unusable(
                    f"it belongs to another campaign, with {words}"
                    f" {_format_value(old)} (expected {_format_value(new)})"
                )
        raise AssertionError(other_plan)

    def _unusable(self, why: str) -> JournalError:
        return JournalError(
            f"{self.path}: {why}\nUse another --out, or --fresh to start over in this one."
        )

    def add(self, result: UnitResult) -> UnitFinished | None:
        """Writes a unit's files and events; returns None if the unit was already done."""
        *events, ended = map(_unit_event, result.lines.splitlines())
        assert isinstance(ended, UnitFinished)
        if ended.unit in self.finished_units.done_units:
            return None
        for name, text in result.files.items():
            write_file(self.folder / name, text)
        now = self.seconds
        stamped = [msgspec.structs.replace(event, at=now) for event in events]
        self._append(seal_unit(stamped, msgspec.structs.replace(ended, at=now), self._plan))
        self.finished_units.add(events, ended)
        return msgspec.structs.replace(ended, at=now)

    def end(self, *, complete: bool, message: str = "") -> None:
        """Writes the last line, which is removed if an incomplete campaign is resumed."""
        self.finished_units.message = message
        tally = self.finished_units.summary().tally
        outcomes: dict[str, int] = {
            one: tally.cases.get(one, 0) + tally.scenarios.get(one, 0)
            for one in sorted({*tally.cases, *tally.scenarios})
        }
        ended = RunEnded(self.seconds, complete, outcomes, message=message)
        self._append(codec.encode(ended) + b"\n")


def _unit_event(line: bytes) -> UnitEvent:
    event: UnitEvent = codec.decode(line, UnitEvent)  # type: ignore[arg-type]
    return event


def _format_value(value: object) -> str:
    text = codec.encode(value).decode()
    return text if len(text) < 80 else f"{text[:79]}…"  # noqa: PLR2004 - columns of a terminal


def seal_unit(events: Iterable[UnitEvent], end_event: UnitFinished, plan: CampaignPlanned) -> bytes:
    """Encodes the lines of a unit; the last one has the checksum."""
    lines = [codec.encode(event) + b"\n" for event in events]
    counted = msgspec.structs.replace(end_event, events=len(lines))
    seal = msgspec.structs.replace(counted, checksum=_checksum(lines, counted, plan))
    return b"".join((*lines, codec.encode(seal) + b"\n"))


def _checksum(lines: Iterable[bytes], end_event: UnitFinished, plan: CampaignPlanned) -> str:
    unsigned = codec.encode(msgspec.structs.replace(end_event, checksum=""))
    return hashlib.sha256(b"".join((plan.key.encode(), *lines, unsigned))).hexdigest()[:16]


@dataclass(frozen=True)
class WholeUnit:
    """A valid unit and its location, from byte `start` up to but excluding `stop`."""

    events: tuple[UnitEvent, ...]
    end_event: UnitFinished
    start: int
    stop: int


@dataclass(frozen=True)
class _Line:
    number: int
    text: bytes
    start: int
    event: CampaignEvent | None

    @property
    def stop(self) -> int:
        return self.start + len(self.text)


@dataclass
class JournalLines:
    """Reads the lines of a journal in order.

    Attributes:
        plan: the plan of the resumed campaign.
        recorded_plan: the plan in the first line; None if it is damaged or missing.
        damage_notes: descriptions of damaged lines.
    """

    plan: CampaignPlanned
    recorded_plan: CampaignPlanned | None = None
    damage_notes: list[str] = field(default_factory=list)
    _waiting: list[_Line] = field(default_factory=list)

    def units(self, lines: Iterable[bytes]) -> Iterator[WholeUnit]:
        """Yields the valid units, in file order."""
        at = 0
        for number, text in enumerate(lines, 1):
            if not text.endswith(b"\n"):
                break  # incomplete line of a killed run
            line = _Line(number, text, at, _event(text))
            at = line.stop
            if number == 1:
                self.recorded_plan = line.event if isinstance(line.event, CampaignPlanned) else None
            elif whole := self._whole(line):
                yield whole
            else:
                self._waiting.append(line)
        # A killed run leaves complete lines without their `UnitFinished`.
        if any(_is_broken(line) for line in self._waiting):
            self._note(self._waiting)

    def _whole(self, last: _Line) -> WholeUnit | None:
        ended = last.event
        if not isinstance(ended, UnitFinished) or not 0 <= ended.events <= len(self._waiting):
            return None
        first = len(self._waiting) - ended.events
        lines = self._waiting[first:]
        events = tuple(line.event for line in lines if isinstance(line.event, UnitEvent))
        if len(events) != len(lines) or ended.checksum != _checksum(
            (line.text for line in lines), ended, self.plan
        ):
            return None
        self._note(self._waiting[:first])
        self._waiting.clear()
        return WholeUnit(events, ended, (*lines, last)[0].start, last.stop)

    def _note(self, lines: Sequence[_Line]) -> None:
        if not lines:
            return
        first, last = lines[0].number, lines[-1].number
        where = f"line {first} is" if first == last else f"lines {first} to {last} are"
        units = [line.event.unit for line in lines if isinstance(line.event, UnitFinished)]
        self.damage_notes.append(f"{where} damaged{': ' if units else ''}{', '.join(units)}")


def _event(line: bytes) -> CampaignEvent | None:
    try:
        event: CampaignEvent = codec.decode(line, CampaignEvent)  # type: ignore[arg-type]
    except codec.ProtocolError:
        return None
    return event


def _is_broken(line: _Line) -> bool:
    return line.event is None or isinstance(line.event, UnitFinished | CampaignPlanned)
