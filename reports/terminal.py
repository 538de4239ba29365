"""Shows the progress and the summary of a run.

A terminal shows a live line with a progress bar, the time left and the current case. Anywhere else
(a pipe, CI, ``NO_COLOR``, ``TERM=dumb``), plain lines report progress and failures. Both end with
the same summary.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Self, TextIO

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from numaproof.inputs.plurals import plural
from numaproof.protocol import events
from numaproof.protocol.events import GOOD
from numaproof.reports.console import (
    PLAIN_WIDTH,
    ShownConsole,
    as_plain,
    encodable,
    is_live,
    print_part,
)
from numaproof.reports.groups import likeness
from numaproof.reports.story import failure_of, transcript
from numaproof.reports.summary import summarize
from numaproof.reports.terminal_summary import summary_parts, transcript_details
from numaproof.reports.untrusted_text import one_line
from numaproof.reports.wording import (
    STYLES,
    SYMBOLS,
    command_name,
    implementation,
    left_side,
    release_and_level,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from numaproof.protocol.events import AnyEvent, CaseFinished, DivergenceFound


MAX_FAILURE_LINES = 50
"""Maximum number of failures shown during a run, one for each signature."""

_SECONDS_BETWEEN = 10.0
_PARTS = 10


class Terminal:
    """Shows events as they arrive, and the summary on exit; a context manager.

    Args:
        stream: where to write (default: standard output).
        environment: the environment variables that decide between live and plain output
            (default: the process's own).
        calls: whether to show every call of a case run, if the event includes the calls.

    Attributes:
        reports: the folder of the reports, shown at the end; empty if there is none.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        calls: bool = False,
    ) -> None:
        self._stream = stream or sys.stdout
        environment = os.environ if environment is None else environment
        self._live = is_live(self._stream, environment)
        self.reports = ""
        self._calls = calls
        self._events: list[AnyEvent] = []
        self._total: int | None = None
        self._done_count = 0
        self._bad = 0
        self._lines = 0
        self._shown_causes: set[str] = set()
        self._last_line = 0.0
        self._last_part = 0
        self._console = ShownConsole(self._stream, _environ=environment)
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failures]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, failures="", start=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the live line and shows the summary, even if the run is incomplete."""
        self._stop()
        if not self._events:
            return
        summary = summarize(self._events)
        # Transcripts have shown the failures.
        parts = summary_parts(summary, self._width, self.reports, with_failures=not self._calls)
        for part in parts:
            self._part(part)

    @property
    def _width(self) -> int:
        return self._console.width if self._live else PLAIN_WIDTH

    def _part(self, part: RenderableType) -> None:
        if self._live:
            print_part(self._console, part)
        else:
            self._plain(as_plain(part))

    def show(self, event: AnyEvent) -> None:
        """Shows one event."""
        last = self._events[-1] if self._events else None
        if isinstance(last, events.Progress) and isinstance(event, events.Progress):
            self._events.pop()  # only the latest progress counts
        self._events.append(event)
        match event:
            case events.RunStarted():
                self._start(event)
            case events.CaseFinished():
                self._done_count += 1
                if self._calls:
                    self._transcript(event)
                elif event.outcome not in GOOD:
                    self._failure(f"{event.case} on {event.machine}", event)
                self._advance(event.at, f"{event.case} on {event.machine}")
            case events.DivergenceFound() if event.outcome not in GOOD:
                self._failure(event.title, event)
            case events.Progress():
                self._done_count = event.played_examples
                self._advance(event.at, "")
            case events.RunEnded():
                self._stop()

    def _stop(self) -> None:
        if self._live:
            self._progress.stop()

    def _start(self, event: events.RunStarted) -> None:
        self._total = event.total or None
        who = implementation(summarize([event]))
        kubernetes, level = release_and_level(event)
        left = f"{one_line(left_side(event), 80)} and " if event.left else ""
        what = (
            f"{left}{one_line(who, 80)}, Kubernetes {kubernetes}, level {level}, {_extent(event)}"
        )
        if event.implementation is None:
            what = "the program did not answer hello"
        self._line(Text(f"numaproof {command_name(event)}: {what}", "bold"))
        if self._live:
            self._progress.start()
            self._progress.start_task(self._task)
            self._progress.update(self._task, total=self._total)

    def _advance(self, at: float, current: str) -> None:
        if self._live:
            failures = f"{self._bad:,} failed" if self._bad else ""
            shown = one_line(current, max(self._console.width - 60, 12))
            self._progress.update(
                self._task, completed=self._done_count, description=shown, failures=failures
            )
            return
        part = self._done_count * _PARTS // self._total if self._total else 0
        late = at - self._last_line >= _SECONDS_BETWEEN
        if late or (part > self._last_part and at - self._last_line >= 1):
            self._last_line, self._last_part = at, part
            of = f" of {self._total:,}" if self._total else ""
            self._plain(f"{at:7.1f} s  {self._done_count:,}{of} done, {self._bad:,} failed")

    def _failure(self, name: str, event: CaseFinished | DivergenceFound) -> None:
        self._bad += 1
        case = event.case if isinstance(event, events.CaseFinished) else name
        like = event.signature or likeness(case, event.outcome, event.message)
        if like in self._shown_causes:
            return  # the summary lists other cases and machines with the same cause
        self._shown_causes.add(like)
        self._lines += 1
        if self._lines == MAX_FAILURE_LINES + 1:
            self._line(Text("Further failures are only counted; see the reports for details."))
        if self._lines > MAX_FAILURE_LINES:
            return
        head = f"{SYMBOLS[event.outcome]} {event.outcome.upper()}  "
        line = Text(head, style=STYLES[event.outcome])
        line.append(one_line(name, 160), style="bold")
        message = events.headline(events.sentence_of(event.message, event.finding))
        if not name.startswith(message):
            line.append(f"  {one_line(message, 160)}", style="default")
        self._line(line)

    def _transcript(self, event: CaseFinished) -> None:
        self._bad += event.outcome not in GOOD
        for line in transcript(event):
            self._line(Text(line))
        if event.outcome not in GOOD:
            failure = failure_of(summarize(self._events[:1]), event)
            for part in transcript_details(failure, self._width):
                self._part(part)

    def _line(self, text: Text) -> None:
        if self._live:
            self._console.print(text)
        else:
            self._plain(text.plain)

    def _plain(self, text: str) -> None:
        self._stream.write(encodable(text, self._stream) + "\n")
        self._stream.flush()


def _extent(event: events.RunStarted) -> str:
    if event.kind == "check":
        machines = plural(len(event.machines), "machine")
        return f"{plural(event.total, 'case run')} on {machines}"
    if event.bound:
        return "; ".join(event.bound)
    seed = "" if event.seed is None else f"seed {event.seed}, "
    return seed + (plural(event.total, "example") if event.total else "until time is up")


class Bar:
    """A progress bar with lines above it; a context manager.

    Args:
        stream: where to write.
        environment: the environment variables that decide between live and plain output (default:
            the process's own).
        unit: what the bar counts, such as "units".
    """

    def __init__(self, stream: TextIO, environment: Mapping[str, str] | None, unit: str) -> None:
        environment = os.environ if environment is None else environment
        self._stream = stream
        self.live = is_live(stream, environment)
        console = ShownConsole(stream, _environ=environment)
        self._progress = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn(f"{unit}, {{task.description}}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        if self.live:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self._progress.stop()

    def line(self, text: str) -> None:
        """Shows a line above the bar."""
        if self.live:
            self._progress.console.print(text, soft_wrap=True)
        else:
            self._stream.write(text + "\n")
            self._stream.flush()

    def move(self, count: int, total: int, description: str) -> None:
        """Moves the bar; does nothing without a terminal."""
        self._progress.update(self._task, completed=count, total=total, description=description)
