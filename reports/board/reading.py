"""Finds and reads runs: report folders and files of board data."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError
from numaproof.protocol import codec, saved_events
from numaproof.protocol.campaign import CampaignEvent, CampaignPlanned, ScenarioFailed, UnitFinished
from numaproof.protocol.events import AnyEvent, ReportedRequirement
from numaproof.reports.board import data, digest
from numaproof.reports.board.standing import implementations
from numaproof.reports.files import EVENTS
from numaproof.reports.summary import summarize
from numaproof.reports.untrusted_text import one_line
from numaproof.reports.values import group_values
from numaproof.workdir.output_files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.reports.board.context import RunContext
    from numaproof.reports.board.data import RunData
    from numaproof.reports.summary import Summary


_DEEPEST = 6
_MAX_FOLDERS = 100_000
_EVENTS_BYTES = 2 << 30
_CASE_BYTES = 1 << 20

_AnyLine = AnyEvent | CampaignPlanned | ScenarioFailed | UnitFinished


@dataclass
class RunsRead:
    """All runs that were read, and requirements that are not in the registry.

    `report_runs` come from events, `data_runs` from board data.
    """

    context: RunContext
    report_runs: list[RunData] = field(default_factory=list)
    data_runs: list[RunData] = field(default_factory=list)
    _others: dict[str, ReportedRequirement] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[RunData, ...]:
        """The current runs. Reports replace older board data for the same run."""
        over = self.superseded_runs
        reported = [run for run in self.report_runs if run not in over]
        new = {data.run_key(run) for run in reported}
        kept = (run for run in self.data_runs if data.run_key(run) not in new and run not in over)
        return (*reported, *kept)

    @property
    def superseded_runs(self) -> tuple[RunData, ...]:
        """Incomplete runs for which there is also a complete one."""
        runs = (*self.report_runs, *self.data_runs)
        whole = {data.run_key(run) for run in runs if not run.gaps}
        again = {data.run_key(run) for run in self.report_runs if not run.gaps}
        old = (run for run in self.data_runs if data.run_key(run) not in again)
        return tuple(
            run for run in (*self.report_runs, *old) if run.gaps and data.run_key(run) in whole
        )

    @property
    def others(self) -> tuple[ReportedRequirement, ...]:
        """The requirements that are not in the registry."""
        ids = {one.id for one in self.context.requirements}
        return tuple(self._others[one] for one in sorted(self._others.keys() - ids))

    @property
    def requirements(self) -> tuple[ReportedRequirement, ...]:
        """All requirements; those in the registry come first, in its order."""
        return (*self.context.requirements, *self.others)

    def add(self, requirements: Sequence[ReportedRequirement]) -> None:
        """Adds requirements. The choice between duplicates does not depend on their order."""
        for given in requirements:
            one = ReportedRequirement(
                one_line(given.id, data.MAX_NAME),
                one_line(given.area, data.MAX_NAME),
                one_line(given.statement, data.MAX_PARAGRAPH),
                one_line(given.document, data.MAX_LINE),
                one_line(given.section, data.MAX_LINE),
                tuple(one_line(also, data.MAX_LINE) for also in given.also),
            )
            had = self._others.setdefault(one.id, one)
            self._others[one.id] = min(had, one, key=repr)


def read(paths: Sequence[Path], context: RunContext) -> RunsRead:
    """Reads all runs in folders (recursively) and in files of board data.

    Raises:
        DocumentError: a path cannot be read or contains no run.
    """
    found = RunsRead(context)
    for path in paths:
        before = len(found.report_runs) + len(found.data_runs)
        if path.is_dir():
            for one in _sources(path):
                _read_file(one, found)
        else:
            _read_file(path, found)
        if len(found.report_runs) + len(found.data_runs) == before:
            raise DocumentError(str(path), 0, "", "contains no run", _FIX)
    return found


_FIX = (
    f"expected a folder with an {EVENTS} of check, fuzz, diff or campaign, a folder of such"
    f" folders, or board data in *{data.SUFFIX}"
)


def _sources(folder: Path) -> list[Path]:
    """Finds the event streams and board data files in a folder, recursively and in order."""
    found: list[Path] = []
    for number, (name, below, files) in enumerate(os.walk(folder, onerror=_refuse)):
        if number == _MAX_FOLDERS:
            text = f"more than {_MAX_FOLDERS:,} folders"
            raise DocumentError(str(folder), 0, "", text, "name the report folders themselves")
        place = Path(name)
        stream = EVENTS in files
        found += [
            place / file
            for file in files
            if file == EVENTS or (not stream and file.endswith(data.SUFFIX))
        ]
        if stream or len(place.relative_to(folder).parts) == _DEEPEST - 1:
            below.clear()
    return sorted(found)


def _refuse(error: OSError) -> NoReturn:
    raise DocumentError(error.filename, 0, "", f"cannot read: {error.strerror}") from None


def _read_file(path: Path, runs: RunsRead) -> None:
    if path.name == EVENTS:
        _read_stream(path, runs)
        return
    read = _board_data(path)
    runs.add(read.requirements)
    runs.data_runs += read.runs


def _board_data(path: Path) -> data.BoardData:
    content = door.read(path)
    fix = f"{_FIX}; `numaproof board --out-data` writes board data"
    try:
        read = msgspec.json.decode(content, type=data.BoardData)
    except msgspec.ValidationError as error:
        raise DocumentError(str(path), 0, "", f"not board data: {error}", fix) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(str(path), 0, "", f"not JSON: {error}", fix) from None
    if read.version != data.VERSION:
        text = f"unsupported version {read.version} of board data (expected {data.VERSION})"
        raise DocumentError(
            str(path), 0, "version", text, "use the version of numaproof that wrote it"
        )
    return read


def read_runs(path: Path, requirements: tuple[ReportedRequirement, ...]) -> list[Summary]:
    """Reads the runs of a saved stream: several if it is a campaign's.

    Args:
        path: the stream.
        requirements: the registry, which a campaign mentions only by id.

    Raises:
        DocumentError: the file cannot be read or has no complete line.
    """
    events = _events(path)
    first = next(events, None)
    if first is None:
        has = "no complete line" if path.stat().st_size else "empty"
        text = f"{has}, because the run was killed"
        raise DocumentError(str(path), 0, "", text, "repeat the run")
    whole = chain((first,), events)
    if isinstance(first, CampaignPlanned):
        journal: Iterator[CampaignEvent] = whole  # type: ignore[assignment]
        return list(digest.summaries(journal, requirements))
    stream: Iterator[AnyEvent] = whole  # type: ignore[assignment]
    return [summarize(stream)]


def _read_stream(path: Path, runs: RunsRead) -> None:
    folder, known = path.parent, runs.context

    def text_of(name: str) -> str:
        return known.case_text(name) or _finding_text(folder, name)

    for summary in read_runs(path, known.requirements):
        if summary.start is None:
            text = "the first event is missing, so the implementation is unknown"
            raise DocumentError(str(path), 1, "", text, "repeat the run")
        runs.add(summary.start.requirements)
        runs.report_runs.append(digest.run_data(summary, folder.resolve().name, text_of))


def _finding_text(folder: Path, name: str) -> str:
    file = folder / "findings" / name
    if not name.endswith(".yaml") or "/" in name or not file.exists():
        return ""
    return door.read_text(file, most=_CASE_BYTES)


def _events(path: Path) -> Iterator[_AnyLine]:
    """Yields the events of a stream or journal; ignores an incomplete last line."""
    name = str(path)
    with door.open_regular(path, most=_EVENTS_BYTES) as file:
        for number, line in enumerate(door.lines(file, name), 1):
            if not line.endswith(b"\n"):
                return
            try:
                event: _AnyLine = saved_events.decode(line, _AnyLine)  # type: ignore[arg-type]
            except codec.ProtocolError as error:
                fix = f"expected an {EVENTS} written by this version of numaproof; repeat the run"
                raise DocumentError(name, number, "", f"not an event: {error}", fix) from None
            yield event


class _AnyVersion(msgspec.Struct, frozen=True):
    """The part that all versions of board data have in common."""

    data: str


def refuse_others(path: Path) -> None:
    """Refuses to overwrite a file that is not board data.

    Raises:
        DocumentError: the file is not board data or cannot be read.
    """
    if not _is_file(path) or not path.exists():
        return
    try:
        found = codec.decode(door.read(path), _AnyVersion).data
    except codec.ProtocolError:
        found = ""
    if found != data.TAG:
        text = "the file exists and is not board data"
        raise DocumentError(str(path), 0, "", text, "name another file for --out-data")


def _is_file(path: Path) -> bool:
    return path.name.endswith(".json")


def write_data(reading: RunsRead, path: Path) -> None:
    """Writes board data: a single file if the name ends with ``.json``, or a folder of files.

    Raises:
        OSError: a file cannot be written.
    """
    entries = [
        run for one in implementations(reading.runs) for entry in one.entries for run in entry.runs
    ]
    others = reading.others
    if _is_file(path):
        write_file(path, data.encode_board_data(entries, others))
        return
    for name, runs in group_values((data.data_name(run), run) for run in entries).items():
        cited = {cited for run in runs for cited in run.requirements}
        write_file(
            path / name, data.encode_board_data(runs, [one for one in others if one.id in cited])
        )
