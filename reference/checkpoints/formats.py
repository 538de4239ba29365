"""Formats of checkpoints: how a file is read, verified and written.

A format is an immutable value: the fields and how Go reads each of them from JSON, and the types
whose textual dumps give valid checksums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import files
from numaproof.reference.golang import decoding, dumping

if TYPE_CHECKING:
    from collections.abc import Mapping

Content = dict[str, Any]
"""The contents of a file, by field."""

CORRUPTED = "checkpoint is corrupted"
"""The kubelet's message for an incorrect checksum."""

_CHECKSUM = decoding.Unsigned("checksum.Checksum")
_OPTIONAL = frozenset({"entries", "podEntries", "baselines", "memoryBlocks"})
"""The fields that a kubelet omits if they are empty."""


class UnreadableError(files.CheckpointError):
    """The file is damaged or has another format; `content` is the part that could be read."""

    def __init__(self, problem: str, content: Content) -> None:
        super().__init__(problem)
        self.content = content


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """A format with one checksum over the whole file.

    Attributes:
        structure: the Go type that the file is read into.
        fields: all fields except for the checksum, in order.
        takes_checksum_of: the Go types whose checksums are valid.
        takes_no_checksum: whether a file without a checksum is valid.
    """

    structure: str
    fields: Mapping[str, decoding.Kind]
    takes_checksum_of: tuple[str, ...]
    takes_no_checksum: bool = True

    def read(self, content: bytes) -> Content:
        """Decodes a file in this format.

        Raises:
            UnreadableError: the file has another format, or the checksum is incorrect.

        Requirements: CPU-CHECKPOINT-005, CPU-CHECKPOINT-006, CPU-CHECKPOINT-010,
        CPU-CHECKPOINT-011, MEM-CHECKPOINT-001.
        """
        found: Content
        found, problem = decoding.decode_partly(content, _with_checksum(self))
        if not problem and not self.takes(found):
            problem = CORRUPTED
        if problem:
            raise UnreadableError(problem, found)
        return found

    def dump(self, structure: str, content: Content) -> str:
        """Returns Go's textual dump of the content as type `structure`, with a checksum of zero."""
        dump = dumping.dumper(_with_checksum(self))
        return f"(*{structure}){dump({**content, 'checksum': 0})}"

    def takes(self, content: Content) -> bool:
        """Whether the checksum is valid, or is absent where that is allowed."""
        given = content["checksum"]
        if self.takes_no_checksum and not given:
            return True
        names = self.takes_checksum_of
        return any(given == files.checksum(self.dump(name, content)) for name in names)

    def write(self, content: Content) -> bytes:
        """Encodes a file byte for byte.

        `content` has all fields of this format; other fields are ignored.
        """
        return files.encode(self.with_checksum(content))

    def with_checksum(self, content: Content) -> Content:
        known = {name: content[name] for name in self.fields}
        checksum = files.checksum(self.dump(self.takes_checksum_of[0], known))
        return {**_omit_empty(known), "checksum": checksum}


@cache
def _with_checksum(form: Format) -> decoding.Fields:
    return decoding.Fields(form.structure, {**form.fields, "checksum": _CHECKSUM})


