"""Reads saved events, including those with the field names of version 0.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from numaproof.protocol import codec, events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")


def decode(line: bytes, kind: type[T]) -> T:
    """Decodes the event on a line.

    Raises:
        codec.ProtocolError: the line is not an event.
    """
    try:
        return codec.decode(line, kind)
    except codec.ProtocolError as error:
        event = _translate(line)
        if event is None:
            raise
        try:
            return cast("T", msgspec.convert(event, cast("Any", kind), dec_hook=codec.decode_hook))
        except msgspec.ValidationError:
            raise error from None


def read_lines(lines: Iterable[bytes]) -> Iterator[events.AnyEvent]:
    """Yields the events of a saved stream in order.

    An incomplete last line, left by a killed run, is skipped.

    Raises:
        codec.ProtocolError: a line is not an event; the message includes the line number.
    """
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        try:
            yield decode(line, events.AnyEvent)  # type: ignore[arg-type]
        except codec.ProtocolError as error:
            raise codec.ProtocolError(f"line {number}: {error}") from None


def _translate(line: bytes) -> dict[str, Any] | None:
    """Renames fields to their current names; returns None if none had an old name."""
    try:
        event = codec.decode_any(line)
    except codec.ProtocolError:
        return None
    if not isinstance(event, dict):
        return None
    parts = [(one, names) for path, names in _RENAMED for one in _objects(event, *path)]
    old = False
    for part, names in parts:
        for name in names.keys() & part.keys():
            part[names[name]] = part.pop(name)
            old = True
    return event if old else None


def _objects(value: Any, *path: str) -> list[dict[str, Any]]:
    """Returns the objects at a path, descending into all items of lists."""
    found = [value]
    for name in path:
        found = [one[name] for one in found if isinstance(one, dict) and name in one]
        found = [item for one in found for item in (one if isinstance(one, list) else [one])]
    return [one for one in found if isinstance(one, dict)]


_CONFIGURATION = {"judged_as": "baseline"}
_FINDING = {"got": "actual"}
_RENAMED: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (
        (),
        {
            "agreed": "agreed_level",
            "declined": "declined_claims",
            "done": "played_examples",
            "kept": "unaffected",
            "left": "leftover_processes",
            "parted": "baseline_divergence",
            "unclaimed": "missing_claim",
            "unseen": "undiscovered",
            "untested": "untested_requirements",
            "violated": "violated_requirements",
        },
    ),
    (
        ("claims",),
        {
            "assumed": "assumes_features",
            "declined": "declined_runs",
            "unclaimed": "missing_claims",
        },
    ),
    (("configuration",), _CONFIGURATION),
    (("configurations",), _CONFIGURATION),
    (("finding",), _FINDING),
    (("steps", "findings"), _FINDING),
    (("parted",), {"side": "baseline"}),
)
"""The renamed fields of the objects at each path in an event."""
