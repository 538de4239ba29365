"""The kubelet's command line: as typed or listed, in environment files and in systemd's units.

(Kubernetes documentation, "The kubelet drop-in file for systemd"; systemd.exec(5),
"EnvironmentFile"; systemd.service(5), "Command lines".)
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from numaproof.formats.configurations import environment, wrappers
from numaproof.formats.configurations.configuration import (
    Configuration,
    with_place,
)
from numaproof.formats.configurations.environment import FLAG, VARIABLE
from numaproof.formats.configurations.inner_files import inner_lines
from numaproof.inputs.documents import Document, DocumentError, MergedDocument, PathTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.formats.configurations.configuration import Words


_ASSIGNMENT = re.compile(r"\s*(export\s+)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_PREFIX = re.compile(
    r"""\s*\w+=(?P<quote>["']).*?(?P=quote)\s+(?:\S*/)?(?:kubelet|k3s|rke2|minikube|bootstrap\.sh)\s"""
)
"""A variable that is set only for the command on the same line."""

_SECTION = re.compile(r"\s*\[(Unit|Service|Install)\]\s*$")
_ENTRY = re.compile(r"\s*(Environment|EnvironmentFile|ExecStart)\s*=(.*)", re.DOTALL)
_OF_UNIT = re.compile(r"\s*(?:ExecStart|EnvironmentFile)\s*=")
_ONESHOT = re.compile(r"\s*Type\s*=\s*oneshot\s*$")
_KUBELET = re.compile(r"""(?:.*[/"'])?kubelet""")
_OPERATOR = re.compile(r"[0-9]*[<>|&;]")
_PROGRAM = re.compile(
    rf"(?:^|[\s/\"'=])(?:kubelet|k3s|rke2|minikube)[\"']?\s.*--[a-z]|{wrappers.MENTION.pattern}"
)
_SHELL_COMMAND = re.compile(r"-[a-z]*c")
_IN_CONTAINER = re.compile(r"(?:.*/bin/)?kubelet")
_CONTINUED = re.compile(r"\\\n")
_TYPOGRAPHIC = frozenset("\u2013\u2014\u201c\u201d\u2018\u2019")
"""What word processors make of ``--`` and quotes."""

_COMMENT = re.compile(r"\s*(?:[#;]|$)")
_YAML = re.compile(r"""\s*(?:["'\w./-]+\s*:(?:\s|$)|[{\[]|---|- )""")


def is_command_line(text: str) -> bool:
    """Whether a text is a command line, an environment file or a unit, and not YAML."""
    if "\0" in text:
        return True
    first = _first_line(text)
    if any(form.match(first) for form in (_SECTION, _ASSIGNMENT, FLAG)):
        return True
    return not is_yaml(text) and _PROGRAM.search(_CONTINUED.sub(" ", text)) is not None


def is_yaml(text: str) -> bool:
    """Whether a text begins like YAML or JSON, after comments."""
    return _YAML.match(_first_line(text)) is not None


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if not _COMMENT.match(line)), "")


def read(text: str, file: str) -> Iterator[Configuration]:
    """Yields the flags, or the command and the variables, in a file's text.

    Raises:
        DocumentError: it is a command line without flags, or a quote does not end.
    """
    yield _Text(text, file, range(1, text.count("\n") + 2)).configuration()


def inside(document: Document, path: PathTuple, content: str, text: str) -> Configuration:
    """Returns the flags, or the command and the variables, in a file that is part of a document.

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


def _assignment(line: _Line) -> re.Match[str] | None:
    """Returns the match of a line that sets a variable, unless it is for a command on the line."""
    return None if _PREFIX.match(line.text) else _ASSIGNMENT.match(line.text)


def _is_command(line: _Line) -> bool:
    return _PROGRAM.search(line.text.replace("\n", " ")) is not None


def _is_script(content: str, logical: Sequence[_Line]) -> bool:
    """Whether a text with assignments is a script whose commands count, not its variables."""
    names = {match[2] for line in logical if (match := _assignment(line))}
    commands = [line for line in logical if not _assignment(line) and _is_command(line)]
    return bool(commands) and (
        content.lstrip().startswith("#!")
        or any(
            (one[1] or one[2]) in names for line in commands for one in VARIABLE.finditer(line.text)
        )
    )


_QUOTED = re.compile(rf"'[^']*'|{VARIABLE.pattern}")
_NOT_PLAIN = re.compile(r"""["'\\$`;&|]""")