@dataclass(frozen=True, slots=True)
class TwoPartFormat:
    """A format with fields for earlier releases, and the authoritative part ``data``.

    ``data`` is a JSON text with its own checksum, ``dataChecksum``. A file with either of these
    fields has this format, and if it is damaged, no other format is tried.

    Attributes:
        structure: the Go type that the file is read into.
        version: the name of this format in errors.
        manager: the name of the manager in errors.
        old: the format of the part for earlier releases.
        data: the Go type that ``data`` is read into.
        fields: the fields of ``data``, in order.
    """

    structure: str
    version: str
    manager: str
    old: Format
    data: str
    fields: Mapping[str, decoding.Kind]

    def read(self, content: bytes) -> Content:
        """Decodes ``data``.

        Raises:
            UnreadableError: the file has neither ``data`` nor ``dataChecksum``.
            CheckpointError: the file is damaged.

        Requirements: CPU-CHECKPOINT-022, CPU-CHECKPOINT-023, MEM-CHECKPOINT-013,
        MEM-CHECKPOINT-014.
        """
        outer, problem = decoding.decode_partly(content, self._outer())
        found: Content = {}
        if problem:
            problem = f"failed to deserialize {self.manager} checkpoint: {problem}"
        else:
            found, problem = decoding.decode_partly(
                outer["data"].encode(), decoding.Fields(self.data, self.fields)
            )
            if problem:
                problem = f"failed to deserialize {self.manager} checkpoint data: {problem}"
            elif not self.takes(outer):
                problem = CORRUPTED
        if not problem:
            return found
        if outer["data"] or outer["dataChecksum"]:
            raise files.CheckpointError(f"could not load {self.version} checkpoint: {problem}")
        raise UnreadableError(problem, {})

    def _outer(self) -> decoding.Fields:
        old: Mapping[str, decoding.Kind] = {**self.old.fields, "checksum": _CHECKSUM}
        inside = self.old.structure.rpartition(".")[2]
        return decoding.Fields(
            self.structure,
            {**old, "data": decoding.Text(), "dataChecksum": _CHECKSUM},
            embedded_in=MappingProxyType(dict.fromkeys(old, inside)),
        )

    def takes(self, content: Content) -> bool:
        """Whether ``dataChecksum`` matches ``data``; the other checksum is ignored."""
        return bool(content["dataChecksum"] == _text_checksum(content["data"]))

    def write(self, content: Content) -> bytes:
        """Encodes a file byte for byte; `content` has all fields of ``data``.

        Requirements: CPU-CHECKPOINT-021, CPU-CHECKPOINT-026, MEM-CHECKPOINT-012,
        MEM-CHECKPOINT-015.
        """
        known = {name: content[name] for name in self.fields}
        data = files.encode(_omit_empty(known)).decode()
        return files.encode(
            {**self.old.with_checksum(content), "data": data, "dataChecksum": _text_checksum(data)}
        )


def _omit_empty(content: Content) -> Content:
    """Returns all fields except optional fields that are empty."""
    filled = {name: value for name, value in content.items() if value or name not in _OPTIONAL}
    if pods := filled.get("podEntries"):
        filled["podEntries"] = {uid: _omit_empty(entry) for uid, entry in pods.items()}
    return filled


def _text_checksum(text: str) -> int:
    return files.checksum(f"(string){text}")


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats of one manager's file in a release.

    Attributes:
        attempts: the formats to try when reading, in order.
        write_format: the format to write.
        keeps_pods: whether allocations of whole pods survive a restart.
        joins_pods: whether they are kept even if only a failed attempt found them.
    """

    attempts: tuple[Format | TwoPartFormat, ...]
    write_format: Format | TwoPartFormat
    keeps_pods: bool = False
    joins_pods: bool = False

    def read(self, content: bytes) -> tuple[Format | TwoPartFormat, Content]:
        """Returns the first format that fits the file, and the decoded contents.

        Raises:
            CheckpointError: no format fits, or the file is damaged; the error reports the last
                problem.

        Requirements: CPU-CHECKPOINT-008, CPU-CHECKPOINT-009, CPU-CHECKPOINT-019,
        CPU-CHECKPOINT-024, CPU-RESTART-009, MEM-CHECKPOINT-001.
        """
        pods = None
        for attempt in self.attempts:
            try:
                found = attempt.read(content)
            except UnreadableError as error:
                problem = error
                pods = error.content.get("podEntries") or pods
            else:
                if self.keeps_pods:
                    found.setdefault("podEntries", pods if self.joins_pods else None)
                else:
                    found["podEntries"] = None
                return attempt, found
        raise files.CheckpointError(str(problem))
