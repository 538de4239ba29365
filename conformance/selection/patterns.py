"""Patterns that select cases: ``--select`` and ``--exclude``.

A pattern is a glob of case or requirement ids (``static-*``, ``CPU-OPT-*``), or ``KEY:GLOB`` with a
key from `keys.KEYS`. Areas and documents match case-insensitively, with hyphens for spaces, and
also by their first words: ``area:memory`` is "Memory Manager".
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from numaproof.conformance.cases import naming
from numaproof.conformance.cases.schema import Case
from numaproof.conformance.selection.keys import KEYS
from numaproof.protocol.features import FEATURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numaproof.conformance.differential.recordings import Recording
    from numaproof.conformance.requirements import Registry

_BY_WORDS = ("area", "document")

_CLOSE = 0.6
"""The minimum similarity of a suggested name, from 0 to 1."""

_LISTED = 12
"""The maximum number of names listed if none is similar."""

Facets = dict[str, tuple[str, ...]]
"""The strings that patterns match, by key. Ids include a case's former ids."""

Item = TypeVar("Item", bound="Case | Recording")


_LONGEST = 1000
"""The maximum length of a pattern; ids have fewer than a hundred characters."""


class SelectionError(ValueError):
    """A pattern is invalid or matches nothing; the message suggests a fix."""


@dataclass(frozen=True)
class CasePattern:
    """A pattern; `key` is empty for a plain glob of case or requirement ids."""

    key: str
    glob: str

    @classmethod
    def parse(cls, text: str) -> CasePattern:
        """Parses a pattern.

        Raises:
            SelectionError: the key is unknown.
        """
        if len(text) > _LONGEST:
            shown = f"{text[:60]}..."
            raise SelectionError(f"the pattern {shown!r} is longer than {_LONGEST} characters")
        key, colon, glob = text.partition(":")
        if not colon:
            return cls("", text)
        if key not in KEYS:
            near = get_close_matches(key, KEYS, n=1, cutoff=_CLOSE)
            hint = f"did you mean {near[0]}:{glob}?" if near else f"the keys are {', '.join(KEYS)}"
            raise SelectionError(f"unknown key {key!r} in {text!r}; {hint}")
        return cls(key, _slug(glob) if key in _BY_WORDS else glob)

    def matches(self, facets: Facets) -> bool:
        """Whether the pattern matches a case or a recording."""
        return any(fnmatchcase(value, self.glob) for value in self.values(facets))

    def values(self, facets: Facets) -> tuple[str, ...]:
        """The strings that the glob is matched against."""
        if not self.key:
            return (*facets["id"], *facets["requirement"])
        return facets[self.key]


class Selection:
    """The patterns of a command.

    Args:
        select: patterns of items to select; all if empty.
        exclude: patterns of items to leave out.
        registry: the requirements.
        features: returns the features that a bundled case needs, such as
            `numaproof.conformance.selection.needs.features_of`.

    Raises:
        SelectionError: the key of a pattern is unknown.
    """

    def __init__(
        self,
        select: Sequence[str],
        exclude: Sequence[str],
        registry: Registry,
        features: Callable[[str], tuple[str, ...]],
    ) -> None:
        self._features = features
        self._rows = registry.by_id()
        self._documents = registry.documents
        self._select = {text: CasePattern.parse(text) for text in select}
        self._exclude = {text: CasePattern.parse(text) for text in exclude}
        patterns = (*self._select.values(), *self._exclude.values())
        self._by_feature = any(one.key == "feature" for one in patterns)

    def of(self, items: Iterable[Item]) -> tuple[Item, ...]:
        """The selected cases or recordings, in order."""
        return tuple(one for one in items if self._includes(self._facets(one)))

    def check(
        self,
        items: Iterable[Case | Recording],
        *,
        where: str = "",
        option: str = "--select ",
        exclude_option: str = "--exclude ",
    ) -> None:
        """Checks that every pattern matches something.

        Args:
            items: the items to select from.
            where: inserted after "no case" in the message.
            option: inserted before a pattern of `select`.
            exclude_option: inserted before a pattern of `exclude`.

        Raises:
            SelectionError: a pattern matches nothing; the message suggests others.
        """
        every = [self._facets(one) for one in items]
        for given, patterns in ((option, self._select), (exclude_option, self._exclude)):
            for text, pattern in patterns.items():
                if not any(map(pattern.matches, every)):
                    values = dict.fromkeys(name for one in every for name in pattern.values(one))
                    hint = _hint(text, pattern, tuple(values))
                    raise SelectionError(f"no case{where} matches {given}{text!r}{hint}")

    def values(self, key: str, items: Iterable[Case | Recording]) -> tuple[str, ...]:
        """The strings that a pattern with this key can match; empty if the key is unknown."""
        if key == "feature":
            return tuple(sorted(FEATURES))
        facets = (self._facets(one) for one in items if key in KEYS)
        return tuple(sorted({name for one in facets for name in one[key]}))

    def _includes(self, facets: Facets) -> bool:
        wanted = not self._select or any(one.matches(facets) for one in self._select.values())
        return wanted and not any(one.matches(facets) for one in self._exclude.values())

    def _facets(self, item: Case | Recording) -> Facets:
        if isinstance(item, Case):
            return self._of_case(item)
        named = item.requirement
        return {
            "id": (item.case_id,),
            "requirement": (named.id,),
            "area": _prefixes(named.area),
            "document": _prefixes(named.document),
            "feature": (),
            "defect": (),
        }

    def _of_case(self, case: Case) -> Facets:
        rows = [self._rows[one] for one in case.requirements if one in self._rows]
        keys = dict.fromkeys(key for row in rows for key in (row.document, *row.also))
        titles = (self._documents[key].title for key in keys)
        return {
            "id": naming.names(case),
            "requirement": case.requirements,
            "area": tuple(name for row in rows for name in _prefixes(row.area)),
            "document": tuple(name for one in (*keys, *titles) for name in _prefixes(one)),
            # Determined by playing the case.
            "feature": self._features(case.id) if self._by_feature else (),
            "defect": (case.defect,) if case.defect else (),
        }


def _slug(text: str) -> str:
    return "-".join(text.lower().split())


def _prefixes(name: str) -> tuple[str, ...]:
    """A name and its first words, as in patterns."""
    words = name.lower().split()
    return tuple("-".join(words[:count]) for count in range(len(words), 0, -1))


def _hint(text: str, pattern: CasePattern, values: tuple[str, ...]) -> str:
    if pattern.key in ("", "id"):
        near = naming.did_you_mean(pattern.glob, values)
        return near or "; see `numaproof case list`"
    close = get_close_matches(pattern.glob, values, n=3, cutoff=_CLOSE)
    if close:
        return f"; did you mean {' or '.join(repr(f'{pattern.key}:{one}') for one in close)}?"
    few = sorted(values)[:_LISTED]
    more = ", …" if len(values) > _LISTED else ""
    return f"; {text.partition(':')[0]} can be {', '.join(few)}{more}"
