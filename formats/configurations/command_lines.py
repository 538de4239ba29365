"""The kubelet's command line: as typed or listed, in environment files and in systemd's units.

(Kubernetes documentation, "The kubelet drop-in file for systemd"; systemd.exec(5),
"EnvironmentFile"; systemd.service(5), "Command lines".)
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from numaproof.formats.configurations.configuration import (
    EFFECTIVE,
    Configuration,
    Flag,
    read_flags,
    refuse_word,
    with_place,
)
from numaproof.formats.configurations.inner_files import inner_lines
from numaproof.inputs.documents import Document, DocumentError, MergedDocument, PathTuple
from numaproof.reference.config.flags import field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_ASSIGNMENT = re.compile(r"\s*(export\s+)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_SECTION = re.compile(r"\s*\[(Unit|Service|Install)\]\s*$")
_ENTRY = re.compile(r"\s*(Environment|EnvironmentFile|ExecStart)\s*=(.*)", re.DOTALL)
_OF_UNIT = re.compile(r"\s*(?:ExecStart|EnvironmentFile)\s*=")
_ONESHOT = re.compile(r"\s*Type\s*=\s*oneshot\s*$")
_KUBELET = re.compile(r"""(?:.*[/"'])?kubelet""")
_OPERATOR = re.compile(r"[0-9]*[<>|&;]")
_FLAG = re.compile(r"\s*--[a-z]")
_PROGRAM = re.compile(
    r"(?:^|[\s/\"'=])(?:kubelet|k3s|rke2|minikube)[\"']?\s.*--[a-z]"
    r"|--(?:kubelet-extra-args|kubelet-arg|extra-config)[\s=]"
)
_IN_CONTAINER = re.compile(r"(?:.*/bin/)?kubelet")
_CONTINUED = re.compile(r"\\\n")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_TYPOGRAPHIC = frozenset("\u2013\u2014\u201c\u201d\u2018\u2019")
"""What word processors make of ``--`` and quotes."""

_COMMENT = re.compile(r"\s*(?:[#;]|$)")
_YAML = re.compile(r"""\s*(?:["'\w./-]+\s*:(?:\s|$)|[{\[]|---|- )""")


def is_command_line(text: str) -> bool:
    """Whether a text is a command line, an environment file or a unit, and not YAML."""
    if "\0" in text:
        return True
    first = _first_line(text)
    if any(form.match(first) for form in (_SECTION, _ASSIGNMENT, _FLAG)):
        return True
    return not is_yaml(text) and _PROGRAM.search(_CONTINUED.sub(" ", text)) is not None


def is_yaml(text: str) -> bool:
    """Whether a text begins like YAML or JSON, after comments."""
    return _YAML.match(_first_line(text)) is not None


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if not _COMMENT.match(line)), "")


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


def _with_flags(words: _Words) -> _Words:
    """Returns words, or none if no flag is among them."""
    return words if any(_FLAG.match(word) for word, _ in words) else []


def _arguments(words: _Words) -> _Words:
    """Returns the arguments of a kubelet, or of a program that passes them to a kubelet.

    They are among the words between two operators of the shell. Of other programs, which take
    commands of their own, only the flags are arguments.
    """
    ends = [n for n, (word, _) in enumerate(words) if _OPERATOR.match(word)]
    commands = [words[start + 1 : end] for start, end in pairwise((-1, *ends, len(words)))]
    found = [rest for one in commands if (rest := _after_program(one))]
    passing = [one for one in commands if _wrappers(one)]
    others = [rest for one in commands if (rest := one[_first_flag(one) :])]
    return next(iter((*passing, *found, *others)), [])


def _first_flag(words: _Words) -> int:
    return next((n for n, (word, _) in enumerate(words) if word.startswith("-")), len(words))


