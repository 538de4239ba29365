"""What is noted while the reference answers as a release, of its classes too."""

from __future__ import annotations

from functools import cache, cached_property
from inspect import getattr_static
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from numaproof.reference.departures.releases import Release, departing
from numaproof.reference.kubelet.fields import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Rule = TypeVar("Rule")

_SAYS_NOTHING = frozenset(
    {
        *("__module__", "__doc__", "__qualname__", "__annotations__", "__dict__", "__weakref__"),
        *("__static_attributes__", "__firstlineno__", "__parameters__", "__orig_bases__"),
        "departure",
    }
)
"""Attributes of a class that no rule looks at."""


class Notes:
    """What is noted while the reference answers as one release.

    Attributes:
        played: that release.
        same: the other releases that answer alike so far.
        files: the names of the files that were written, and what each release writes there. What
            reads them has to compare these.
    """

    def __init__(self) -> None:
        self.played = ""
        self.same: set[str] = set()
        self.files: list[tuple[str, Mapping[str, bytes]]] = []
        self._classes: dict[object, type] = {}
        self._enabled: dict[tuple[str, str], Mapping[str, bool] | ConfigError] = {}

    def begin(self, played: str, others: Iterable[str]) -> None:
        """Begins to note for a release, which others may turn out to equal."""
        self.played = played
        self.same = set(others)
        self.files = []

    def compare(self, facts: Mapping[str, object]) -> None:
        """Notes that a fact was consulted, which is this one in each release."""
        if self.same:
            own = facts[self.played]
            self.same = {one for one in self.same if facts[one] == own}

    def drop(self, releases: Iterable[str]) -> None:
        """Notes that a fact was consulted which is another one in these releases."""
        self.same.difference_update(releases)

    def rule(
        self, documented: type[Rule], departures: Mapping[str, tuple[type, ...]]
    ) -> type[Rule]:
        """The class of a rule in the played release, which notes what of it is used.

        Args:
            documented: the rule.
            departures: those of each release.
        """
        key = documented, tuple(departures.items())
        if key not in self._classes:
            rule: type = documented
            classes = {one: departing(rule, has) for one, has in departures.items()}
            self._classes[key] = _noting(self, classes)
        return self._classes[key]

    def enabled(
        self, release: Release, given: Mapping[str, Any]
    ) -> Mapping[str, bool] | ConfigError:
        """The gates that are on in a release, or why there are none; the same every time."""
        key = release.version, repr(given.get("featureGates"))
        if key not in self._enabled:
            try:
                self._enabled[key] = release.enabled(given)
            except ConfigError as error:
                self._enabled[key] = error.with_traceback(None)
        return self._enabled[key]


def _noting(notes: Notes, classes: Mapping[str, type]) -> type:
    """The class of the played release, with an attribute that notes for each that differs."""
    own = classes[notes.played]
    differ: dict[str, set[str]] = {}
    for release, other in classes.items():
        for name in _different(own, other):
            differ.setdefault(name, set()).add(release)
    body: dict[str, Any] = {
        name: _told(notes, name, classes) or _Noted(notes, releases)
        for name, releases in differ.items()
    }
    return type(own.__name__, (own,), body) if body else own


def _told(notes: Notes, name: str, classes: Mapping[str, type]) -> staticmethod[..., Any] | None:
    """A function that tells of its arguments alone: what counts of it is what it returns.

    None for an attribute that is not such a function in all of the classes.
    """
    if not all(
        isinstance(getattr_static(one, name, None), staticmethod) for one in classes.values()
    ):
        return None

    def told(*args: Any) -> Any:
        own = getattr(classes[notes.played], name)(*args)
        others = {one: getattr(classes[one], name)(*args) for one in notes.same}
        notes.compare({notes.played: own, **others})
        return own

    return staticmethod(told)


@cache
def _different(own: type, other: type) -> set[str]:
    """The attributes that two classes of one rule do not have from the same classes, in order.

    An attribute that is the same may call another one of a class above, past what notes its use:
    it counts among them where that differs.
    """
    mine, theirs = _bases(own), _bases(other)
    alone = {*mine} ^ {*theirs}
    names = {name for one in alone for name in vars(one)} - _SAYS_NOTHING
    if [one for one in mine if one in theirs] != [one for one in theirs if one in mine]:
        return {name for one in (*mine, *theirs) for name in vars(one)} - _SAYS_NOTHING
    above = {
        name: used - {name}
        for one in {*mine, *theirs}
        for name, value in vars(one).items()
        if "super" in (used := _names(value))
    }
    while more := {name for name, used in above.items() if used & names} - names:
        names |= more
    return names


def _bases(made: type) -> list[type]:
    """The classes that a class is made of, without the one that only puts them together."""
    return [one for one in made.__mro__ if {*vars(one)} - _SAYS_NOTHING]


def _names(value: object) -> set[str]:
    """The names that a method or a property uses."""
    found: set[str] = set()
    code: list[object] = [value]
    while code:
        match code.pop():
            case staticmethod() | classmethod() as wrapped:
                code.append(wrapped.__func__)
            case property() as computed:
                code += [computed.fget, computed.fset, computed.fdel]
            case cached_property() as computed:
                code.append(computed.func)
            case FunctionType() as function:
                code.append(function.__code__)
            case CodeType() as one:
                found.update(one.co_names)
                code += one.co_consts
    return found


class _Noted:
    """An attribute of a rule that is another one in some releases."""

    def __init__(self, notes: Notes, releases: set[str]) -> None:
        self._notes = notes
        self.releases = releases

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        self._notes.drop(self.releases)
        above = super(self._owner, owner if instance is None else instance)
        return getattr(above, self._name)