def _plain_value(assignment: re.Match[str], earlier: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the variable that a shell sets to a plain string.

    Others, such as those in the branches of a condition, keep their name.
    """
    _, name, is_appended, text = assignment.groups()
    value = _with_variables(text.strip(), earlier)
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    if is_appended:
        value = earlier.get(name, f"${name}") + value
    is_plain = not assignment[0][0].isspace() and not _NOT_PLAIN.search(value)
    return {name: value if is_plain else f"${{{name}}}"}


def _with_variables(text: str, variables: Mapping[str, str]) -> str:
    """Replaces the variables in a shell's text, except in single quotes."""

    def expand(variable: re.Match[str]) -> str:
        name = variable[1] or variable[2]
        return variables.get(name, variable[0]) if name else variable[0]

    return _QUOTED.sub(expand, text)


def _arguments(words: Words) -> Words:
    """Returns the arguments of a kubelet, or of a program that passes them to a kubelet.

    They are among the words between two operators of the shell. Of other programs, which take
    commands of their own, only the flags are arguments.
    """
    ends = [n for n, (word, _) in enumerate(words) if _OPERATOR.match(word)]
    commands = [words[start + 1 : end] for start, end in pairwise((-1, *ends, len(words)))]
    found = [rest for one in commands if (rest := _after_program(one))]
    passing = [one for one in commands if wrappers.wrapping_flags(one)]
    others = [rest for one in commands if (rest := one[_first_flag(one) :])]
    return next(iter((*passing, *found, *others)), [])


def _first_flag(words: Words) -> int:
    return next((n for n, (word, _) in enumerate(words) if word.startswith("-")), len(words))


def _after_program(words: Words) -> Words:
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
        self._environment_files: list[tuple[str, Document]] = []

    def configuration(self) -> Configuration:
        logical = [*self._logical()]
        empty = Configuration("a command line", "", MergedDocument(self._at(0), {}))
        if "\0" in self._content:
            words = [(word, self._at(0)) for word in self._content.strip("\0\n").split("\0")]
            return self._of_command(empty, words)
        if any(_SECTION.match(line.text) for line in logical):
            variables, command = self._of_unit(logical)
            found = empty._replace(
                product="a systemd unit", command=_arguments(command), variables=variables
            )
        elif any(map(_assignment, logical)) and not _is_script(self._content, logical):
            self._refuse_lost(logical)
            variables = self._of_environment(logical)
            found = empty._replace(product=environment.FILE, variables=variables)
        else:
            self._refuse_lost(logical)
            return self._of_command(empty, [*self._of_commands(logical)])
        return found._replace(
            notes=tuple(self._notes), environment_files=tuple(self._environment_files)
        )

    def _of_command(self, empty: Configuration, words: Words) -> Configuration:
        """Returns the flags of a command.

        Raises:
            DocumentError: there are none.
        """
        found = environment.with_flags(empty, _arguments(words))
        if not found.flags:
            raise environment.no_flags(empty)
        adds = found.adds_defaults and wrappers.product(words)
        return found._replace(notes=(*self._notes, *found.notes), adds_defaults=adds)

    def _refuse_lost(self, logical: Sequence[_Line]) -> None:
        """Refuses settings of a unit that are in no section.

        Raises:
            DocumentError: there is one.
        """
        lost = next((line for line in logical if _OF_UNIT.match(line.text)), None)
        if lost is not None:
            message = "a setting of a unit outside its section, which systemd ignores"
            raise DocumentError(
                self._file, self._at(lost.number).line(), "", message, "write [Service] above it"
            )

    def _of_commands(self, logical: Sequence[_Line]) -> Iterator[tuple[str, Document]]:
        """Yields the words of the lines with a kubelet's flags, with the script's variables."""
        variables: dict[str, str] = {}
        assigned: dict[str, _Line] = {}
        used: set[str] = set()
        for line in logical:
            if assignment := _assignment(line):
                variables |= _plain_value(assignment, variables)
                assigned[assignment[2]] = line
            elif FLAG.match(line.text) or _is_command(line):
                used |= {one[1] or one[2] for one in VARIABLE.finditer(line.text)}
                text = _with_variables(line.text, variables)
                words = self._of_shell(self._split(text, line), line)
                yield from self._expand(words, line)
        for name, line in assigned.items():
            if name in environment.KNOWN - used:
                self._note(line, f"left out {name}: no command of the script uses it")

    def _of_shell(self, words: Words, line: _Line) -> Words:
        """Returns the words of the command that a shell gets with ``-c``, or else the words."""
        inner = (
            following
            for (word, _), (following, _) in pairwise(words)
            if _SHELL_COMMAND.fullmatch(word) and _PROGRAM.search(following)
        )
        command = next(inner, None)
        return words if command is None else self._split(command, line)

    def _expand(self, words: Words, line: _Line) -> Iterator[tuple[str, Document]]:
        """Yields words, with the flags of variables that are set for a command, such as k3s's."""
        for word, place in words:
            assignment = _ASSIGNMENT.fullmatch(word)
            inner = self._split(assignment[4], line) if assignment else []
            if assignment and environment.has_flags(inner):
                if assignment[2] in environment.KNOWN:
                    yield from inner
                else:
                    self._note(line, environment.unknown_variable(assignment[2]))
            else:
                yield word, place

    def _of_environment(self, logical: Sequence[_Line]) -> Mapping[str, Words]:
        """Returns the words of each variable; the last assignment of each counts.

        Only a shell reads `export` and `+=`, replaces variables, and ends a line at a comment.
        """
        found = [(line, match) for line in logical if (match := _assignment(line))]
        assigned = {line for line, _ in found}
        for line in logical:
            if line not in assigned and _is_command(line):
                where = self._at(line.number).line()
                message = "a command between the variables of an environment file"
                fix = "keep only the command, with its flags on one line, or only the variables"
                raise DocumentError(self._file, where, "", message, fix)
        is_shell = any(match[1] or match[3] for _, match in found)
        variables: dict[str, Words] = {}
        inserted: set[str] = set()
        for line, (_, name, is_appended, text) in ((line, match.groups()) for line, match in found):
            words = [*variables.get(name, ())] if is_appended else []
            for word, place in self._value(text, line):
                if is_shell and word.startswith("#"):
                    break
                variable = VARIABLE.fullmatch(word)
                other = (variable[1] or variable[2]) if variable else ""
                earlier = variables.get(other)
                if earlier is not None and not is_shell:
                    self._note(line, f"left out {word}: systemd does not replace it in this file")
                elif earlier is not None:
                    inserted.add(other)
                words += [(word, place)] if earlier is None else earlier if is_shell else []
            variables[name] = words
        parts = inserted - environment.KNOWN
        return {name: words for name, words in variables.items() if name not in parts}

    def _value(self, text: str, line: _Line) -> Words:
        """Returns the words of a variable's value, which is the whole line if it isn't quoted."""
        words = self._split(text, line)
        if not text.startswith(('"', "'")):
            return words
        return [inner for word, _ in words for inner in self._split(word, line)]

    def _of_unit(self, logical: Sequence[_Line]) -> tuple[Mapping[str, Words], Words]:
        """Returns the variables that the unit sets, and the words of its last command."""
        variables: dict[str, Words] = {}
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
                path = entry[2].strip().removeprefix("-")
                self._environment_files.append((path, self._at(line.number)))
            else:
                commands.append((entry[2].strip(), line))
        is_oneshot = any(_ONESHOT.match(line.text) for line in logical)
        command = self._command(commands, is_oneshot=is_oneshot)
        return variables, self._of_shell(command, commands[-1][1]) if command else ()

    def _command(self, commands: Sequence[tuple[str, _Line]], *, is_oneshot: bool) -> Words:
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

    def _split(self, text: str, line: _Line) -> Words:
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
        found: list[tuple[str, Document]] = []
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
