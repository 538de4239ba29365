"""The kubelet's command line: as typed or listed, in environment files and in systemd's units.

(Kubernetes documentation, "The kubelet drop-in file for systemd"; systemd.exec(5),
"EnvironmentFile"; systemd.service(5), "Command lines".)
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from numaproof.formats.configurations.configuration import (
    EFFECTIVE,
    Configuration,
    Flag,
    read_flags,
    with_place,
)
from numaproof.formats.configurations.inner_files import inner_lines
from numaproof.inputs.documents import Document, DocumentError, MergedDocument, PathTuple
from numaproof.reference.config.flags import field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SECTION = re.compile(r"\s*\[(Unit|Service|Install)\]\s*$")
_ENTRY = re.compile(r"\s*(Environment|EnvironmentFile|ExecStart)\s*=(.*)", re.DOTALL)
_FLAG = re.compile(r"\s*--[a-z]")
_PROGRAM = re.compile(
    r"(?:^|[\s/\"'=])(?:kubelet|k3s|rke2|minikube)[\"']?\s.*--[a-z]|--kubelet-extra-args[\s=]"
)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_COMMENT = re.compile(r"\s*(?:[#;]|$)")
_YAML = re.compile(r"""\s*(?:["'\w./-]+\s*:(?:\s|$)|[{\[]|---|- )""")


def is_command_line(text: str) -> bool:
    """Whether a text is a command line, an environment file or a unit, and not YAML."""
    if "\0" in text:
        return True
    first = next((line for line in text.splitlines() if not _COMMENT.match(line)), "")
    if any(form.match(first) for form in (_SECTION, _ASSIGNMENT, _FLAG)):
        return True
    return not _YAML.match(first) and _PROGRAM.search(text) is not None


def read(text: str, file: str) -> Iterator[Configuration]:
    """Yields the flags in a file's text.

    Raises:
        DocumentError: there are none, or a quote does not end.
    """
    found = _Text(text, file, range(1, text.count("\n") + 2)).configuration()
    if not found.flags:
        fix = (
            f"expected a line such as kubelet --reserved-cpus=0; or use the output of `{EFFECTIVE}`"
        )
        raise DocumentError(file, 1, "", f"{found.product} without flags of the kubelet", fix)
    yield found


def inside(document: Document, path: PathTuple, content: str, text: str) -> Configuration:
    """Returns the flags in a file that is part of a document.

    `content` is the file's text, and `text` that of the file with the document.

    Raises:
        DocumentError: a quote does not end.
    """
    file, first = document.locate(path)
    return _Text(content, file, inner_lines(content, text, first)).configuration()


class _Line(NamedTuple):
    """A line with those that continue it after a backslash; `number` is the first one's, from 0."""

    text: str
    number: int


_Words = list[tuple[str, Document]]


class _Text:
    """A text with flags; `lines` are the lines of the file where those of the text are."""

    def __init__(self, content: str, file: str, lines: Sequence[int]) -> None:
        self._content = content
        self._physical = content.splitlines()
        self._file = file
        self._lines = lines
        self._notes: list[str] = []

    def configuration(self) -> Configuration:
        product, words = self._kind()
        found = [*_of_kubelet([*read_flags(words)])]
        open_flags = [one for one in found if _VARIABLE.search(one.value) and field(one.name)]
        for flag in open_flags:
            text = f"left out {flag}: the variable is not set in the file"
            self._notes.append(with_place(flag.place, (), text))
        return Configuration(
            product,
            "",
            MergedDocument(self._at(0), {}),
            tuple(one for one in found if one not in open_flags),
            notes=tuple(self._notes),
        )

    def _kind(self) -> tuple[str, _Words]:
        if "\0" in self._content:
            return "a command line", [(word, self._at(0)) for word in self._content.split("\0")]
        logical = [*self._logical()]
        if any(_SECTION.match(line.text) for line in logical):
            return "a systemd unit", self._of_unit(logical)
        if any(_ASSIGNMENT.match(line.text) for line in logical):
            return "an environment file", [
                word
                for line in logical
                if (assignment := _ASSIGNMENT.match(line.text))
                for value in self._split(assignment[2], line)
                for word in self._split(value[0], line)
            ]
        return "a command line", [
            word
            for line in logical
            if _FLAG.match(line.text) or _PROGRAM.search(line.text)
            for word in self._split(line.text, line)
        ]

    def _of_unit(self, logical: Sequence[_Line]) -> _Words:
        """Returns the words of the last command, with the variables that the unit sets."""
        variables: dict[str, _Words] = {}
        command: _Words = []
        for line in logical:
            entry = _ENTRY.match(line.text)
            if entry is None:
                continue
            if entry[1] == "Environment":
                for word, _ in self._split(entry[2], line):
                    name, _, value = word.partition("=")
                    variables[name] = self._split(value, line)
            elif entry[1] == "EnvironmentFile":
                path = entry[2].strip().lstrip("-")
                self._note(line, f"the unit also reads {path}: name that file also")
            else:
                command = self._split(entry[2], line)
        if not command:
            return [word for words in variables.values() for word in words]
        words: _Words = []

        def expand(variable: re.Match[str]) -> str:
            there = variables.get(variable[1] or variable[2])
            return variable[0] if there is None else " ".join(word for word, _ in there)

        for word, place in command:
            variable = _VARIABLE.fullmatch(word)
            if variable:
                words += variables.get(variable[1] or variable[2], [])
            else:
                words.append((_VARIABLE.sub(expand, word), place))
        return words

    def _logical(self) -> Iterator[_Line]:
        text, first = "", 0
        for number, line in enumerate(self._physical):
            if not text and _COMMENT.match(line):
                continue
            first = first if text else number
            if line.endswith("\\"):
                text += f"{line[:-1]}\n"
                continue
            yield _Line(text + line, first)
            text = ""
        if text:
            yield _Line(text, first)

    def _split(self, text: str, line: _Line) -> _Words:
        """Splits a text as a shell does; each word is on the line that contains it."""
        try:
            words = shlex.split(text, comments=False)
        except ValueError as error:
            where = self._at(line.number).line()
            fix = "close the quote"
            raise DocumentError(self._file, where, "", f"not a command: {error}", fix) from None
        end = line.number + line.text.count("\n") + 1
        found: _Words = []
        for word in words:
            start = word.partition("=")[0]
            span = range(line.number, end)
            number = next((n for n in span if start in self._physical[n]), line.number)
            found.append((word, self._at(number)))
        return found

    def _at(self, number: int) -> Document:
        line = self._lines[min(number, len(self._lines) - 1)]
        return Document(self._file, (line - 1, {}), {})

    def _note(self, line: _Line, text: str) -> None:
        self._notes.append(with_place(self._at(line.number), (), text))


_WRAPPED = {"kubelet-arg": "", "extra-config": "kubelet."}
"""Flags of k3s, RKE2 and minikube whose values are flags of the kubelet, after a prefix."""

_COMMAND = "kubelet-extra-args"
"""A flag of EKS's ``bootstrap.sh`` whose value is a command line of the kubelet."""


def _of_kubelet(flags: Sequence[Flag]) -> Iterator[Flag]:
    """Yields the kubelet's flags; those of a program that starts a kubelet are dropped."""
    wrapped = [flag for flag in flags if flag.name in (*_WRAPPED, _COMMAND)]
    if not wrapped:
        yield from flags
    for flag in wrapped:
        prefix = _WRAPPED.get(flag.name, "")
        if flag.name == _COMMAND:
            yield from read_flags([(word, flag.place) for word in flag.value.split()])
        elif flag.value.startswith(prefix):
            word = flag.value.removeprefix(prefix)
            yield from read_flags([(f"--{word.lstrip('-')}", flag.place)])
