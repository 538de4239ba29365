"""What became of the mutations of a sample, and what is known of those that survived."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import yaml
from cosmic_ray.work_item import TestOutcome
from processes import TIME_OUT
from sampling import module_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cosmic_ray.work_item import WorkItem, WorkResult


class MutantOutcome(StrEnum):
    """How a mutation ended.

    A check that takes too long has killed it too. What is no Python any more is no mutation.
    """

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    INVALID = "no Python"


@dataclass(frozen=True)
class CodeChange:
    """What a mutation changes, told by its lines, so that it is the same when others move it.

    Attributes:
        module: below the reference's folder.
        within: the function or class that it is in; empty for none.
        line, becomes: the text without indentation; several lines are joined by spaces.
    """

    module: str
    within: str
    line: str
    becomes: str


@dataclass(frozen=True)
class Mutant:
    """A mutation and how it ended.

    Attributes:
        number: its place in the sample.
        change: what it changes.
        row: the line of the module where it is.
        operator: Cosmic Ray's name of it.
        outcome: how it ended.
        by: the check that killed it.
        diff: unified.
    """

    number: int
    change: CodeChange
    row: int
    operator: str
    outcome: MutantOutcome
    by: str
    diff: str


class ExplanationError(Exception):
    """The file of explanations is not one; the message says where."""


def difference(before: str, after: str, module: Path) -> str:
    """The unified difference of a module and what a mutation made of it."""
    name = str(module)
    lines = (before.splitlines(), after.splitlines())
    return "\n".join(difflib.unified_diff(*lines, f"a/{name}", f"b/{name}", lineterm=""))


def mutant(item: WorkItem, result: WorkResult) -> Mutant:
    """An item of a session and its result."""
    (mutation,) = item.mutations
    diff, by = result.diff or "", result.output or ""
    if result.test_outcome == TestOutcome.SURVIVED:
        outcome = MutantOutcome.SURVIVED
    elif result.test_outcome == TestOutcome.INCOMPETENT:
        outcome = MutantOutcome.INVALID
    else:
        outcome = MutantOutcome.TIMED_OUT if by.startswith(TIME_OUT) else MutantOutcome.KILLED
    change = CodeChange(
        module_of(mutation), mutation.definition_name or "", _text(diff, "-"), _text(diff, "+")
    )
    row: int = mutation.start_pos[0]
    return Mutant(int(item.job_id), change, row, mutation.operator_name, outcome, by, diff)


def told(item: WorkItem, result: WorkResult) -> str:
    """One line for a result."""
    one = mutant(item, result)
    where = f"{one.change.module}:{one.row}"
    if one.outcome == MutantOutcome.SURVIVED:
        return f"{one.outcome} {where} {one.change.line!r} as {one.change.becomes!r}"
    return f"{one.outcome} {where} by {one.by}"


def read_explanations(text: str, name: str) -> dict[CodeChange, str]:
    """Why mutations survive, by what they change.

    Args:
        text: YAML, a list of ``module``, ``within``, ``line``, ``becomes`` and ``why``.
        name: of the file, for errors.

    Raises:
        ExplanationError: an entry lacks one of these, has another, or has a text that is none.
    """
    found = {}
    for number, entry in enumerate(yaml.safe_load(text) or [], start=1):
        if not isinstance(entry, dict) or entry.keys() != _FIELDS:
            raise ExplanationError(f"{name}: entry {number} has not just {', '.join(_FIELDS)}")
        for field, value in entry.items():
            if not isinstance(value, str):
                raise ExplanationError(f"{name}: entry {number}: {field} is not a text; quote it")
        words = {field: " ".join(value.split()) for field, value in entry.items()}
        why = words.pop("why")
        found[CodeChange(**words)] = why
    return found


def stale(explanations: Iterable[CodeChange], modules: dict[str, str]) -> list[CodeChange]:
    """Explanations of lines that no module has any more.

    Args:
        explanations: what they are of.
        modules: the sources by name below the reference's folder.
    """
    words = {name: " ".join(source.split()) for name, source in modules.items()}
    return [one for one in explanations if one.line not in words.get(one.module, "")]


_FIELDS = {"module": 0, "within": 0, "line": 0, "becomes": 0, "why": 0}.keys()


def _text(diff: str, sign: str) -> str:
    """The lines of a difference that begin with a sign, as one."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    return " ".join(" ".join(line[1:].split()) for line in lines if line.startswith(sign))
