"""Writes board data, to one file or to a folder of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.folders.output_files import write_file
from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError
from numaproof.protocol import codec
from numaproof.reports.board.data import TAG, data_name, encoded
from numaproof.reports.board.standing import implementations

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.reports.board.data import RunData
    from numaproof.reports.board.reading import RunsRead


class _AnyVersion(msgspec.Struct, frozen=True):
    """What board data of any version has."""

    data: str


def refuse_others(path: Path) -> None:
    """Refuses to write board data in the place of a file that has something else in it.

    Raises:
        DocumentError: the file is no board data, or cannot be read.
    """
    if not _is_file(path) or not path.exists():
        return
    try:
        found = codec.decode(door.read(path), _AnyVersion).data
    except codec.ProtocolError:
        found = ""
    if found != TAG:
        text = "there is something in it that is no board data"
        raise DocumentError(str(path), 0, "", text, "name another file for --data")


def _is_file(path: Path) -> bool:
    return path.name.endswith(".json")


def write_data(reading: RunsRead, path: Path) -> None:
    """Writes board data: one file if its name ends with ``.json``, else a folder of files.

    Raises:
        OSError: a file cannot be written.
    """
    entries = [
        run for one in implementations(reading.runs) for entry in one.entries for run in entry.runs
    ]
    others = reading.others
    if _is_file(path):
        write_file(path, encoded(entries, others))
        return
    taken: dict[str, list[RunData]] = {}
    for run in entries:
        taken.setdefault(data_name(run), []).append(run)
    for name, runs in taken.items():
        cited = {cited for run in runs for cited in run.requirements}
        write_file(path / name, encoded(runs, [one for one in others if one.id in cited]))
