"""Finds the named defects that make the kubelet's answers differ from the documented ones.

A question is first repeated without any defects. If the answers differ, it is repeated for each
defect of the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from numaproof.reference.deviations.defects import DEFECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from numaproof.reference.deviations.deviation import Defect

Subject = TypeVar("Subject")
"""The subject of an answer."""

PAGE = "docs/findings.md"
"""The page that describes every named defect."""


class NamedDefect(msgspec.Struct, frozen=True):
    """A defect: its name, its effect, the page that describes it, and its public issue, if any."""

    name: str
    what: str
    page: str
    issue: str


class DefectNote(msgspec.Struct, frozen=True):
    """An answer affected by named defects.

    Attributes:
        defects: the defects that contribute.
        part: the part of the whole answer.
        subject: the subject within that part; empty for all of it.
        kubelet, documented_answer: the two answers; None if missing.
    """

    defects: tuple[NamedDefect, ...]
    part: str
    subject: str
    kubelet: Any
    documented_answer: Any


def notes(
    releases: Collection[str],
    kubelet: Mapping[tuple[str, str], object],
    ask: Callable[[frozenset[str]], Mapping[tuple[str, str], object]],
) -> tuple[DefectNote, ...]:
    """Returns a note for each answer affected by defects of the releases.

    Answers are keyed by part and subject. The arguments are as for `attribute_defects`.
    """
    documented = ask(of_releases(releases))
    found = attribute_defects(differing_subjects(kubelet, documented), kubelet, releases, ask)
    return tuple(
        DefectNote(defects, *subject, kubelet.get(subject), documented.get(subject))
        for subject, defects in found.items()
    )


def of_releases(releases: Collection[str]) -> frozenset[str]:
    """Returns the names of these releases' defects with which the kubelet still gives an answer."""
    return frozenset(
        one.name for one in DEFECTS if one.answers and not set(releases).isdisjoint(one.releases)
    )


def differing_subjects(
    kubelet: Mapping[Subject, object], documented_answers: Mapping[Subject, object]
) -> list[Subject]:
    """Returns the subjects whose answers differ, in the order of the kubelet's answers."""
    subjects = dict.fromkeys((*kubelet, *documented_answers))
    return [one for one in subjects if kubelet.get(one) != documented_answers.get(one)]


def attribute_defects(
    subjects: Iterable[Subject],
    kubelet: Mapping[Subject, object],
    releases: Collection[str],
    ask: Callable[[frozenset[str]], Mapping[Subject, object]],
) -> dict[Subject, tuple[NamedDefect, ...]]:
    """Finds the defects that make the kubelet's answers differ from the documented ones.

    A defect counts if the kubelet would answer differently without it. If the answer changes only
    when several defects are removed, the result is a smallest set that still produces it.

    Args:
        subjects: the subjects whose documented answers differ.
        kubelet: the answers of a kubelet with all of its defects.
        releases: the releases concerned.
        ask: returns the answers of a kubelet without the named defects.
    """
    wanted = list(subjects)
    if not wanted:
        return {}
    names = sorted(of_releases(releases))
    lacking = {name: ask(frozenset({name})) for name in names}
    found = {}
    for subject in wanted:
        mine = kubelet.get(subject)
        at_work = [name for name in names if lacking[name].get(subject) != mine]
        found[subject] = tuple(
            map(named_defect, at_work or _smallest_set(subject, mine, names, ask))
        )
    return found


def _smallest_set(
    subject: Subject,
    mine: object,
    names: list[str],
    ask: Callable[[frozenset[str]], Mapping[Subject, object]],
) -> list[str]:
    """Finds a set of defects that together produce an answer and are all necessary for it."""
    needed = list(names)
    for name in names:
        fewer = [one for one in needed if one != name]
        if ask(frozenset(names) - frozenset(fewer)).get(subject) == mine:
            needed = fewer
    return needed


_BY_NAME: Mapping[str, Defect] = {one.name: one for one in DEFECTS}


def named_defect(name: str) -> NamedDefect:
    """Returns the defect of that name."""
    defect = _BY_NAME[name]
    return NamedDefect(name, defect.what, f"{PAGE}#{name}", defect.issue)
