"""How a bug is put into the reference, and taken out of it again.

A bug replaces functions, methods or table entries by name; it never patches text, so that it
outlives a change of the code around it. It is there only while the seeded implementation answers
a call: a healthy reference in the same process stays healthy, and can be compared with.
"""

from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from numaproof.conformance.execution.implementation import InProcess
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numaproof.protocol import messages

_F = TypeVar("_F", bound="Callable[..., Any]")


Change: TypeAlias = "Callable[..., Any]"
"""What is wrong in one bug of a `shape`: some function."""


class Changes:
    """Changes to the reference that are undone when the `undo` stack is closed."""

    def __init__(self, undo: ExitStack) -> None:
        self._undo = undo

    def replace(self, owner: Any, name: str, new: object) -> None:
        """Puts `new` in the place of a public attribute that a module or a class has.

        Raises:
            AttributeError: it has none of that name.
            ValueError: the attribute is private: a change of the code around it would lose the bug.
        """
        if name.startswith("_") and not name.endswith("__"):
            raise ValueError(f"a bug is seeded by public names, and {name!r} is private")
        old = inspect.getattr_static(owner, name)
        own = name in vars(owner)
        setattr(owner, name, new)
        self._undo.callback(setattr, owner, name, old) if own else self._undo.callback(
            delattr, owner, name
        )

    def around(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        """Lets `replacement` answer in the place of a rule: a function or a method.

        It is given the rule first, and then those arguments of the rule that it names; all of
        them, in their order, if it takes ``*args``. Called by it, the rule has the arguments that
        it was called with, but for those that are given anew.

        Raises:
            TypeError: the rule has no argument of a name.
        """
        self._stand_in(owner, name, replacement, lambda rule: rule)

    def after(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        """Lets `replacement` change the answer of a rule, which it gets instead of the rule."""
        self._stand_in(owner, name, replacement, lambda rule: rule())

    def _stand_in(
        self, owner: Any, name: str, replacement: Callable[..., Any], first: Callable[[Any], Any]
    ) -> None:
        original = getattr(owner, name)
        wanted = [*inspect.signature(replacement).parameters.values()][1:]
        instead: Callable[..., Any] = partial(replacement, original)
        if all(one.kind is not one.VAR_POSITIONAL for one in wanted):
            names = [one.name for one in wanted if one.kind is not one.KEYWORD_ONLY]
            instead = _by_name(original, names, replacement, first)

        @wraps(original, updated=())
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return instead(*args, **kwargs)

        self.replace(owner, name, stand_in)

    def record_argument(
        self, owner: Any, name: str, argument: str, *, inside: bool = False
    ) -> list[Any]:
        """An argument of each call of a rule so far; only of unanswered calls, if `inside`."""
        place = [*inspect.signature(getattr(owner, name)).parameters].index(argument)
        values: list[Any] = []

        def record(rule: Any, *args: Any, **kwargs: Any) -> Any:
            values.append(kwargs[argument] if argument in kwargs else args[place])
            try:
                return rule(*args, **kwargs)
            finally:
                if inside:
                    values.pop()

        self.around(owner, name, record)
        return values


def _by_name(
    original: Callable[..., Any],
    names: Sequence[str],
    replacement: Callable[..., Any],
    first: Callable[[Any], Any],
) -> Callable[..., Any]:
    """What gives `replacement` what is made of the rule, and the `names` arguments of the rule."""
    own = {one.name.lstrip("_"): one for one in inspect.signature(original).parameters.values()}
    if not own.keys() >= {*names}:
        raise TypeError(f"{original.__qualname__} has the arguments {', '.join(own)}")
    defaults = {name: one.default for name, one in own.items()}

    def instead(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(own, args, strict=False)) | kwargs

        def rule(*others: Any, **changes: Any) -> Any:
            every = given | dict(zip(own, others, strict=False)) | changes
            return original(**{own[name].name: value for name, value in every.items()})

        return replacement(first(rule), **{name: (defaults | given)[name] for name in names})

    return instead


def shape(
    owner: Any, name: str, put: Callable[..., None] = Changes.around
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Makes a shape, for `Seeds.by`, of a function that answers in the place of a rule.

    It is given what tells one bug of this shape from the next, and then what `put` says.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        def seed(changes: Changes, *args: Any, **kwargs: Any) -> None:
            put(changes, owner, name, partial(function, *args, **kwargs))

        return seed

    return decorate


class Fault(Protocol):
    """What is wrong with a faulty reference.

    Attributes:
        id: what it is called.
        models: what it is modelled on or breaks: public issues, and requirements.
        kubernetes: the release that it is looked for in; None for the newest.
        breaks_down: whether a rule may raise or never end because of it; that counts as caught.
    """

    @property
    def id(self) -> str: ...
    @property
    def models(self) -> tuple[str, ...]: ...
    @property
    def kubernetes(self) -> str | None: ...
    @property
    def breaks_down(self) -> bool: ...
    def inject(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class Bug:
    """A seeded bug.

    Attributes:
        id: what it is called, the wrong behaviour in words; it never changes.
        subject: the part of the node that it is in.
        models: the public issues (``#n`` of kubernetes/kubernetes, ``cadvisor #n``) that it is
            modelled on, and the requirements that it breaks.
        seed: puts it in.
        kubernetes: the release that it is looked for in; None for the newest.
    """

    id: str
    subject: str
    models: tuple[str, ...]
    seed: Callable[[Changes], None]
    kubernetes: str | None = None
    breaks_down = False

    @contextmanager
    def inject(self) -> Iterator[None]:
        """The reference has the bug as long as this is entered."""
        with ExitStack() as undo:
            self.seed(Changes(undo))
            yield

    def implementation(self, *, follows_docs: bool = False) -> InProcess:
        """A reference with the bug, for as many calls as are wanted."""
        return InProcess(lambda: SeededReference(self, follows_docs=follows_docs))


class SeededReference:
    """The reference with a bug in it while it answers a call."""

    def __init__(self, bug: Bug, *, follows_docs: bool = False) -> None:
        self._bug = bug
        self._reference = Reference(follows_docs=follows_docs)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """What the reference with the bug answers."""
        with self._bug.inject():
            return self._reference.call(operation, args)


class SubjectBugs:
    """The bugs of one subject, in the order in which they are written down.

    A function becomes a bug with one of `Seeds`'s decorators; its name is the bug's:
    ``@seeds("#112228", "CPU-INIT-001").replace(ReusableCPUs, "of")``.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._bugs: list[Bug] = []

    def about(self, subject: str) -> None:
        """What is written down from here on is of another subject."""
        self._subject = subject

    def __call__(self, *models: str, kubernetes: str | None = None) -> Seeds:
        """What makes a bug of a function; `models` and `kubernetes` are as `Bug` has them."""

        def add(function: Callable[..., Any], seed: Callable[[Changes], None]) -> None:
            name = function.__name__.replace("_", "-")
            seed.__doc__ = function.__doc__
            self._bugs.append(Bug(name, self._subject, models, seed, kubernetes))

        return Seeds(add)

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """All of them."""
        return tuple(self._bugs)


@dataclass(frozen=True)
class Seeds:
    """Decorators that make a bug of a function, each in another way."""

    _add: Callable[[Callable[..., Any], Callable[[Changes], None]], None]

    def __call__(self, function: Callable[[Changes], None]) -> Callable[[Changes], None]:
        """The function makes the changes."""
        self._add(function, function)
        return function

    def by(self, shape: Callable[..., None], *args: Any, **kwargs: Any) -> Callable[[_F], _F]:
        """The function is the last argument of a `shape`, which makes the changes."""

        def decorate(function: _F) -> _F:
            self._add(function, lambda changes: shape(changes, *args, function, **kwargs))
            return function

        return decorate

    def of(self, shape: Callable[..., None], *args: Any, **kwargs: Any) -> Callable[[_F], _F]:
        """A `shape` makes the changes by itself; the function names and describes them."""

        def decorate(function: _F) -> _F:
            self._add(function, lambda changes: shape(changes, *args, **kwargs))
            return function

        return decorate

    def around(self, owner: Any, name: str, *function: Any) -> Callable[[_F], _F]:
        """The function, or else the one that is decorated, is put in with `Changes.around`."""
        return self._put(Changes.around, owner, name, function)

    def after(self, owner: Any, name: str, *function: Any) -> Callable[[_F], _F]:
        """The function, or else the one that is decorated, is put in with `Changes.after`."""
        return self._put(Changes.after, owner, name, function)

    def replace(self, owner: Any, name: str, *function: Any) -> Callable[[_F], _F]:
        """The function, or else the one that is decorated, is put in with `Changes.replace`."""
        return self._put(Changes.replace, owner, name, function)

    def _put(
        self, put: Callable[..., None], owner: Any, name: str, function: tuple[Any, ...]
    ) -> Callable[[_F], _F]:
        return (self.of if function else self.by)(put, owner, name, *function)
