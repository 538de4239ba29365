"""The sides that an implementation may take where a kubelet breaks its documents.

Both are right for an implementation that does not claim to be a kubelet: the documents, and what
the kubelet of the release does by a named defect. It is compared with the documents first. Once its
answer is another, every call so far is made again to references that have one of the release's
defects, or all of them; the comparison goes on with one that agrees with every answer, and the
defect is what the implementation shares with the kubelet. If there is none, the answer is wrong.

Some changes between releases are told by no document. Whoever follows the newest documents knows
nothing of them: so the references that calls are made again to include those that lack one of these
changes, or all of them. These are right even where only the documents are.

So an answer costs one call to a reference, as it does for a kubelet, until the sides part. What a
reference discovers is remembered for all that are on its side: a tree is large, and stays as it is
while a case is played.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from numaproof.conformance.judging.oracle import Oracle, disagreement
from numaproof.folders.removal import remove_tree
from numaproof.folders.scratch import make_folder
from numaproof.protocol import messages
from numaproof.protocol.events import Parted
from numaproof.reference.deviations.defects import CHANGES, DEFECTS, SHOWN_WITHOUT_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.judging.finding import Finding
    from numaproof.conformance.judging.oracle import Meets, SteeredImplementation
    from numaproof.reference.deviations.deviation import Defect, UndocumentedBehaviour


@dataclass(frozen=True)
class Side:
    """What a reference keeps to: the documents, or all that kubelets of the release do.

    Attributes:
        documented: whether the documents are kept where the kubelet breaks them.
        exceptions: the names of defects for which it is the other way round, and of changes between
            releases that are left out.
    """

    documented: bool
    exceptions: frozenset[str] = frozenset()

    def turned(self, name: str) -> Side:
        """The same, but for one defect or change."""
        return Side(self.documented, self.exceptions ^ {name})

    def has(self, name: str) -> bool:
        """Whether it does as the kubelet does where that defect or change matters."""
        return (name in self.exceptions) == (self.documented and name not in _CHANGES)


_CHANGES = frozenset(one.name for one in CHANGES)

DOCUMENTED = Side(documented=True)
UNCHANGED = Side(documented=True, exceptions=_CHANGES)
KUBELET = Side(documented=False)


@dataclass(frozen=True)
class _Heard:
    """A call and the implementation's answer, with that of the side it is compared with."""

    operation: str
    args: messages.Args
    answer: messages.Answer
    own: messages.Answer | None


