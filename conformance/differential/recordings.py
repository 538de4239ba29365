"""Recordings: scenarios with every answer of an implementation, in one compressed file.

A file is JSON lines in xz. The first line says what answered, as which release and when; each
other line is a scenario, as a case that can be played, and the answers in the order of the calls.
The calls themselves follow from the case and from the answers. The same answers make the same
bytes.
"""

from __future__ import annotations

import lzma
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import checking
from numaproof.conformance.cases.schema import Case
from numaproof.conformance.execution.implementation import BrokeProtocol
from numaproof.folders.output_files import write_file
from numaproof.inputs import door, errors
from numaproof.protocol import codec, messages
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.resources.abc import Traversable

FORMAT = 1
SUFFIX = ".jsonl.xz"

_BUNDLED = "recordings"


class RecordingError(ValueError):
    """A file is not a recording; the message names the file, the line and what is wrong."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where recordings come from.

    `name`, `version` and `language` are the implementation's own words for itself; `recorded` is
    the date (YYYY-MM-DD); `numaproof` the version that made the scenarios.
    """

    format: int
    name: str
    version: str
    language: str
    kubernetes: str
    numaproof: str
    recorded: str


class RecordedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation and its response without its id, the state directory as ``$STATE_DIR``."""

    op: str
    answer: dict[str, Any]


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scenario, the seed that it was made from where it was, and what was answered."""

    case: Case
    calls: tuple[RecordedCall, ...]
    seed: int | None = None


class Recorded:
    """An implementation that repeats its recorded answers, whatever the request."""

    def __init__(self, recording: Recording) -> None:
        self._left = iter(recording.calls)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:  # noqa: ARG002
        """The next answer.

        Raises:
            BrokeProtocol: another operation was called then, or none: the recording was not made
                by playing its case. Or what is recorded is no answer.
        """
        kept = next(self._left, None)
        if kept is None or kept.op != operation:
            raise BrokeProtocol(f"the recording has {kept.op if kept else 'no call'} here")
        try:
            return codec.decode_answer(codec.encode({"id": 0, **kept.answer}), 0, operation)
        except codec.ProtocolError as error:
            raise BrokeProtocol(f"the recording has no answer here: {error}") from None

    def close(self) -> None:
        """Does nothing: there is no program to end."""


def kept_answer(answer: messages.Answer) -> dict[str, Any]:
    """An answer as a recording has it: a response without its id."""
    response: dict[str, Any] = msgspec.json.decode(codec.encode_answer(0, answer))
    del response["id"]
    return response


def write(path: Path, source: Source, recordings: Iterable[Recording]) -> None:
    """Writes a new file of recordings, atomically.

    Raises:
        OSError: there is such a file, or it cannot be written.
    """
    lines = [codec.encode(source), *(_line(one) for one in recordings)]
    packed = lzma.compress(b"\n".join(lines) + b"\n", preset=9 | lzma.PRESET_EXTREME)
    write_file(path, packed, new=True)


def _line(recording: Recording) -> bytes:
    return codec.encode(msgspec.to_builtins(recording))


def read(file: Path | Traversable) -> tuple[Source, tuple[Recording, ...]]:
    """The recordings of a file, and where they come from.

    Raises:
        DocumentError: it cannot be read or unpacked.
        RecordingError: it is not such a file.
    """
    packed = door.read(file) if isinstance(file, Path) else file.read_bytes()
    lines = door.unpacked(packed, str(file)).splitlines()
    made = list(_read_lines(str(file), lines))
    if not made:
        raise RecordingError(f"{file}: there is nothing in it")
    return made[0], tuple(made[1:])


def _read_lines(name: str, lines: Iterable[bytes]) -> Iterator[Any]:
    kind: Any = Source
    for number, line in enumerate(lines, 1):
        try:
            made = codec.decode(line, kind)
        except codec.ProtocolError as error:
            raise RecordingError(f"{name}, line {number}: {error}") from None
        if isinstance(made, Source) and made.format != FORMAT:
            raise RecordingError(
                f"{name}, line 1: format {made.format} is not known; known is {FORMAT}"
            )
        if isinstance(made, Source) and made.kubernetes not in RELEASES:
            raise RecordingError(
                f"{name}, line 1: kubernetes: {made.kubernetes!r} is not one of"
                f" {', '.join(RELEASES)}"
            )
        if isinstance(made, Recording) and made.case.machine is None:
            raise RecordingError(f"{name}, line {number}: the case has no machine of its own")
        if isinstance(made, Recording):
            _check(made.case, f"{name}, line {number}")
        yield made
        kind = Recording


def _check(case: Case, place: str) -> None:
    try:
        checking.check(case)
    except checking.WrongCaseError as wrong:
        field = errors.dotted(("case", *wrong.path))
        raise RecordingError(f"{place}: {field}: {wrong} ({wrong.fix})") from None


def bundled_file(kubernetes: str) -> Traversable:
    """The file of the project's own recordings of the real kubelet of a release."""
    return resources.files("numaproof.fixtures") / _BUNDLED / f"kubelet-{kubernetes}{SUFFIX}"


def bundled(kubernetes: str) -> tuple[Recording, ...]:
    """The project's own recordings of the real kubelet of a release; empty if there are none.

    Raises:
        RecordingError: the file is damaged.
    """
    file = bundled_file(kubernetes)
    return read(file)[1] if file.is_file() else ()
