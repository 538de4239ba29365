"""How a bug is put into the reference, and taken out of it again.

A bug replaces functions, methods or table entries by name; it never patches text, so that it
outlives a change of the code around it. It is there only while the seeded implementation answers
a call: a healthy reference in the same process stays healthy, and can be compared with.
"""

from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from numaproof.conformance.execution.implementation import InProcess
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from numaproof.protocol import messages


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

    def around(self, owner: Any, name: str, changed: Callable[..., Any]) -> None:
        """Lets `changed` answer in the place of a function or method.

        It is given the original first, and then what the original is called with.
        """
        original = getattr(owner, name)

        def instead(*args: Any, **named: Any) -> Any:
            return changed(original, *args, **named)

        self.replace(owner, name, instead)

    def property(self, owner: type, name: str, changed: Callable[[Any], Any]) -> None:
        """Lets a property have the value that `changed` makes of its value."""
        original = inspect.getattr_static(owner, name)
        self.replace(owner, name, property(lambda self: changed(original.fget(self))))


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
    def seeded(self) -> AbstractContextManager[None]: ...


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
    def seeded(self) -> Iterator[None]:
        """The reference has the bug as long as this is entered."""
        with ExitStack() as undo:
            self.seed(Changes(undo))
            yield

    def implementation(self, *, documented: bool = False) -> InProcess:
        """A reference with the bug, for as many calls as are wanted."""
        return InProcess(lambda: SeededReference(self, documented=documented))


class SeededReference:
    """The reference with a bug in it while it answers a call."""

    def __init__(self, bug: Bug, *, documented: bool = False) -> None:
        self._bug = bug
        self._reference = Reference(documented=documented)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """What the reference with the bug answers."""
        with self._bug.seeded():
            return self._reference.call(operation, args)


class SubjectBugs:
    """The bugs of one subject, in the order in which they are written down.

    A function that takes `Changes` becomes a bug with ``@seeds("#112228", "CPU-INIT-002")``; its
    name is the bug's.
    """

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._bugs: list[Bug] = []

    def __call__(
        self, *models: str, kubernetes: str | None = None
    ) -> Callable[[Callable[[Changes], None]], Callable[[Changes], None]]:
        """Makes a bug of a function; `models` and `kubernetes` are as `Bug` has them."""

        def seed(function: Callable[[Changes], None]) -> Callable[[Changes], None]:
            name = function.__name__.replace("_", "-")
            self._bugs.append(Bug(name, self._subject, models, function, kubernetes))
            return function

        return seed

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """All of them."""
        return tuple(self._bugs)