@dataclass(frozen=True)
class _Reader:
    """A reference on one side, and what those on that side have discovered so far."""

    reference: SteeredImplementation
    discovered: dict[messages.Args, messages.Answer]

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        if operation != "discover":
            return self.reference.call(operation, args)
        if args not in self.discovered:
            self.discovered[args] = self.reference.call(operation, args)
        return self.discovered[args]

    def favour(self, devices: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        self.reference.favour(devices)


class Sides:
    """Judges answers by whichever side they are on.

    Args:
        make: makes a fresh reference that is on a side.
        folder: where references have their state directories; made when the first one needs it.
        level: how much of the answers is compared. At level invariants, none is: then the
            references are asked only where an invariant or an expectation is broken.
        kubelet: whether it may do as the kubelet does, or only as documented.
        discovers: what is compared of a discovered machine; None for all of it.
    """

    def __init__(
        self,
        make: Callable[[Side], SteeredImplementation],
        folder: Path,
        level: messages.Level,
        *,
        kubelet: bool = True,
        discovers: Collection[str] | None = None,
    ) -> None:
        """Begins with the documents; see the class."""
        self._make = make
        self._kubelet = kubelet
        self._folder = folder
        self._level = level
        self._discovers = discovers
        self._exact: messages.Level = "kubelet" if level == "kubelet" else "placement"
        self._number = count()
        self._discovered: dict[Side, dict[messages.Args, messages.Answer]] = {}
        self._history: list[_Heard | Callable[[Path], object]] = []
        self._side = DOCUMENTED
        self._oracle = self._open(DOCUMENTED)
        self._shared: dict[str, None] = {}
        self._kept: dict[str, None] | None = None
        self._otherwise = False

    @property
    def shared(self) -> tuple[str, ...]:
        """The defects that the implementation has shown to share with the kubelet."""
        return tuple(self._shared)

    @property
    def otherwise(self) -> bool:
        """Whether a case that expects one side's answers was given another's."""
        return self._otherwise

    @property
    def answer(self) -> messages.Answer | None:
        """The last answer of the side that the implementation is compared with."""
        return self._oracle.answer

    @property
    def reference(self) -> SteeredImplementation:
        """The reference that is on that side."""
        return self._oracle.reference

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How `answer` differs from that of the side taken so far; None if a side agrees."""
        found = None
        if self._level != "invariants":
            found = self._oracle.disagreement(operation, args, answer)
        if not isinstance(answer, messages.Unsupported):
            self._history.append(_Heard(operation, args, answer, self._oracle.answer))
        return found if found and not self._turn() else None

    def alter(self, change: Callable[[Path], object]) -> None:
        """Changes a checkpoint by hand, on every side."""
        self._history.append(change)
        self._oracle.alter(change)

    def allows(self, args: messages.Args, meets: Meets) -> bool:
        """Whether an expectation that an answer does not meet is one side's, the answer another's.

        Args:
            args: those of the call.
            meets: whether the expectation is met by an answer, with the state after it.
        """
        calls = [(n, one) for n, one in enumerate(self._history) if isinstance(one, _Heard)]
        index = next(n for n, one in calls if one.args is args)
        after = next(
            (n for n, one in calls if n > index and isinstance(one.answer, messages.State)), None
        )
        others = (KUBELET, UNCHANGED) if self._kubelet else (UNCHANGED,)
        wanted = [side for side in (DOCUMENTED, *others) if self._meets(side, index, after, meets)]
        if not wanted:
            return False
        expected = wanted[0]
        opposite = KUBELET if expected.documented else DOCUMENTED
        exactly = [one for n, one in calls if n in (index, after)]
        bases = dict.fromkeys((self._side, expected))
        turned = (side.turned(name) for side in bases for name in self._names())
        ends = (opposite, UNCHANGED) if self._kubelet else (UNCHANGED,)
        for side in (self._side, *turned, *ends):
            if side in wanted or self._meets(side, index, after, meets):
                continue
            if self._take(side, exactly):
                if opposite is DOCUMENTED:
                    kept = () if side.documented else sorted(side.exceptions)
                    self._kept = dict.fromkeys(kept or self._kept_from(index, self._exact))
                self._otherwise = True
                return True
        return False

    def shares(self, defect: str | None) -> bool:
        """Whether the last answer, and the state after it, are those of a kubelet with a defect.

        None stands for whichever defect makes them differ from what is documented.
        """
        if not self._kubelet:
            return False
        exactly = self._history[-2:]
        if defect is not None:
            named = (self._side, self._side.turned(defect), DOCUMENTED.turned(defect), KUBELET)
            return any(side.has(defect) and self._take(side, exactly, (defect,)) for side in named)
        documented = self._answers(DOCUMENTED)[-2:]
        every = (self._side, *map(DOCUMENTED.turned, self._names()), KUBELET)
        return any(
            self._answers(side)[-2:] != documented and self._take(side, exactly) for side in every
        )

    def parted(self) -> Parted | None:
        """Which side the implementation took where a kubelet breaks its documents.

        None if both would have answered alike, as far as answers were compared, or if only the
        documents are right.
        """
        if not self._kubelet:
            return None
        if self._shared:
            return Parted("kubelet", tuple(self._shared))
        if self._kept is not None:
            return Parted("documented", tuple(self._kept))
        if self._level == "invariants":
            return None
        index = self._first_difference(KUBELET)
        return None if index is None else Parted("documented", self._kept_from(index, self._level))

    # The side that an answer is on

    def _turn(self) -> bool:
        """Takes another side, which agrees with every answer so far; whether there is one."""
        others = (UNCHANGED, KUBELET) if self._kubelet else (UNCHANGED,)
        if self._side.documented and not any(map(self._would_part, others)):
            return False
        exactly: Sequence[object] = ()
        turned = [self._side.turned(name) for name in self._names()]
        return any(self._take(side, exactly) for side in (*turned, *others))

    def _take(self, side: Side, exactly: Sequence[object], shown: Sequence[str] = ()) -> bool:
        """Takes a side if it agrees with every answer, and with some of them at level placement.

        `shown` are the defects that this is about; else those which make the difference.
        """
        oracle = self._open(side)
        for one in self._history:
            if not isinstance(one, _Heard):
                oracle.alter(one)
                continue
            oracle.level = self._exact if any(one is other for other in exactly) else self._level
            if oracle.disagreement(one.operation, one.args, one.answer):
                self._close(oracle)
                return False
        oracle.level = self._level
        names = shown or (
            side.exceptions - self._side.exceptions
            if side.documented
            else self._playing_along(len(self._history) - 1)
        )
        self._shared |= dict.fromkeys(name for name in sorted(names) if side.has(name))
        self._close(self._oracle)
        self._side, self._oracle = side, oracle
        return True

    def _would_part(self, side: Side) -> bool:
        """Whether a side would have answered any call otherwise than the one taken so far."""
        return any(
            isinstance(heard, _Heard) and own != heard.own
            for heard, own in zip(self._history, self._answers(side), strict=True)
        )

    def _meets(self, side: Side, index: int, after: int | None, meets: Meets) -> bool:
        """Whether the answer of a side to a call meets an expectation."""
        answers = self._answers(side)
        answer, state = answers[index], None if after is None else answers[after]
        return answer is not None and meets(
            answer, state if isinstance(state, messages.State) else None
        )

    def _first_difference(self, side: Side) -> int | None:
        """The first call whose answer differs from that of a side."""
        oracle = self._open(side)
        found = None
        for index, one in enumerate(self._history):
            if not isinstance(one, _Heard):
                oracle.alter(one)
            elif oracle.disagreement(one.operation, one.args, one.answer):
                found = index
                break
        self._close(oracle)
        return found

    def _playing_along(self, index: int) -> tuple[str, ...]:
        """The names without any one of which a kubelet would answer a call otherwise."""
        (full,) = self._answers(KUBELET)[index : index + 1]
        return tuple(name for name, one in self._without_each(index) if one != full)

    def _kept_from(self, index: int, level: messages.Level) -> tuple[str, ...]:
        """The name without which a kubelet would answer a call as the implementation does.

        Where several come together, all without any one of which it would answer otherwise.
        """
        heard = self._history[index]
        assert isinstance(heard, _Heard)
        for name, one in self._without_each(index):
            if one is not None and not disagreement(
                heard.args, heard.answer, one, level, self._discovers
            ):
                return (name,)
        return self._playing_along(index)

    def _without_each(self, index: int) -> Iterator[tuple[str, messages.Answer | None]]:
        """The answers to a call of kubelets each of which lacks one defect, or one change."""
        for name in self._names():
            yield name, list(self._answered(KUBELET.turned(name), index + 1))[index]

    def _answers(self, side: Side) -> list[messages.Answer | None]:
        """The answers of a side to every call; None for what is no call."""
        return list(self._answered(side, len(self._history)))

    def _answered(self, side: Side, calls: int) -> Iterator[messages.Answer | None]:
        oracle = self._open(side)
        for one in self._history[:calls]:
            if isinstance(one, _Heard):
                oracle.disagreement(one.operation, one.args, one.answer)
                yield oracle.answer
            else:
                oracle.alter(one)
                yield None
        self._close(oracle)

    def _names(self) -> list[str]:
        """The changes, and the defects with answers, that a release of the calls so far has.

        Where no call needs a node, those that show without one.
        """
        heard = [one for one in self._history if isinstance(one, _Heard)]
        releases = {getattr(one.args, "kubernetes", None) for one in heard}
        defects = [one for one in DEFECTS if one.answers] if self._kubelet else []
        known: tuple[UndocumentedBehaviour | Defect, ...] = (*CHANGES, *defects)
        names = [one.name for one in known if releases.intersection(one.releases)]
        shown = [SHOWN_WITHOUT_NODE.get(one.operation) for one in heard]
        if None in shown:
            return names
        return [name for name in names if any(name in each for each in shown if each)]

    def _open(self, side: Side) -> Oracle:
        folder = self._folder / str(next(self._number))
        make_folder(folder)
        reader = _Reader(self._make(side), self._discovered.setdefault(side, {}))
        return Oracle(reader, folder, self._level, self._discovers)

    @staticmethod
    def _close(oracle: Oracle) -> None:
        remove_tree(oracle.state_dir)
