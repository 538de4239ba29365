"""What all formats of checkpoints have in common: how a file is tried, checked and written.

A format is an immutable value: the fields, as kinds of Go's JSON, and the checksum, which is that
of Go's textual dump of the structure that the file is read into.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.reference.golang import decoding
from numaproof.reference.kubelet.checkpoints import files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Content = dict[str, Any]
"""What a file says, by the names of its fields."""

CORRUPTED = "checkpoint is corrupted"
"""What a kubelet says of a wrong checksum."""

_OPTIONAL = frozenset({"entries", "podEntries"})
"""The fields that a kubelet leaves out where they are empty."""


class UnreadableError(files.CheckpointError):
    """The file is in another format or damaged; `found` is what could be read of it."""

    def __init__(self, problem: str, found: Content) -> None:
        """Takes the kubelet's text."""
        super().__init__(problem)
        self.found = found


@dataclass(frozen=True, slots=True)
class Format:
    """A format with one checksum over all of the file.

    Attributes:
        structure: what the kubelet calls the structure that it reads the file into.
        fields: the fields besides the checksum, in order.
        dump: Go's textual dump of a structure with this name and content.
        takes_checksum_of: names of structures: the checksum of any of them is right.
        takes_no_checksum: whether a file without checksum is taken as it is.
    """

    structure: str
    fields: Mapping[str, decoding.Kind]
    dump: Callable[[str, Mapping[str, Any]], str]
    takes_checksum_of: tuple[str, ...]
    takes_no_checksum: bool = True

    def read(self, content: bytes) -> Content:
        """What the file says in this format.

        Raises:
            UnreadableError: it is not in this format, or the checksum is wrong.

        Requirements: CPU-CHECKPOINT-005, CPU-CHECKPOINT-006, CPU-CHECKPOINT-010,
        CPU-CHECKPOINT-011, MEM-CHECKPOINT-001.
        """
        fields = {**self.fields, "checksum": decoding.Unsigned("checksum.Checksum")}
        found, problem = decoding.decode_partly(content, decoding.Fields(self.structure, fields))
        if not problem and not self.takes(found):
            problem = CORRUPTED
        if problem:
            raise UnreadableError(problem, found)
        return found

    def takes(self, found: Content) -> bool:
        """Whether the checksum is right, or may be missing."""
        given = found["checksum"]
        if self.takes_no_checksum and not given:
            return True
        names = self.takes_checksum_of
        return any(given == files.checksum(self.dump(name, found)) for name in names)

    def write(self, content: Content) -> bytes:
        """The file that says this, byte for byte.

        `content` has all fields of this format; others are left out.
        """
        known = {name: content[name] for name in self.fields}
        checksum = files.checksum(self.dump(self.takes_checksum_of[0], known))
        return files.encode({**filled(known), "checksum": checksum})


def filled(content: Content) -> Content:
    """The fields that a kubelet writes: all but optional ones that are empty."""
    return {name: value for name, value in content.items() if value or name not in _OPTIONAL}


@dataclass(frozen=True, slots=True)
class Formats:
    """The formats of one manager's file in a release.

    Attributes:
        attempts: what a file is tried as, in order.
        written: what it is written as.
        keeps_pods: whether what pods have as a whole is kept over a restart.
        joins_pods: whether pods that an attempt found before it failed are kept even so.
    """

    attempts: tuple[Format, ...]
    written: Format
    keeps_pods: bool = False
    joins_pods: bool = False

    def read(self, content: bytes) -> tuple[Format, Content]:
        """The first format that the file is in, and what it says in that.

        Raises:
            CheckpointError: it is in none of them; the problem is that with the last.

        Requirements: CPU-CHECKPOINT-008, CPU-CHECKPOINT-009, CPU-CHECKPOINT-019,
        MEM-CHECKPOINT-001.
        """
        pods = None
        for attempt in self.attempts:
            try:
                found = attempt.read(content)
            except UnreadableError as error:
                problem = error
                pods = error.found.get("podEntries") or pods
            else:
                if self.joins_pods:
                    found.setdefault("podEntries", pods)
                if not self.keeps_pods:
                    found["podEntries"] = None
                return attempt, found
        raise files.CheckpointError(str(problem))
