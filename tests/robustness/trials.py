"""A trial: the command line and the files of one attack, which can be made smaller."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from robustness import nodes
from robustness.nodes import Form, Leaf, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

Pack = Literal["", "xz"]


@dataclass(frozen=True)
class Text:
    """A file by its bytes."""

    content: bytes

    def bytes(self) -> bytes:
        """What is in the file."""
        return self.content

    def smaller(self) -> Iterator[Text]:
        """The file without some of its lines, or else of its bytes."""
        lines = self.content.splitlines(keepends=True)
        for part in _halves(len(lines)):
            yield Text(b"".join((*lines[: part.start], *lines[part.stop :])))
        for part in _halves(len(self.content)):
            yield Text(self.content[: part.start] + self.content[part.stop :])


@dataclass(frozen=True)
class Document:
    """A file by its tree; `before` stands before it on its line."""

    root: Node
    form: Form
    escaped: bool = True
    before: bytes = b""

    def bytes(self) -> bytes:
        """What is in the file."""
        text = nodes.written(self.root, self.form, escaped=self.escaped)
        return self.before + text.encode(errors="surrogatepass")

    def smaller(self) -> Iterator[Document]:
        """The document without one of its nodes, or with a simpler one in its place."""
        every = sorted(nodes.paths(self.root), key=len)
        for path in every:
            node = nodes.at(self.root, path)
            if path:
                yield replace(self, root=nodes.without(self.root, path))
            for child in nodes.children(node):
                yield replace(self, root=nodes.replaced(self.root, path, child))
            if isinstance(node, Leaf) and isinstance(node.value, str) and len(node.value) > 1:
                for part in _halves(len(node.value)):
                    text = node.value[: part.start] + node.value[part.stop :]
                    yield replace(self, root=nodes.replaced(self.root, path, Leaf(text)))


@dataclass(frozen=True)
class Lines:
    """A file of lines, each a document or bytes."""

    lines: tuple[Text | Document, ...]
    pack: Pack = ""

    def bytes(self) -> bytes:
        """What is in the file."""
        whole = b"".join(one.bytes() + b"\n" for one in self.lines)
        return lzma.compress(whole, preset=0) if self.pack else whole

    def smaller(self) -> Iterator[Lines]:
        """The file without some lines, or with a smaller one."""
        for part in _halves(len(self.lines)):
            yield replace(self, lines=(*self.lines[: part.start], *self.lines[part.stop :]))
        for number, line in enumerate(self.lines):
            for less in line.smaller():
                changed = (*self.lines[:number], less, *self.lines[number + 1 :])
                yield replace(self, lines=changed)


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True)
class Folder:
    """An empty folder."""


@dataclass(frozen=True)
class Archive:
    """A tar file: names, with what each is."""

    members: tuple[tuple[str, Text | Link | Folder], ...]

    def bytes(self) -> bytes:
        """What is in the file."""
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", errors="surrogatepass") as archive:
            for name, what in self.members:
                member = tarfile.TarInfo(name)
                if isinstance(what, Text):
                    member.size = len(what.content)
                    archive.addfile(member, io.BytesIO(what.content))
                    continue
                member.type = tarfile.SYMTYPE if isinstance(what, Link) else tarfile.DIRTYPE
                member.linkname = what.target if isinstance(what, Link) else ""
                archive.addfile(member)
        return made.getvalue()

    def smaller(self) -> Iterator[Archive]:
        """The archive without some of its members."""
        for part in _halves(len(self.members)):
            yield Archive((*self.members[: part.start], *self.members[part.stop :]))


File = Text | Document | Lines | Archive | Link | Folder


def _halves(length: int) -> Iterator[slice]:
    """Parts to leave out: halves, quarters and so on, down to single ones of a short sequence."""
    size = length // 2 or 1
    while length and size and length // size <= 64:
        yield from (slice(first, first + size) for first in range(0, length, size))
        size //= 2


@dataclass(frozen=True)
class Trial:
    """An attack.

    Attributes:
        name: ``KIND:SEED``, which makes it again.
        args: the arguments of the command.
        files: what there is in its folder, by path.
        subject: the file that an error has to name; empty where it need not.
        has_lines: whether it has to name a line of it, too.
        made: the file that the command writes where it succeeds, and only there.
        terminal: whether it writes to a terminal, in colour.
    """

    name: str
    args: tuple[str, ...]
    files: dict[str, File]
    subject: str = ""
    has_lines: bool = False
    stdin: str = ""
    made: str = ""
    terminal: bool = False

    def write(self, folder: Path) -> None:
        """Puts the files into a folder."""
        for name, file in self.files.items():
            path = os.path.join(folder, name)  # noqa: PTH118 - a name may be no UTF-8
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            if isinstance(file, Link):
                os.symlink(file.target, path)  # noqa: PTH211
            elif isinstance(file, Folder):
                os.makedirs(path, exist_ok=True)  # noqa: PTH103
            else:
                Path(path).write_bytes(file.bytes())

    def smaller(self) -> Iterator[Trial]:
        """Trials with less in their files, or fewer of these."""
        if len(self.files) > 3:
            names = list(self.files)
            for part in _halves(len(names)):
                kept = {*names[: part.start], *names[part.stop :]}
                yield replace(self, files={n: f for n, f in self.files.items() if n in kept})
        for name, file in self.files.items():
            if isinstance(file, Text | Document | Lines | Archive):
                for less in file.smaller():
                    yield replace(self, files={**self.files, name: less})
        if self.name.startswith("arguments:"):
            for number in range(1, len(self.args)):
                yield replace(self, args=(*self.args[:number], *self.args[number + 1 :]))
