"""The kill matrix as files and for a terminal: same matrix, same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.folders.output_files import write_file
from numaproof.inputs.plurals import plural
from numaproof.protocol import codec
from numaproof.reports.markdown import code, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numaproof.protocol.kill_matrix import Hunt, Matrix

JSON, MARKDOWN = "gauntlet.json", "gauntlet.md"

_NAMED = 3
"""How many cases and invariants are named per bug; the rest are counted."""


def as_json(matrix: Matrix) -> bytes:
    """The matrix for programs; only ``seconds`` changes from run to run."""
    return msgspec.json.format(codec.encode(matrix), indent=1) + b"\n"


def write_files(matrix: Matrix, folder: Path) -> None:
    """Writes ``gauntlet.json`` and ``gauntlet.md``.

    Raises:
        OSError: a file cannot be written.
    """
    write_file(folder / JSON, as_json(matrix))
    write_file(folder / MARKDOWN, as_markdown(matrix))


def line(hunt: Hunt) -> str:
    """Says on one line what caught a bug."""
    if hunt.survived:
        return f"SURVIVED  {hunt.bug}: {_tried(hunt)}"
    return f"caught    {hunt.bug}: {'; '.join(_catches(hunt))}"


def as_text(matrix: Matrix) -> str:
    """The totals of a run, in a few lines."""
    return "\n".join(_totals(matrix)) + "\n"


def as_markdown(matrix: Matrix) -> str:
    """The whole matrix, one row per bug."""
    return "\n".join(_markdown(matrix)) + "\n"


def _tried(hunt: Hunt) -> str:
    parts = []
    if hunt.runs is not None:
        parts.append(plural(hunt.runs, "case run"))
    if hunt.examples is not None:
        parts.append(plural(hunt.examples, "example"))
    return f"not caught by {' or '.join(parts) or 'anything'}"


def _catches(hunt: Hunt) -> Iterator[str]:
    if hunt.cases:
        yield _first(hunt.cases, "case")
    if hunt.invariants:
        yield _first(hunt.invariants, "invariant")
    example = hunt.example
    if example is not None:
        yield (
            f"example {example.number:,} ({plural(example.pods, 'pod')},"
            f" {plural(example.cores, 'core')}, {plural(example.steps, 'step')})"
        )
    elif hunt.examples is not None:
        yield f"none of {plural(hunt.examples, 'example')}"


def _first(names: tuple[str, ...], what: str) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{plural(len(names), what)}: {shown}{', ...' if len(names) > _NAMED else ''}"


def _totals(matrix: Matrix) -> Iterator[str]:
    looked_up, fuzzed, found = matrix.looked_up, matrix.fuzzed, matrix.found
    seconds = matrix.seconds.values()
    yield f"{plural(len(matrix.hunts), 'seeded bug')}, {len(matrix.survivors)} survived"
    if looked_up:
        caught = sum(bool(hunt.cases) for hunt in looked_up)
        time = sum(one.table for one in seconds)
        yield f"by cases: {caught} of {len(looked_up)} caught, {time:.0f} s"
    if fuzzed:
        time = sum(one.fuzz for one in seconds)
        shrinking = sum(one.shrinking for one in seconds)
        yield (
            f"by fuzzing alone: {len(found)} of {len(fuzzed)} caught"
            f" ({len(found) / len(fuzzed):.1%}) within {plural(matrix.examples, 'example')}"
            f" from seed {matrix.seed}, {time:.0f} s, plus {shrinking:.0f} s of shrinking"
        )
    if found:
        yield (
            f"median example: number {matrix.middle('number'):,g}, {matrix.middle('pods'):g} pods,"
            f" {matrix.middle('cores'):g} cores, {matrix.middle('steps'):g} steps"
        )
    if matrix.cases:
        yield f"{len(matrix.idle)} of {plural(len(matrix.cases), 'case')} caught no bug"
    if matrix.survivors:
        yield f"survived: {', '.join(matrix.survivors)}"
    if not matrix.complete:
        yield "INCOMPLETE: the run was cut short."


def _markdown(matrix: Matrix) -> Iterator[str]:
    yield "# The gauntlet"
    yield ""
    for total in _totals(matrix):
        yield f"- {escaped(total, 10_000)}"
    yield ""
    yield (
        "| Bug | Modelled on | Cases | Invariants | Cases, s | Example | Fuzzing, s | Kind"
        " | Pods | Cores | Steps |"
    )
    yield "| --- | --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |"
    for hunt in matrix.hunts:
        yield "| " + " | ".join(_cells(matrix, hunt)) + " |"
    yield ""
    if matrix.idle:
        yield "## Cases that caught no bug"
        yield ""
        yield from (f"- {code(case)}" for case in matrix.idle)
        yield ""


def _cells(matrix: Matrix, hunt: Hunt) -> Iterator[str]:
    seconds, example = matrix.seconds[hunt.bug], hunt.example
    yield code(hunt.bug)
    yield escaped(", ".join(hunt.models))
    yield _cell(hunt.cases, tried=hunt.runs is not None)
    yield _cell(hunt.invariants, tried=False)
    yield "" if hunt.runs is None else f"{seconds.table:.1f}"
    if example is None:
        yield "" if hunt.examples is None else f"**none of {hunt.examples:,}**"
        yield "" if hunt.examples is None else f"{seconds.fuzz:.1f}"
        yield from ("", "", "", "")
        return
    yield f"{example.number:,}"
    yield f"{seconds.fuzz:.1f}"
    yield code(example.kind)
    yield from (str(example.pods), str(example.cores), str(example.steps))


def _cell(names: tuple[str, ...], *, tried: bool) -> str:
    if not names:
        return "**none**" if tried else ""
    shown = ", ".join(map(code, names[:_NAMED]))
    return f"{shown}, {len(names) - _NAMED} more" if len(names) > _NAMED else shown