def _after_program(words: _Words) -> _Words:
    """Returns the words after a kubelet, which may be the command of a container."""
    flags = _first_flag(words)
    programs = [n for n, (word, _) in enumerate(words[:flags]) if _KUBELET.fullmatch(word)]
    inside = (
        n
        for n, ((word, _), (following, _)) in enumerate(pairwise(words))
        if _IN_CONTAINER.fullmatch(word) and following.startswith("--")
    )
    start = programs[-1] if programs else next(inside, len(words))
    return words[start + 1 :]


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
        arguments = _arguments(words)
        found = [*_of_kubelet(arguments, self._refuse)]
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
            adds_defaults=self._product(_wrappers(arguments)),
        )

    def _product(self, wrappers: set[str]) -> str:
        """Returns the product that starts a kubelet with further settings; empty if none does."""
        if _COMMAND in wrappers:
            marks = (name for mark, name in _SCRIPTS if mark in self._content)
            return next(marks, "the program that gets --kubelet-extra-args")
        return next((_WRAPPED[name][1] for name in wrappers), "")

    def _refuse(self, word: str, place: Document) -> None:
        """Refuses a word that belongs to no flag, unless it is an unknown variable."""
        if _VARIABLE.match(word):
            text = f"left out {word}: the variable is not set in the file"
            self._notes.append(with_place(place, (), text))
        else:
            refuse_word(word, place)

    def _kind(self) -> tuple[str, _Words]:
        if "\0" in self._content:
            return "a command line", [
                (word, self._at(0)) for word in self._content.strip("\0\n").split("\0")
            ]
        logical = [*self._logical()]
        if any(_SECTION.match(line.text) for line in logical):
            return "a systemd unit", self._of_unit(logical)
        lost = next((line for line in logical if _OF_UNIT.match(line.text)), None)
        if lost is not None:
            message = "a setting of a unit outside its section, which systemd ignores"
            raise DocumentError(
                self._file, self._at(lost.number).line(), "", message, "write [Service] above it"
            )
        if any(_ASSIGNMENT.match(line.text) for line in logical):
            return "an environment file", [*self._of_environment(logical)]
        return "a command line", [
            word
            for line in logical
            if _FLAG.match(line.text) or _PROGRAM.search(line.text.replace("\n", " "))
            for word in self._expand(self._split(line.text, line), line)
        ]

    def _expand(self, words: _Words, line: _Line) -> Iterator[tuple[str, Document]]:
        """Yields words, with the flags of variables that are set for a command, such as k3s's."""
        for word, place in words:
            assignment = _ASSIGNMENT.fullmatch(word)
            inner = _with_flags(self._split(assignment[4], line)) if assignment else []
            yield from inner or [(word, place)]

    def _of_environment(self, logical: Sequence[_Line]) -> Iterator[tuple[str, Document]]:
        """Yields the words of the variables with flags; the last assignment of each counts.

        Only a shell reads `export` and `+=`, replaces variables, and ends a line at a comment.
        """
        found = [(line, match) for line in logical if (match := _ASSIGNMENT.match(line.text))]
        assigned = {line for line, _ in found}
        for line in logical:
            if line not in assigned and _PROGRAM.search(line.text.replace("\n", " ")):
                where = self._at(line.number).line()
                message = "a command between the variables of an environment file"
                fix = "keep only the command, with its flags on one line, or only the variables"
                raise DocumentError(self._file, where, "", message, fix)
        is_shell = any(match[1] or match[3] for _, match in found)
        variables: dict[str, _Words] = {}
        for line, (_, name, is_appended, text) in ((line, match.groups()) for line, match in found):
            words: _Words = [*variables.get(name, ())] if is_appended else []
            for word, place in self._value(text, line):
                if is_shell and word.startswith("#"):
                    break
                variable = _VARIABLE.fullmatch(word)
                earlier = variables.get(variable[1] or variable[2]) if variable else None
                if earlier is not None and not is_shell:
                    self._note(line, f"left out {word}: systemd does not replace it in this file")
                words += [(word, place)] if earlier is None else earlier if is_shell else []
            variables[name] = words
        for words in variables.values():
            yield from _with_flags(words)

    def _value(self, text: str, line: _Line) -> _Words:
        """Returns the words of a variable's value, which is the whole line if it isn't quoted."""
        words = self._split(text, line)
        if not text.startswith(('"', "'")):
            return words
        return [inner for word, _ in words for inner in self._split(word, line)]

    def _of_unit(self, logical: Sequence[_Line]) -> _Words:
        """Returns the words of the last command, with the variables that the unit sets."""
        variables: dict[str, _Words] = {}
        commands: list[tuple[str, _Line]] = []
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
                commands.append((entry[2].strip(), line))
        command = self._command(
            commands, is_oneshot=any(_ONESHOT.match(line.text) for line in logical)
        )
        if not command:
            return [word for words in variables.values() for word in _with_flags(words)]
        words: _Words = []

        def expand(variable: re.Match[str]) -> str:
            there = variables.get(variable[1] or variable[2])
            return variable[0] if there is None else " ".join(word for word, _ in there)

        for word, place in command:
            variable = _VARIABLE.fullmatch(word)
            if variable and (variable[1] or variable[2]) in variables:
                words += variables[variable[1] or variable[2]]
            else:
                words.append((_VARIABLE.sub(expand, word), place))
        return words

    def _command(self, commands: Sequence[tuple[str, _Line]], *, is_oneshot: bool) -> _Words:
        """Returns the words of a unit's last command; an empty one resets those before it.

        Raises:
            DocumentError: there are several, which only units of type ``oneshot`` may have.
        """
        resets = [n for n, (text, _) in enumerate(commands) if not text]
        current = commands[resets[-1] + 1 :] if resets else commands
        if len(current) > 1 and not is_oneshot:
            where = self._at(current[1][1].number).line()
            message = "more than one ExecStart=, which systemd refuses"
            fix = "write an empty ExecStart= above it, which resets the first"
            raise DocumentError(self._file, where, "", message, fix)
        return self._split(*current[-1]) if current else []

    def _logical(self) -> Iterator[_Line]:
        text, first = "", 0
        is_unit = any(map(_SECTION.match, self._physical))
        for number, line in enumerate(self._physical):
            if not text and _COMMENT.match(line):
                continue
            if is_unit and line.lstrip()[:1] in {"#", ";"}:
                text += "\n"  # systemd ignores comments within a continued line
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
        if typographic := next((word for word in words if word[:1] in _TYPOGRAPHIC), None):
            where, fix = self._at(line.number).line(), 'type -- and " instead'
            message = f"{typographic.split('=')[0]!r} begins with a typographic dash or quote"
            raise DocumentError(self._file, where, "", message, fix)
        end = line.number + line.text.count("\n") + 1
        found: _Words = []
        for word in words:
            span = range(line.number, end)
            texts = (word, word.partition("=")[0])
            places = (n for text in texts for n in span if text in self._physical[n])
            number = next(places, line.number)
            found.append((word, self._at(number)))
        return found

    def _at(self, number: int) -> Document:
        line = self._lines[min(number, len(self._lines) - 1)]
        return Document(self._file, (line - 1, {}), {})

    def _note(self, line: _Line, text: str) -> None:
        self._notes.append(with_place(self._at(line.number), (), text))


