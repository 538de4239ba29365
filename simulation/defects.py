"""Which named defects of the kubelet made its answers differ from the documented ones.

A question is asked again of a kubelet without any defects. Only if its answers differ is the
question asked once more for each defect of the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from numaproof.reference.deviations.defects import DEFECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from numaproof.reference.deviations.deviation import Defect

Subject = TypeVar("Subject")
"""What an answer is about."""

PAGE = "docs/findings.md"
"""Where every named defect is described."""


class NamedDefect(msgspec.Struct, frozen=True):
    """A defect: its name, what happens, the page that describes it, and its issue, if public."""

    name: str
    what: str
    page: str
    issue: str


class DefectNote(msgspec.Struct, frozen=True):
    """An answer that named defects shaped.

    Attributes:
        defects: the defects that took part.
        part: the part of the whole answer that it belongs to.
        subject: what it is about within that part; empty for all of it.
        kubelet, documented: the kubelet's answer and the documented one; None for no such answer.
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
    """A note for each answer, by its part and its subject, that defects of the releases shaped.

    Arguments are as for `attributed`.
    """
    documented = ask(of_releases(releases))
    found = attribute_defects(differing_subjects(kubelet, documented), kubelet, releases, ask)
    return tuple(
        DefectNote(defects, *subject, kubelet.get(subject), documented.get(subject))
        for subject, defects in found.items()
    )


def of_releases(releases: Collection[str]) -> frozenset[str]:
    """The names of the defects of any of these releases that end with an answer."""
    return frozenset(
        one.name for one in DEFECTS if one.answers and not set(releases).isdisjoint(one.releases)
    )


def differing_subjects(
    kubelet: Mapping[Subject, object], documented_answers: Mapping[Subject, object]
) -> list[Subject]:
    """What the kubelet answers differently from the documents, in the order of its answers."""
    subjects = dict.fromkeys((*kubelet, *documented_answers))
    return [one for one in subjects if kubelet.get(one) != documented_answers.get(one)]


def attribute_defects(
    subjects: Iterable[Subject],
    kubelet: Mapping[Subject, object],
    releases: Collection[str],
    ask: Callable[[frozenset[str]], Mapping[Subject, object]],
) -> dict[Subject, tuple[NamedDefect, ...]]:
    """The defects that made the kubelet's answers differ from the documented ones.

    These are the defects without any one of which the kubelet would answer differently. Where it
    takes the lack of several, they are a smallest set that still leads to the kubelet's answer.

    Args:
        subjects: what the documents answer differently.
        kubelet: the answers of a kubelet with all its defects.
        releases: the releases that take part.
        ask: gives the answers of a kubelet that lacks the defects of these names.
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
            map(_find_defect, at_work or _smallest_set(subject, mine, names, ask))
        )
    return found


def _smallest_set(
    subject: Subject,
    mine: object,
    names: list[str],
    ask: Callable[[frozenset[str]], Mapping[Subject, object]],
) -> list[str]:
    """Defects that lead to an answer together, none of which can be spared."""
    needed = list(names)
    for name in names:
        fewer = [one for one in needed if one != name]
        if ask(frozenset(names) - frozenset(fewer)).get(subject) == mine:
            needed = fewer
    return needed


_BY_NAME: Mapping[str, Defect] = {one.name: one for one in DEFECTS}


def _find_defect(name: str) -> NamedDefect:
    defect = _BY_NAME[name]
    return NamedDefect(name, defect.what, f"{PAGE}#{name}", defect.issue)
