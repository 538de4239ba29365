"""What all formats of checkpoints have in common: how a file is tried, checked and written.

A format is an immutable value: the fields, as kinds of Go's JSON, and the checksum, which is that
of Go's textual dump of the structure that the file is read into.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import files
from numaproof.reference.golang import decoding, dumping

if TYPE_CHECKING:
    from collections.abc import Mapping

Content = dict[str, Any]
"""What a file says, by the names of its fields."""

CORRUPTED = "checkpoint is corrupted"
"""What a kubelet says of a wrong checksum."""

_CHECKSUM = decoding.Unsigned("checksum.Checksum")
_OPTIONAL = frozenset({"entries", "podEntries", "baselines", "memoryBlocks"})
"""The fields that a kubelet leaves out where they are empty."""


class UnreadableError(files.CheckpointError):
    """The file is in another format or damaged; `content` is what could be read of it."""

    def __init__(self, problem: str, content: Content) -> None:
        """Takes the kubelet's text."""
        super().__init__(problem)
        self.content = content


@dataclass(frozen=True, slots=True)
class Format:
    """A format with one checksum over all of the file.

    Attributes:
        structure: what the kubelet calls the structure that it reads the file into.
        fields: the fields besides the checksum, in order.
        takes_checksum_of: names of structures: the checksum of any of them is right.
        takes_no_checksum: whether a file without checksum is taken as it is.
    """

    structure: str
    fields: Mapping[str, decoding.Kind]
    takes_checksum_of: tuple[str, ...]
    takes_no_checksum: bool = True

    def read(self, content: bytes) -> Content:
        """What the file says in this format.

        Raises:
            UnreadableError: it is not in this format, or the checksum is wrong.

        Requirements: CPU-CHECKPOINT-005, CPU-CHECKPOINT-006, CPU-CHECKPOINT-010,
        CPU-CHECKPOINT-011, MEM-CHECKPOINT-001.
        """
        fields = {**self.fields, "checksum": _CHECKSUM}
        found: Content
        found, problem = decoding.decode_partly(content, decoding.Fields(self.structure, fields))
        if not problem and not self.takes(found):
            problem = CORRUPTED
        if problem:
            raise UnreadableError(problem, found)
        return found

    def dump(self, structure: str, content: Content) -> str:
        """Go's textual dump of a structure with this name and content, without its checksum."""
        fields = {**self.fields, "checksum": _CHECKSUM}
        return f"(*{structure}){dumping.dump(fields, {**content, 'checksum': 0})}"

    def takes(self, content: Content) -> bool:
        """Whether the checksum is right, or may be missing."""
        given = content["checksum"]
        if self.takes_no_checksum and not given:
            return True
        names = self.takes_checksum_of
        return any(given == files.checksum(self.dump(name, content)) for name in names)

    def write(self, content: Content) -> bytes:
        """The file that says this, byte for byte.

        `content` has all fields of this format; others are left out.
        """
        return files.encode(self.with_checksum(content))

    def with_checksum(self, content: Content) -> Content:
        """The fields that are written, with the checksum."""
        known = {name: content[name] for name in self.fields}
        checksum = files.checksum(self.dump(self.takes_checksum_of[0], known))
        return {**_omit_empty(known), "checksum": checksum}


@dataclass(frozen=True, slots=True)
class TwoPartFormat:
    """A format with the fields that earlier releases read, and ``data``, which alone is believed.

    ``data`` is a JSON text with a checksum of its own, ``dataChecksum``. Where there is a trace of
    either, the file is of this format, and damage to it is final.

    Attributes:
        structure: what the kubelet calls the structure that it reads the file into.
        version: what errors call this format.
        manager: what errors call the manager.
        old: the format of the part for earlier releases.
        data: what the kubelet calls the structure that it reads ``data`` into.
        fields: the fields of ``data``, in order.
    """

    structure: str
    version: str
    manager: str
    old: Format
    data: str
    fields: Mapping[str, decoding.Kind]

    def read(self, content: bytes) -> Content:
        """What ``data`` says.

        Raises:
            UnreadableError: the file has no such part.
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
        """Whether ``dataChecksum`` is that of ``data``; the other checksum is never looked at."""
        return bool(content["dataChecksum"] == _text_checksum(content["data"]))

    def write(self, content: Content) -> bytes:
        """The file that says this, byte for byte; `content` has all fields of ``data``.

        Requirements: CPU-CHECKPOINT-021, CPU-CHECKPOINT-026, MEM-CHECKPOINT-012,
        MEM-CHECKPOINT-015.
        """
        known = {name: content[name] for name in self.fields}
        data = files.encode(_omit_empty(known)).decode()
        return files.encode(
            {**self.old.with_checksum(content), "data": data, "dataChecksum": _text_checksum(data)}
        )


def _omit_empty(content: Content) -> Content:
    """The fields that a kubelet writes: all but optional ones that are empty."""
    filled = {name: value for name, value in content.items() if value or name not in _OPTIONAL}
    if pods := filled.get("podEntries"):
        filled["podEntries"] = {uid: _omit_empty(entry) for uid, entry in pods.items()}
    return filled


def _text_checksum(text: str) -> int:
    """The checksum of a text alone."""
    return files.checksum(f"(string){text}")


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats of one manager's file in a release.

    Attributes:
        attempts: what a file is tried as, in order.
        write_format: what it is written as.
        keeps_pods: whether what pods have as a whole is kept over a restart.
        joins_pods: whether pods that an attempt found before it failed are kept even so.
    """

    attempts: tuple[Format | TwoPartFormat, ...]
    write_format: Format | TwoPartFormat
    keeps_pods: bool = False
    joins_pods: bool = False

    def read(self, content: bytes) -> tuple[Format | TwoPartFormat, Content]:
        """The first format that the file is in, and what it says in that.

        Raises:
            CheckpointError: it is in none of them, or damaged; the problem is the last one.

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