_WRAPPED = {"kubelet-arg": ("", "k3s and RKE2"), "extra-config": ("kubelet.", "minikube")}
"""Flags whose values are flags of the kubelet: the prefix of each, and the products."""

_COMMAND = "kubelet-extra-args"
"""A flag whose value is a command line of the kubelet."""

_SCRIPTS = (("bootstrap.sh", "EKS"), ("oke-init", "OKE"), ("k0s", "k0s"))
"""Programs with such a flag, and their products."""


def _wrappers(words: _Words) -> set[str]:
    """Returns the flags among some words whose values are flags of the kubelet."""
    names = {word.lstrip("-").partition("=")[0] for word, _ in words if word.startswith("--")}
    return names & {*_WRAPPED, _COMMAND}


def _of_kubelet(words: _Words, on_other: Callable[[str, Document], None]) -> Iterator[Flag]:
    """Yields the kubelet's flags; those of a program that starts a kubelet are dropped."""
    if not _wrappers(words):
        yield from read_flags(words, on_other)
        return
    for number, (word, place) in enumerate(words):
        # Which of the program's other flags have a value isn't known here.
        name, separator, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not _wrappers([(word, place)]):
            continue
        if not separator:
            value = words[number + 1][0] if number + 1 < len(words) else ""
        if name == _COMMAND:
            yield from read_flags([(one, place) for one in value.split()], on_other)
        elif value.startswith(_WRAPPED[name][0]):
            inner = value.removeprefix(_WRAPPED[name][0])
            yield from read_flags([(f"--{inner.lstrip('-')}", place)])
