"""Puts a bug into the reference and removes it again.

A bug replaces functions, methods or table entries by name. It never patches text, so it survives
changes to the code around it. It is active only while the faulty implementation answers a call:
a healthy reference in the same process is not affected and can be compared with it.
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
    from numaproof.protocol.messages import Level

_F = TypeVar("_F", bound="Callable[..., Any]")


Change: TypeAlias = "Callable[..., Any]"
"""The part that distinguishes bugs of the same `shape`: a function."""


class Changes:
    """Changes to the reference, undone when the `undo` stack is closed."""

    def __init__(self, undo: ExitStack) -> None:
        self._undo = undo

    def replace(self, owner: Any, name: str, new: object) -> None:
        """Replaces a public attribute of a module or a class.

        Raises:
            AttributeError: there is no such attribute.
            ValueError: the attribute is private, so a refactoring could lose the bug.
        """
        if name.startswith("_") and not name.endswith("__"):
            raise ValueError(f"bugs can only replace public names, but {name!r} is private")
        old = inspect.getattr_static(owner, name)
        own = name in vars(owner)
        setattr(owner, name, new)
        self._undo.callback(setattr, owner, name, old) if own else self._undo.callback(
            delattr, owner, name
        )

    def around(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        """Replaces a rule (a function or a method) with `replacement`.

        `replacement` is called with the original rule and the rule's arguments that it
        names, or
        all arguments in order if it takes ``*args``. When it calls the rule, arguments that
        it
        doesn't pass keep their original values.

        Raises:
            TypeError: the rule has no argument with a name that `replacement` uses.
        """
        self._stand_in(owner, name, replacement, lambda rule: rule)

    def after(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        """Lets `replacement` change a rule's result, which it gets instead of the rule."""
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
        """Returns the list of the argument's values in all calls, or in active ones if `inside`."""
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
    """Returns a function that calls `replacement` with the `names` arguments of the rule."""
    own = {one.name.lstrip("_"): one for one in inspect.signature(original).parameters.values()}
    if not own.keys() >= {*names}:
        raise TypeError(f"{original.__qualname__} takes the arguments {', '.join(own)}")
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
    """Turns a function that replaces a rule into a shape for `Seeds.by`.

    The function is called with the part that distinguishes the bugs of the shape, followed by
    the
    arguments that `put` passes.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        def seed(changes: Changes, *args: Any, **kwargs: Any) -> None:
            put(changes, owner, name, partial(function, *args, **kwargs))

        return seed

    return decorate


class Fault(Protocol):
    """A fault in a faulty reference.

    Attributes:
        id: its name.
        models: the public issues that it is modelled on, and the requirements that it breaks.
        kubernetes: the release in which to search for it; None for the newest.
        level: the level at which to search for it; None for that of its requirement.
        breaks_down: whether it can make a rule raise or loop forever, which counts as caught.
    """

    @property
    def id(self) -> str: ...
    @property
    def models(self) -> tuple[str, ...]: ...
    @property
    def kubernetes(self) -> str | None: ...
    @property
    def level(self) -> Level | None: ...
    @property
    def breaks_down(self) -> bool: ...
    def inject(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class Bug:
    """A seeded bug.

    Attributes:
        id: its name, which describes the wrong behaviour and never changes.
        subject: the part of the node that has the bug.
        models: the public issues (``#n`` of kubernetes/kubernetes, ``cadvisor #n``) that it is
            modelled on, and the requirements that it breaks.
        seed: puts the bug into the reference.
        kubernetes: the release in which to search for it; None for the newest.
        level: the level at which cases must catch it; None for that of the requirement.
    """

    id: str
    subject: str
    models: tuple[str, ...]
    seed: Callable[[Changes], None]
    kubernetes: str | None = None
    level: Level | None = None
    breaks_down = False

    @contextmanager
    def inject(self) -> Iterator[None]:
        """Puts the bug into the reference for the duration of the context."""
        with ExitStack() as undo:
            self.seed(Changes(undo))
            yield

    def implementation(self, *, follows_docs: bool = False) -> InProcess:
        """Returns an implementation with the bug."""
        return InProcess(lambda: SeededReference(self, follows_docs=follows_docs))


class SeededReference:
    """A reference that has a bug while it answers a call."""

    def __init__(self, bug: Bug, *, follows_docs: bool = False) -> None:
        self._bug = bug
        self._reference = Reference(follows_docs=follows_docs)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Answers the call with the bug in place."""
        with self._bug.inject():
            return self._reference.call(operation, args)


class SubjectBugs:
    """The bugs of a subject, in source order.

    A function becomes a bug with one of the decorators of `Seeds`, named after the function:
    ``@seeds("#112228", "CPU-INIT-001").replace(ReusableCPUs, "of")``.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._bugs: list[Bug] = []

    def about(self, subject: str) -> None:
        """Sets the subject of the bugs that follow."""
        self._subject = subject

    def __call__(
        self, *models: str, kubernetes: str | None = None, level: Level | None = None
    ) -> Seeds:
        """Returns decorators for a bug with these `models`, release and level (see `Bug`)."""

        def add(function: Callable[..., Any], seed: Callable[[Changes], None]) -> None:
            name = function.__name__.replace("_", "-")
            seed.__doc__ = function.__doc__
            self._bugs.append(Bug(name, self._subject, models, seed, kubernetes, level))

        return Seeds(add)

    def add(
        self, name: str, what: str, model: str, level: Level, shape: Callable[..., None], *args: Any
    ) -> None:
        """Adds a generated bug: its id, a sentence on `what` it does, a shape and arguments."""

        def seed(changes: Changes) -> None:
            shape(changes, *args)

        seed.__doc__ = what
        self._bugs.append(Bug(name, self._subject, (model,), seed, level=level))

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """The bugs so far."""
        return tuple(self._bugs)


@dataclass(frozen=True)
class Seeds:
    """Decorators that turn a function into a bug."""

    _add: Callable[[Callable[..., Any], Callable[[Changes], None]], None]

    def __call__(self, function: Callable[[Changes], None]) -> Callable[[Changes], None]:
        """Calls the function to make the changes."""
        self._add(function, function)
        return function

    def by(self, shape: Callable[..., None], *args: Any, **kwargs: Any) -> Callable[[_F], _F]:
        """Makes the changes with a `shape`, whose last argument is the function."""

        def decorate(function: _F) -> _F:
            self._add(function, lambda changes: shape(changes, *args, function, **kwargs))
            return function

        return decorate

    def of(self, shape: Callable[..., None], *args: Any, **kwargs: Any) -> Callable[[_F], _F]:
        """Makes the changes with a `shape`; the function only names and describes the bug."""

        def decorate(function: _F) -> _F:
            self._add(function, lambda changes: shape(changes, *args, **kwargs))
            return function

        return decorate

    def around(self, owner: Any, name: str, *function: Any) -> Callable[[_F], _F]:
        """Applies `Changes.around` with `function` (default: the decorated function)."""
        return self._put(Changes.around, owner, name, function)

    def after(self, owner: Any, name: str, *function: Any) -> Callable[[_F], _F]:
        """Applies `Changes.after` with `function` (default: the decorated function)."""
        return self._put(Changes.after, owner, name, function)

    def replace(self, owner: Any, name: str, *function: Any) -> Callable[[_F], _F]:
        """Applies `Changes.replace` with `function` (default: the decorated function)."""
        return self._put(Changes.replace, owner, name, function)

    def _put(
        self, put: Callable[..., None], owner: Any, name: str, function: tuple[Any, ...]
    ) -> Callable[[_F], _F]:
        return (self.of if function else self.by)(put, owner, name, *function)
