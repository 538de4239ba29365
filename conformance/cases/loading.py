"""Reads and checks case files.

A file has ``cases`` and, optionally, ``defaults`` for them. Files from `numaproof fuzz` contain a
single case in the same format.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import checking
from numaproof.conformance.cases.schema import Case, Machines, Written
from numaproof.inputs import documents, names, typed
from numaproof.protocol.machine import MachineInfo  # noqa: TC001 - msgspec reads annotations
from numaproof.protocol.messages import LEVELS, Level, Told
from numaproof.workdir import cache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path


class CaseError(ValueError):
    """A case can't be played as written; the message names the case and the step.

    Attributes:
        case: the id of the case.
        step: the number of the step, from 1; 0 for the case as a whole.
        message: what is wrong.
    """

    def __init__(self, case: str, step: int, message: str) -> None:
        self.case = case
        self.step = step
        self.message = message
        where = f"case {case}, step {step}" if step else f"case {case}"
        super().__init__(f"{where}: {message}")


@contextmanager
def locate_errors(paths: Iterable[Path]) -> Iterator[None]:
    """Adds the file and line to a `CaseError` about a case in these files.

    Args:
        paths: case files and folders.

    Raises:
        documents.DocumentError: the case is in one of the files.
        CaseError: the case is in none of them.
    """
    try:
        yield
    except CaseError as error:
        for file in files_of(paths):
            document = documents.load(file)
            cases = document.data["cases"]
            for number, case in enumerate(cases):
                if case["id"] == error.case:
                    step = ("steps", error.step - 1) if error.step else ()
                    raise document.error(("cases", number, *step), str(error)) from None
        raise


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """The case files at these paths, including those in folders, in order.

    Raises:
        documents.DocumentError: a folder contains no case file.
    """
    for path in paths:
        files = sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]
        if not files:
            raise documents.DocumentError(str(path), 0, "", "the folder contains no .yaml files")
        yield from files


class Defaults(Written, frozen=True):
    """Defaults for the cases of a file."""

    config: dict[str, Any] = msgspec.field(default_factory=dict)
    machines: Machines = Machines()
    machine: MachineInfo | None = None
    level: Level = "admission"
    kubernetes: str = ""
    tell: tuple[Told, ...] = ()
    check_node: bool = False


class CaseFile(Written, frozen=True):
    """A case file."""

    cases: tuple[Case, ...]
    defaults: Defaults = Defaults()


@functools.cache
def bundled_cases() -> tuple[Case, ...]:
    """The bundled cases, ordered by file name.

    Raises:
        documents.DocumentError: a file is not a case file.
    """
    root = resources.files("numaproof.conformance") / "suite"
    files = {file.name: file.read_bytes() for file in sorted(root.iterdir(), key=str)}
    key = cache.digest(("conformance/cases", "inputs"), files.values())
    cases: tuple[Case, ...] | None = cache.read("cases", key, tuple[Case, ...])
    if cases is None:
        cases = tuple(
            case
            for name, content in files.items()
            for case in parse(content.decode(), f"conformance/suite/{name}")
        )
        cache.write("cases", key, cases)
    return cases


@functools.cache
def bundled_by_id() -> Mapping[str, Case]:
    """The bundled cases by id."""
    return {case.id: case for case in bundled_cases()}


def read_file(path: Path) -> tuple[Case, ...]:
    """Reads the cases of a user's file.

    Raises:
        documents.DocumentError: the file is unreadable or not a case file.
    """
    return _cases(documents.load(path))


def with_own(
    cases: tuple[Case, ...], paths: Iterable[Path], requirements: Collection[str]
) -> tuple[Case, ...]:
    """Appends the cases of a user's files and folders, which may cite only these requirements.

    Raises:
        documents.DocumentError: a file is not a case file, reuses an id or cites an unknown
            requirement, or a folder contains no case file.
    """
    found = list(cases)
    taken = {name for case in cases for name in (case.id, *case.aliases)}
    for path in paths:
        for file in files_of([path]):
            for number, case in enumerate(read_file(file)):
                place: documents.PathTuple = ("cases", number)
                if case.id in taken:
                    message = f"the id {case.id} is already used"
                    raise documents.load(file).error((*place, "id"), message, "rename it")
                for position, name in enumerate(case.requirements):
                    if name not in requirements:
                        place = (*place, "requirements", position)
                        message = f"no requirement {name}"
                        fix = names.suggestion(name, requirements)
                        raise documents.load(file).error(place, message, fix)
                taken.update((case.id, *case.aliases))
                found.append(case)
    return tuple(found)


def files_by_id(paths: Iterable[Path]) -> dict[str, str]:
    """The file of each case in a user's files and folders, by case id.

    Raises:
        documents.DocumentError: a file is not a case file.
    """
    return {case.id: str(file) for file in files_of(paths) for case in read_file(file)}


def parse(text: str, file: str) -> tuple[Case, ...]:
    """Reads cases from YAML text; `file` is the name to use in messages.

    Raises:
        documents.DocumentError: the text is not a case file.
    """
    return _cases(documents.load(text, file=file))


def _cases(document: documents.Document) -> tuple[Case, ...]:
    table = typed.convert(document, CaseFile)
    return tuple(
        _case(document, ("cases", number), case, table.defaults)
        for number, case in enumerate(table.cases)
    )


def _case(
    document: documents.Document, path: documents.PathTuple, raw_case: Case, defaults: Defaults
) -> Case:
    case = _with_defaults(raw_case, defaults, document.data["cases"][path[-1]])
    place: documents.PathTuple = ()
    try:
        checking.check_range(raw_case.kubernetes, (*path, "kubernetes"))
        checking.check_range(defaults.kubernetes, ("defaults", "kubernetes"))
        place = path
        checking.check(case)
    except checking.WrongCaseError as wrong:
        raise document.error((*place, *wrong.path), wrong.message, wrong.fix) from None
    return case


def _with_defaults(case: Case, defaults: Defaults, fields: dict[str, Any]) -> Case:
    return msgspec.structs.replace(
        case,
        config=merge_configs(defaults.config, case.config),
        machines=case.machines if "machines" in fields else defaults.machines,
        machine=case.machine if {"machine", "machines"} & fields.keys() else defaults.machine,
        level=case.level if "level" in fields else defaults.level,
        kubernetes=case.kubernetes or defaults.kubernetes,
        tell=case.tell if "tell" in fields else defaults.tell,
        check_node=case.check_node if "check_node" in fields else defaults.check_node,
    )


def merge_configs(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merges two configurations: mappings are merged recursively; other values come from `above`.

    A value of None in `above` removes the key.
    """
    result = dict(below)
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge_configs(result[key], value)
        else:
            result[key] = value
    return result


def applies(level: Level, claimed_level: Level) -> bool:
    """Whether a check at `level` applies to an implementation that claims `claimed_level`."""
    return LEVELS.index(level) <= LEVELS.index(claimed_level)
