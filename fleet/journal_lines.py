"""The lines of a journal: which of them make up units that are whole, and which are damaged.

Each unit's end counts the lines before it that belong to it, and has a checksum over the plan,
those lines and itself. So a unit vouches for itself: it belongs to this plan and is as it was
written, whatever has become of the rest of the file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol import codec
from numaproof.protocol.campaign import CampaignEvent, CampaignPlanned, UnitEvent, UnitFinished

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def sealed(events: Iterable[UnitEvent], ended: UnitFinished, plan: CampaignPlanned) -> bytes:
    """The lines of a unit, of which the last vouches for all."""
    lines = [codec.encode(event) + b"\n" for event in events]
    counted = msgspec.structs.replace(ended, events=len(lines))
    seal = msgspec.structs.replace(counted, checksum=_checksum(lines, counted, plan))
    return b"".join((*lines, codec.encode(seal) + b"\n"))


def _checksum(lines: Iterable[bytes], ended: UnitFinished, plan: CampaignPlanned) -> str:
    unsigned = codec.encode(msgspec.structs.replace(ended, checksum=""))
    return hashlib.sha256(b"".join((plan.key.encode(), *lines, unsigned))).hexdigest()[:16]


@dataclass(frozen=True)
class WholeUnit:
    """A unit that is as it was written, and where it lies: from byte `start` to before `stop`."""

    events: tuple[UnitEvent, ...]
    ended: UnitFinished
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
        plan: of the campaign that is resumed.
        found: the plan in the first line; None where that is damaged or missing.
        damaged: what to say of each run of damaged lines.
    """

    plan: CampaignPlanned
    found: CampaignPlanned | None = None
    damaged: list[str] = field(default_factory=list)
    _waiting: list[_Line] = field(default_factory=list)

    def units(self, lines: Iterable[bytes]) -> Iterator[WholeUnit]:
        """The units that are whole, in the order of the file."""
        at = 0
        for number, text in enumerate(lines, 1):
            if not text.endswith(b"\n"):
                break  # a kill cut it off
            line = _Line(number, text, at, _event(text))
            at = line.stop
            if number == 1:
                self.found = line.event if isinstance(line.event, CampaignPlanned) else None
            elif whole := self._whole(line):
                yield whole
            else:
                self._waiting.append(line)
        # What a kill leaves behind is whole lines without the end of their unit.
        if any(_broken(line) for line in self._waiting):
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
        self.damaged.append(f"{where} damaged{': ' if units else ''}{', '.join(units)}")


def _event(line: bytes) -> CampaignEvent | None:
    try:
        event: CampaignEvent = codec.decode(line, CampaignEvent)  # type: ignore[arg-type]
    except codec.ProtocolError:
        return None
    return event


def _broken(line: _Line) -> bool:
    return line.event is None or isinstance(line.event, UnitFinished | CampaignPlanned)
