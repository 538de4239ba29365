"""The baselines that an implementation may follow where the kubelet contradicts its documentation.

Implementations that don't claim to be a kubelet may follow either the documentation or the
kubelet's named defects. Answers are compared with the documentation first. When an answer differs,
the candidates are the current baseline with one defect toggled, the baseline without defects and
the baseline with all of them. Those that disagree with any answer so far are ruled out. The
comparison continues with one of the remaining baselines; if none remains, the answer is wrong.

Some changes between releases are undocumented, so implementations of the latest documentation can't
know about them. There are therefore also baselines that omit one or all of these changes. They
count as documented behaviour.

Below level ``placement``, every reference also makes the implementation's choices of CPUs, NUMA
nodes and devices. A refusal doesn't show the choices that led to it, so the comparison looks for
choices that do (`numaproof.conformance.judging.alternatives`). If a baseline meets an expectation
of a case with its own choices only, the expectation doesn't apply to the implementation's.

Every baseline has its own reference, which replays the calls only when it is needed. Until the
implementation deviates from the documentation, each answer costs a single call to a reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging import alternatives
from numaproof.conformance.judging.oracle import Meets, Oracle, SteerableReference, disagreement
from numaproof.protocol import messages
from numaproof.protocol.events import BaselineDivergence
from numaproof.reference.choices import NO_CHOICES
from numaproof.reference.deviations.defects import CHANGES, DEFECTS, SHOWN_WITHOUT_NODE
from numaproof.workdir.scratch import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from numaproof.conformance.judging.finding import Finding
    from numaproof.reference.choices import Choices


@dataclass(frozen=True)
class Baseline:
    """The behaviour of a reference: as documented, or like the kubelet, with exceptions.

    Attributes:
        follows_documents: whether to follow the documentation where the kubelet contradicts it.
        exceptions: the defects for which the opposite applies, and the undocumented changes to
            omit.
    """

    follows_documents: bool
    exceptions: frozenset[str] = frozenset()

    def with_toggled(self, name: str) -> Baseline:
        """The baseline with one defect or change toggled."""
        return Baseline(self.follows_documents, self.exceptions ^ {name})

    def has(self, name: str) -> bool:
        """Whether the baseline has a defect, or includes an undocumented change."""
        return (name in self.exceptions) == (self.follows_documents and name not in _CHANGES)


_CHANGES = frozenset(change.name for change in CHANGES)

DOCUMENTED = Baseline(follows_documents=True)
UNCHANGED = Baseline(follows_documents=True, exceptions=_CHANGES)
KUBELET = Baseline(follows_documents=False)


@dataclass(frozen=True)
class _Exchange:
    """A call, its answer, and the manual checkpoint edits made before the call.

    `choices` are the ones that led to a refusal, if the reference would have made others.
    """

    operation: str
    args: messages.Args
    answer: messages.Answer
    alterations: tuple[Callable[[Path], object], ...]
    choices: Choices | None = None


class Baselines:
    """Judges answers by the baselines that agree with all answers so far.

    Args:
        make: creates a reference that follows a baseline.
        folder: the parent of the references' state directories, created on first use.
        level: how closely answers are compared. At level invariants, they aren't: references are
            consulted only if an invariant or expectation fails.
        kubelet: whether the kubelet's defects are accepted, or only documented behaviour.
        discovers: the fields of a discovered machine to compare; None for all.

    Attributes:
        off_script: whether an answer matched a baseline other than the one the case expects. If so,
            later expectations of the case may not apply.
    """

    def __init__(
        self,
        make: Callable[[Baseline], SteerableReference],
        folder: Path,
        level: messages.Level,
        *,
        kubelet: bool = True,
        discovers: Collection[str] | None = None,
    ) -> None:
        """Starts with the documented baseline."""
        self._make = make
        self._kubelet = kubelet
        self._folder = folder
        self._level = level
        self._discovers = discovers
        self._exact: messages.Level = "kubelet" if level == "kubelet" else "placement"
        self._ends = (DOCUMENTED, KUBELET, UNCHANGED) if kubelet else (DOCUMENTED, UNCHANGED)
        self._references: dict[
            tuple[Baseline, bool], tuple[Oracle, list[messages.Answer | None]]
        ] = {}
        self._numbers = count()
        self._history: list[_Exchange] = []
        self._alterations: list[Callable[[Path], object]] = []
        self._current = DOCUMENTED
        self._shared: dict[str, None] = {}
        self._avoided_at: int | None = None
        self.off_script = False

    @property
    def shared(self) -> tuple[str, ...]:
        """The kubelet defects that the implementation has shown so far."""
        return tuple(self._shared)

    @property
    def answer(self) -> messages.Answer | None:
        """The current baseline's last answer; None if nothing is compared."""
        compared = self._history and self._level != "invariants"
        return self._answer(self._current, len(self._history) - 1) if compared else None

    @property
    def reference(self) -> SteerableReference:
        """The reference that follows the current baseline."""
        return self._references[self._current, False][0].reference

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How `answer` differs from the current baseline's; None if any baseline agrees with it."""
        self._history.append(_Exchange(operation, args, answer, tuple(self._alterations)))
        self._alterations.clear()
        if self._level == "invariants":
            return None
        found = self._difference(self._current, len(self._history) - 1, self._level)
        if not found or self._switch() or self._explain_refusal():
            return None
        return replace(found, source="reference")

    def alter(self, change: Callable[[Path], object]) -> None:
        """Edits a checkpoint in the state directory of every baseline."""
        self._alterations.append(change)

    def allows(self, args: messages.Args, meets: Meets) -> bool:
        """Whether a failed expectation holds for one baseline, and the answer agrees with another.

        Args:
            args: the arguments of the call.
            meets: checks whether an answer, with the state after it, meets the expectation.
        """
        index = next(n for n, one in enumerate(self._history) if one.args is args)
        after = [
            n
            for n, one in enumerate(self._history)
            if n > index and isinstance(one.answer, messages.State)
        ][:1]

        def is_met(baseline: Baseline, *, chooses: bool = False) -> bool:
            answer = self._answer(baseline, index, chooses=chooses)
            states = (self._answer(baseline, n, chooses=chooses) for n in after)
            state = next((one for one in states if isinstance(one, messages.State)), None)
            return answer is not None and meets(answer, state)

        expected = next(filter(is_met, self._ends), None)
        if expected is None:
            if not (
                self._has_open_choices
                and (self.off_script or any(is_met(end, chooses=True) for end in self._ends))
                and self._agrees_on_outcomes()
            ):
                return False
            self.off_script = True
            return True
        others = self._candidates(self._current, expected)
        if not any(not is_met(one) and self._adopt(one, (index, *after)) for one in others):
            return False
        if expected == KUBELET:
            self._avoided_at = index
        self.off_script = True
        return True

    def has_defect(self, defect: str | None) -> bool:
        """Whether the last answer and the state after it show a defect.

        None stands for any defect that makes them differ from documented behaviour.
        """
        last = range(len(self._history))[-2:]

        def shows(baseline: Baseline) -> bool:
            if defect is not None:
                return baseline.has(defect)
            return self._departs(baseline, DOCUMENTED, last)

        candidates = self._candidates(self._current, DOCUMENTED) if self._kubelet else ()
        shown = () if defect is None else (defect,)
        return any(shows(one) and self._adopt(one, last, shown) for one in candidates)

    def baseline_divergence(self) -> BaselineDivergence | None:
        """Whether the implementation follows the kubelet or its documentation.

        None if the two agree on all compared answers, or if only documented behaviour is accepted.
        """
        if self._shared:
            return BaselineDivergence("kubelet", self.shared)
        index, level = self._avoided_at, self._exact
        if index is None and self._kubelet and self._level != "invariants":
            index, level = self._first_difference(KUBELET), self._level
        return (
            None
            if index is None
            else BaselineDivergence("documented", self._avoided_defects(index, level))
        )

    def _switch(self) -> bool:
        """Switches to a baseline that agrees with every answer so far, if there is one."""
        everything = range(len(self._history))
        ends = (self._departs(end, self._current, everything) for end in self._ends[1:])
        if self._current.follows_documents and not any(ends):
            return False
        return any(map(self._adopt, self._candidates(self._current)))

    @property
    def _has_open_choices(self) -> bool:
        """Whether the level leaves it open which CPUs and NUMA nodes to choose."""
        return not applies("placement", self._level)

    def _agrees_on_outcomes(self) -> bool:
        """Whether a baseline accepts and refuses the same calls for the same reasons."""
        return any(
            all(not self._difference(one, n, "admission") for n in range(len(self._history)))
            for one in self._candidates(self._current)
        )

    def _explain_refusal(self) -> bool:
        """Looks for choices with which the current baseline refuses the last call as well."""
        refusal = isinstance(
            self._history[-1].answer, messages.AdmissionRefused | messages.StartRefused
        )
        if not refusal:
            return False
        references, here = self._references, len(self._history) - 1
        for choices in self._other_choices():
            self._history[-1] = replace(self._history[-1], choices=choices)
            self._references = {}
            if not self._difference(self._current, here, self._level):
                return True
        self._history[-1] = replace(self._history[-1], choices=None)
        self._references = references
        return False

    def _other_choices(self) -> Iterator[Choices]:
        """The choices that the level leaves open and that may have led to the last refusal."""
        last, before = self._history[-1], self._history[-2::-1]
        if isinstance(last.answer, messages.AdmissionRefused):
            yield from alternatives.of_pod(last.answer, only_devices=not self._has_open_choices)
        elif self._has_open_choices and isinstance(last.args, messages.StartArgs):
            states = (one.answer for one in before)
            state = next((one for one in states if isinstance(one, messages.State)), None)
            if state is not None:
                yield from alternatives.of_start(state)

    def _candidates(self, *bases: Baseline) -> Iterator[Baseline]:
        """The current baseline, the bases with one defect or change toggled, and `_ends`."""
        toggled = (base.with_toggled(name) for base in bases for name in self._names())
        yield from dict.fromkeys((self._current, *toggled, *reversed(self._ends)))

    def _adopt(
        self, baseline: Baseline, exactly: Sequence[int] = (), defects: Sequence[str] = ()
    ) -> bool:
        """Switches to a baseline if it agrees with all answers, and exactly with some of them.

        Answers at the positions `exactly` are compared at the strictest level. `defects` are the
        defects to record as shared; by default, those that affect the answers.
        """
        if self._first_difference(baseline, exactly) is not None:
            return False
        defects = defects or self._contributing(baseline, exactly or (len(self._history) - 1,))
        self._shared |= dict.fromkeys(sorted(defects))
        self._current = baseline
        return True

    def _first_difference(self, baseline: Baseline, exactly: Sequence[int] = ()) -> int | None:
        """The position of the first answer that differs from the baseline's."""
        levels = (self._exact if n in exactly else self._level for n in range(len(self._history)))
        return next((n for n, one in enumerate(levels) if self._difference(baseline, n, one)), None)

    def _contributing(self, baseline: Baseline, positions: Sequence[int]) -> tuple[str, ...]:
        """The undocumented behaviour that a baseline's answers depend on."""
        beyond = baseline.exceptions if baseline.follows_documents else self._names()
        return tuple(
            name
            for name in self._names()
            if name in beyond
            and baseline.has(name)
            and self._departs(baseline.with_toggled(name), baseline, positions)
        )

    def _avoided_defects(self, index: int, level: messages.Level) -> tuple[str, ...]:
        """The defect that makes the kubelet's answer differ from the implementation's.

        If no single defect explains the answer, returns all that contribute to the kubelet's
        answer.
        """
        for name in self._names():
            lacking = KUBELET.with_toggled(name)
            if self._answer(lacking, index) and not self._difference(lacking, index, level):
                return (name,)
        return self._contributing(KUBELET, (index,))

    def _names(self) -> list[str]:
        """The undocumented changes and the defects of the releases used in the calls so far.

        If no call so far needs a node, these are only the ones that are visible without a node.
        """
        releases = {getattr(one.args, "kubernetes", None) for one in self._history}
        shown = [SHOWN_WITHOUT_NODE.get(one.operation) for one in self._history]
        defects = [defect for defect in DEFECTS if defect.answers] if self._kubelet else []
        return [
            known.name
            for known in (*CHANGES, *defects)
            if releases.intersection(known.releases)
            and any(names is None or known.name in names for names in shown)
        ]

    def _departs(self, baseline: Baseline, other: Baseline, positions: Iterable[int]) -> bool:
        """Whether two baselines differ in their answer to any call at `positions`."""
        return any(self._answer(baseline, n) != self._answer(other, n) for n in positions)

    def _difference(self, baseline: Baseline, index: int, level: messages.Level) -> Finding | None:
        """How the implementation's answer to a call differs from the baseline's."""
        own, right = self._history[index], self._answer(baseline, index)
        if right is None:
            return None
        return disagreement(own.args, own.answer, right, level, self._discovers)

    def _answer(
        self, baseline: Baseline, index: int, *, chooses: bool = False
    ) -> messages.Answer | None:
        """The baseline's answer to a call, after replaying the calls before it.

        It makes the implementation's choices, or its own if it `chooses`.
        """
        place = baseline, chooses
        if place not in self._references:
            folder = self._folder / str(next(self._numbers))
            make_folder(folder)
            self._references[place] = Oracle(self._make(baseline), folder, self._level), []
        oracle, answers = self._references[place]
        for one in self._history[len(answers) : index + 1]:
            for alteration in one.alterations:
                oracle.alter(alteration)
            choices = NO_CHOICES if chooses else one.choices
            answers.append(oracle.respond(one.operation, one.args, one.answer, choices))
        return answers[index]
