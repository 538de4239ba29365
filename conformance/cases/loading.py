"""Case files: read, checked, and turned into cases.

A file holds ``defaults`` (which its cases take over where they say nothing) and ``cases``. A
file that `numaproof fuzz` writes holds one case in the same form.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import releases
from numaproof.conformance.cases.errors import files_of
from numaproof.conformance.cases.schema import (
    VERBS,
    Case,
    Expected,
    ExpectedIn,
    Machines,
    Step,
    Written,
)
from numaproof.conformance.cases.verbs import EXPECTED_BY_VERB
from numaproof.inputs import documents, fitting
from numaproof.protocol.messages import LEVELS, Level
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path


MOST_STEPS = 1000
"""Steps of a case. After each, the whole node is judged and kept for the report; a case that
fuzzing finds has a few dozen."""


class Defaults(Written, frozen=True):
    """What the cases of one file share."""

    config: dict[str, Any] = msgspec.field(default_factory=dict)
    machines: Machines = Machines()
    level: Level = "admission"
    kubernetes: str = ""


class CaseFile(Written, frozen=True):
    """A case file."""

    cases: tuple[Case, ...]
    defaults: Defaults = Defaults()


def bundled_cases() -> tuple[Case, ...]:
    """The project's own cases, in the order of their files' names.

    Raises:
        documents.DocumentError: a file is not a table of cases.
    """
    root = resources.files("numaproof.conformance") / "suite"
    return tuple(
        case
        for file in sorted(_files(root), key=str)
        for case in parse(file.read_text(encoding="utf-8"), f"conformance/suite/{file.name}")
    )


def read_file(path: Path) -> tuple[Case, ...]:
    """The cases of a user's own file.

    Raises:
        documents.DocumentError: unreadable, or not a table of cases.
    """
    document = documents.load(path)
    return _cases(document)


def with_own(bundled: tuple[Case, ...], paths: Iterable[Path]) -> tuple[Case, ...]:
    """The cases, and after them those of a user's own files, or of all the files in a folder.

    Raises:
        documents.DocumentError: a file is not a table of cases, or has an id that stands
            elsewhere; a folder has no such file.
    """
    found = list(bundled)
    taken = {name for case in bundled for name in (case.id, *case.aliases)}
    for path in paths:
        for file in files_of([path]):
            for number, case in enumerate(read_file(file)):
                if case.id in taken:
                    document = documents.load(file)
                    raise document.error(
                        ("cases", number, "id"), f"there is another case {case.id}", "rename it"
                    )
                taken.update((case.id, *case.aliases))
                found.append(case)
    return tuple(found)


def parse(text: str, file: str) -> tuple[Case, ...]:
    """The cases that a text holds; `file` is its name in messages.

    Raises:
        documents.DocumentError: the text is not a table of cases.
    """
    return _cases(documents.load(text, file=file))


def _files(root: Traversable) -> Iterator[Traversable]:
    for entry in root.iterdir():
        if entry.is_dir():
            yield from _files(entry)
        elif entry.name.endswith(".yaml"):
            yield entry


def _cases(document: documents.Document) -> tuple[Case, ...]:
    table = fitting.convert(document, CaseFile)
    return tuple(
        _case(document, ("cases", number), case, table.defaults)
        for number, case in enumerate(table.cases)
    )


def _case(
    document: documents.Document, path: documents.PathTuple, written: Case, defaults: Defaults
) -> Case:
    case = _with_defaults(written, defaults, document.data["cases"][path[-1]])
    if not case.steps:
        raise document.error((*path, "steps"), "a case needs a step", "give it one, or remove it")
    if len(case.steps) > MOST_STEPS:
        message = f"{len(case.steps):,} steps, more than {MOST_STEPS:,}"
        raise document.error((*path, "steps"), message, "make several cases of it")
    for place, constraint in (
        ((*path, "kubernetes"), written.kubernetes),
        (("defaults", "kubernetes"), defaults.kubernetes),
    ):
        try:
            releases.includes(constraint, RELEASES[0])
        except releases.ConstraintError as error:
            raise document.error(place, str(error), 'write "< 1.36" or ">= 1.36"') from None
    for number, step in enumerate(case.steps):
        _check_step(document, (*path, "steps", number), step, case.kubernetes)
    return case


def _check_step(
    document: documents.Document, path: documents.PathTuple, step: Step, kubernetes: str
) -> None:
    given = [verb for verb in VERBS if getattr(step, verb) is not None]
    if len(given) != 1:
        raise document.error(
            path,
            f"a step does one thing, this one has {' and '.join(given) or 'no verb'}",
            f"give it one of {', '.join(VERBS)}",
        )
    if step.start is not None and step.start.kubernetes is not None:
        try:
            releases.check_name(step.start.kubernetes)
        except releases.ConstraintError as error:
            raise document.error(
                (*path, "start", "kubernetes"), str(error), 'write a release such as "1.36"'
            ) from None
    tamper = step.tamper
    if tamper and tamper.checkpoint is not None and (tamper.how != "write" or tamper.text):
        raise document.error(
            (*path, "tamper", "checkpoint"),
            "a checkpoint is written, in the place of a text",
            "let how be write, and leave out text",
        )
    if isinstance(step.expect, Expected):
        _check_verb(document, (*path, "expect"), step.expect, given[0])
    elif isinstance(step.expect, tuple):
        for number, one in enumerate(step.expect):
            _check_verb(document, (*path, "expect", number), one, given[0])
        _check_releases(document, (*path, "expect"), step.expect, kubernetes)


def _check_verb(
    document: documents.Document, path: documents.PathTuple, expected: Expected, verb: str
) -> None:
    allowed = EXPECTED_BY_VERB[verb]
    for field in Expected.__struct_fields__:
        if field not in allowed and getattr(expected, field) != getattr(Expected(), field):
            raise document.error(
                (*path, field),
                f"{verb} has no {field} to expect",
                f"it can expect {', '.join(sorted(allowed)) or 'nothing but success'}",
            )


def _check_releases(
    document: documents.Document,
    path: documents.PathTuple,
    expected: tuple[ExpectedIn, ...],
    kubernetes: str,
) -> None:
    """Each release that a case is for must have one expectation, and only one."""
    taken: dict[str, str] = {}
    for number, one in enumerate(expected):
        where = (*path, number, "kubernetes")
        try:
            named = [release for release in RELEASES if releases.includes(one.kubernetes, release)]
        except releases.ConstraintError as error:
            raise document.error(where, str(error), 'write "< 1.36" or ">= 1.36"') from None
        if one.anything and one != ExpectedIn(kubernetes=one.kubernetes, anything=True):
            message = "expects anything, and something besides"
            raise document.error((*path, number), message, "leave out one of the two")
        for release in named:
            if release in taken:
                message = f"Kubernetes {release} is in {taken[release]!r} too"
                raise document.error(where, message, "let the ranges not overlap")
            taken[release] = one.kubernetes
    for release in RELEASES:
        if releases.includes(kubernetes, release) and release not in taken:
            message = f"does not say what to expect in Kubernetes {release}"
            raise document.error(path, message, "add an item for it, or narrow the case")


def _with_defaults(case: Case, defaults: Defaults, written: dict[str, Any]) -> Case:
    return msgspec.structs.replace(
        case,
        config=merged(defaults.config, case.config),
        machines=case.machines if "machines" in written else defaults.machines,
        level=case.level if "level" in written else defaults.level,
        kubernetes=case.kubernetes or defaults.kubernetes,
    )


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Two configurations as one: mappings are merged, anything else is replaced.

    A value of None in `above` takes the key away.
    """
    result = dict(below)
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def applies(level: Level, claimed: Level) -> bool:
    """Whether something checked at `level` applies to an implementation that claims `claimed`."""
    return LEVELS.index(level) <= LEVELS.index(claimed)
