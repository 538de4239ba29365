"""Writes the reports of a run, during the run or from saved events.

``events.jsonl`` grows line by line, so nothing recorded is lost if the run is killed. The other
files are written atomically when the run ends. They are made from events in memory, because another
process may have replaced the file.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Self

import msgspec

from numaproof.protocol import codec, events, saved_events
from numaproof.reports.badge import badge
from numaproof.reports.html import html
from numaproof.reports.junit import junit
from numaproof.reports.markdown import markdown
from numaproof.reports.summary import summarize
from numaproof.reports.untrusted_text import visible
from numaproof.workdir.output_files import clear_partials, naming, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from io import FileIO
    from pathlib import Path

    from numaproof.protocol.events import AnyEvent
    from numaproof.reports.summary import Summary

EVENTS = "events.jsonl"

_MAKERS: Mapping[str, Callable[[Summary], str | bytes]] = {
    "junit.xml": junit,
    "report.html": html,
    "report.md": markdown,
    "badge.svg": badge,
}

FILES: tuple[str, ...] = (EVENTS, *_MAKERS)
"""The names of all files in a report folder."""


class EventsError(Exception):
    """A saved stream of events cannot be read; the message names the file and the line."""


def clear_reports(folder: Path) -> None:
    """Removes the reports of an earlier run, so that nobody mistakes them for new ones.

    Raises:
        OSError: a file cannot be removed.
    """
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    clear_partials(folder)


class Recorder:
    """Writes a run's events as they arrive, and its reports at the end; a context manager.

    First creates the folder if necessary and removes reports of an earlier run; other files
    are kept. At the end, even after an error, writes reports of all recorded events.

    Args:
        folder: the folder for the files.

    Attributes:
        has_reports: whether the reports have been written.

    Raises:
        OSError: the folder or a file in it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.has_reports = False
        self._stream: FileIO | None = None
        self._lines: list[bytes] = []
        self._size = 0
        self._latest = 0.0

    def __enter__(self) -> Self:
        """Opens the stream."""
        self.folder.mkdir(parents=True, exist_ok=True)
        clear_reports(self.folder)
        self._stream = (self.folder / EVENTS).open("wb", buffering=0)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Closes the stream and writes the reports."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            # An error in the block is more informative than a failure to write reports.
            with suppress(OSError) if error else nullcontext():
                write_reports(summarize(self.events()), self.folder)
                self.has_reports = True

    def events(self) -> tuple[AnyEvent, ...]:
        """Returns all recorded events as a reader of the file would get them."""
        return tuple(saved_events.read_lines(self._lines))

    def record(self, event: AnyEvent) -> None:
        """Writes an event to the file immediately; discards a line that doesn't fit on the disk.

        Progress is not recorded. If the event that ends an interrupted run has an earlier time than
        other events, it gets the latest time.

        Raises:
            OSError: the event cannot be written. The error names the file.
        """
        if self._stream is None:
            raise ValueError("the recorder is not open")
        self._latest = max(self._latest, event.at)
        if isinstance(event, events.RunEnded):
            event = msgspec.structs.replace(event, at=self._latest)
        if not isinstance(event, events.Progress):
            self._append(self._stream, events.write_line(event))

    def _append(self, stream: FileIO, line: bytes) -> None:
        self._lines.append(line)
        with naming(self.folder / EVENTS):
            unwritten = memoryview(line)
            try:
                while unwritten:
                    unwritten = unwritten[stream.write(unwritten) :]
            except OSError:
                stream.truncate(self._size)
                stream.seek(self._size)  # a shorter line may fit
                raise
        self._size += len(line)


def read_events(path: Path) -> tuple[AnyEvent, ...]:
    """Reads the events of a saved stream.

    Raises:
        EventsError: the file cannot be read, or a line is not an event.
    """
    try:
        with path.open("rb") as lines:
            return tuple(saved_events.read_lines(lines))
    except OSError as error:
        raise EventsError(f"{path}: {error.strerror or error}") from None
    except codec.ProtocolError as error:
        raise EventsError(
            f"{path}: {error}; expected an {EVENTS} written by this version of numaproof"
        ) from None


def render(path: Path, folder: Path) -> Summary:
    """Regenerates the reports of a saved stream, and returns its summary.

    Raises:
        EventsError: the stream cannot be read.
        OSError: a report cannot be written.
    """
    summary = summarize(read_events(path))
    write_reports(summary, folder)
    return summary


def write_reports(summary: Summary, folder: Path) -> None:
    """Writes the reports of a summary; creates the folder if necessary.

    Raises:
        OSError: a report cannot be written.
    """
    for name, make in _MAKERS.items():
        made = make(summary)
        text = made.decode() if isinstance(made, bytes) else made
        write_file(folder / name, visible(text))
