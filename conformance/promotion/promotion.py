"""A finding becomes a case of a table: concrete steps get what is to be expected of them.

What is expected is what the reference answers by the documents. How much of it is expected is
the least that shows the failure: at the lowest level at which an implementation that has it
fails, of the last step in full, and of those before it whether they are accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases import loading, manifests, releases, writing
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.schema import Case, Expected, NoArguments, StartStep, Step
from numaproof.conformance.execution.implementation import InProcess, handshake
from numaproof.conformance.execution.run import Run, Target
from numaproof.conformance.execution.scratch import scratch_folder
from numaproof.conformance.promotion.expected_answers import Expecting, accepted_or_refused
from numaproof.protocol import messages
from numaproof.protocol.messages import LEVELS
from numaproof.reference.departures.releases import RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from numaproof.conformance.execution.run import RunResult
    from numaproof.conformance.execution.session import Call
    from numaproof.conformance.requirements import Registry
    from numaproof.protocol.messages import Level
    from numaproof.protocol.sets import CPUSet

_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")


class PromotionError(ValueError):
    """A finding can't become a case; the message says what to mend."""


@dataclass(frozen=True)
class Wanted:
    """What a person says of the case that is to be.

    Attributes:
        id: its id.
        title: the behaviour as a sentence; None for the statement of its first requirement.
        requirements: that it checks; none for those that the finding names.
        kubernetes: the release whose answers are expected.
        level: its level; None for the lowest that shows the failure.
        defect: by which a kubelet is known to fail it.
    """

    id: str
    title: str | None
    requirements: tuple[str, ...]
    kubernetes: str
    level: Level | None = None
    defect: str | None = None


def promote(
    finding: Case, wanted: Wanted, registry: Registry, taken: Iterable[str], target: Target | None
) -> Case:
    """The case that a finding becomes.

    Args:
        finding: concrete steps on a machine of its own, as `numaproof fuzz` writes them.
        wanted: what a person says of the case.
        registry: the requirements that there are.
        taken: ids that other cases have.
        target: an implementation with the failure, which the case must fail on; None where
            there is none at hand.

    Raises:
        PromotionError: the id, a requirement or the finding is not one that can be.
        ImplementationFailure: the implementation did not answer at all.
    """
    _check_id(wanted.id, frozenset(taken))
    requirements = _requirements(wanted.requirements or finding.requirements, registry)
    if finding.machine is None:
        raise PromotionError(f"{finding.id} brings no machine of its own: write it as a case")
    statement = registry.by_id()[requirements[0]].statement
    begun = msgspec.structs.replace(
        finding,
        id=wanted.id,
        title=wanted.title or statement.removesuffix("."),
        requirements=requirements,
        aliases=(),
        defect=wanted.defect,
        steps=tuple(step.on(wanted.kubernetes) for step in finding.steps),
    )
    rehearsal = _rehearse(begun, wanted.kubernetes)
    levels = (wanted.level,) if wanted.level else LEVELS
    if target is None:
        # A broken invariant shows at any level, a difference from the reference not below this.
        level: Level = wanted.level or ("invariants" if finding.requirements else "placement")
        case = _expecting(begun, rehearsal, level, asked=level != "invariants")
    else:
        case = _least(begun, rehearsal, levels, target)
    return msgspec.structs.replace(case, kubernetes=_releases(case, wanted.kubernetes))


def _check_id(name: str, taken: frozenset[str]) -> None:
    if not _ID.fullmatch(name):
        raise PromotionError(
            f"{name!r} is no id: write its area and what it is about in small letters and digits"
            " with hyphens between, such as remove-frees-what-was-held"
        )
    if name in taken:
        raise PromotionError(f"there is a case {name} already: choose another id")


def _requirements(names: Sequence[str], registry: Registry) -> tuple[str, ...]:
    rows = registry.by_id()
    for name in names:
        if name not in rows:
            close = get_close_matches(name.upper(), rows, n=3)
            mend = f"did you mean {' or '.join(close)}?" if close else "docs/cases.md says which"
            raise PromotionError(f"there is no requirement {name}; {mend}")
    if not names:
        raise PromotionError(
            "the finding names no requirement: give --requirement, an id of"
            " conformance/requirements.yaml such as CPU-STATIC-001"
        )
    return tuple(dict.fromkeys(names))


# What the reference does


@dataclass(frozen=True)
class _Played:
    """A step that was made, whether it is accepted, and all that can be expected by level."""

    step: Step
    outcome: Expected
    by_level: Mapping[Level, Expected]


@dataclass(frozen=True)
class _Rehearsal:
    """The steps that the reference made; with its state after them, if the node was up then.

    `forced` is whether every correct implementation accepts what is accepted here, wherever it
    puts it.
    """

    played: tuple[_Played, ...]
    state: _Played | None
    forced: bool


def _reference(kubernetes: str, *, documented: bool) -> Target:
    made = InProcess(lambda: Reference(documented=documented))
    hello = handshake(made, "numaproof")
    return Target(made, hello, kubernetes, hello.level, documented=documented)


def _rehearse(case: Case, kubernetes: str) -> _Rehearsal:
    assert case.machine is not None
    target = _reference(kubernetes, documented=True)
    with scratch_folder() as scratch:
        run = Run(target, case, case.machine, None, scratch / "rehearsal")
        session = run.player.session
        played, forced = [], True
        for number, step in enumerate(case.steps, 1):
            before, pods = len(session.calls), tuple(session.pods)
            _make(run, step, number)
            calls = session.calls[before:]
            if calls or step.tamper:
                played.append(_step(_without_strangers(step, pods), calls, run))
            forced = forced and _is_forced(session.config, step)
        if not any(one.step.tamper is None for one in played):
            raise PromotionError("the reference makes none of its calls: nothing can be expected")
        state = None
        if session.started is not None and played[-1].step.verb != "state":
            last = Step(state=NoArguments(), expect="anything")
            before = len(session.calls)
            _make(run, last, len(case.steps) + 1)
            state = _step(last, session.calls[before:], run)
    return _Rehearsal(tuple(played), state, forced)


def _make(run: Run, step: Step, number: int) -> None:
    """Makes a step, and refuses what the reference does not answer well."""
    try:
        result = run.judge(partial(run.player.step, step))
    except (ValueError, LookupError) as error:
        raise PromotionError(f"step {number} can't be played as it stands: {error}") from error
    if result.outcome != "pass":
        raise PromotionError(
            f"the reference does not play it to its end: step {number} ends in"
            f" {result.outcome}: {result.message}"
        )


def _without_strangers(step: Step, pods: Iterable[str]) -> Step:
    """A start without the pods, among those gone, that were not on the node."""
    if step.start is None:
        return step
    gone = tuple(name for name in step.start.gone if manifests.uid(name) in pods)
    return msgspec.structs.replace(step, start=msgspec.structs.replace(step.start, gone=gone))


def _step(step: Step, calls: Sequence[Call], run: Run) -> _Played:
    outcome = Expected()
    answer = None
    if calls:
        answer = calls[0].answer
        assert answer is not None
        again = {
            call.args.pod["metadata"]["uid"]: call.answer
            for call in calls[1:]
            if isinstance(call.args, messages.AdmitArgs) and call.answer is not None
        }
        outcome = accepted_or_refused(answer, again)
    view = run.player.checker.now
    shared: CPUSet | None = view.state.shared if view else None
    by_level = {
        level: outcome
        if answer is None
        else Expecting(level, run.player.session, shared).all_of(answer, outcome)
        for level in LEVELS
    }
    return _Played(step, outcome, by_level)


_CHOOSES = ("cpuManagerPolicyOptions", "topologyManagerPolicyOptions")
_POLICIES = {"topologyManagerPolicy": "none", "memoryManagerPolicy": "None"}


def _is_forced(config: Mapping[str, Any], step: Step) -> bool:
    """Whether a step is accepted or refused by amounts alone, wherever things were put before."""
    changed = step.start is not None and step.start != StartStep(
        config=step.start.config, devices=step.start.devices
    )
    return (
        step.tamper is None
        and not changed
        and not any(config.get(key) for key in _CHOOSES)
        and all(config.get(key, none) == none for key, none in _POLICIES.items())
    )


# What the case expects of it


def _least(case: Case, rehearsal: _Rehearsal, levels: Sequence[Level], target: Target) -> Case:
    """The case that expects least among those that fail on the target."""
    claimed = [one for one in levels if applies(one, target.level)]
    if not claimed:
        raise PromotionError(
            f"{target.hello.name} claims level {target.level}, at which a case of level"
            f" {levels[0]} is not played"
        )
    alone = replace(target, oracle=None)
    for level in claimed:
        for asked in (False, True):
            made = _expecting(case, rehearsal, level, asked=asked)
            if not _verdict(made, alone).good:
                return made
    # Then only the comparison with the reference, call by call, may still show it.
    if not _verdict(made, target).good:
        return made
    raise PromotionError(
        f"{target.hello.name} passes it at level {claimed[-1]}: there is no failure to keep"
    )


def _expecting(case: Case, rehearsal: _Rehearsal, level: Level, *, asked: bool) -> Case:
    """The case with what is expected at a level; `asked` adds a look at the state in the end."""
    played = [*rehearsal.played, *([rehearsal.state] if asked and rehearsal.state else [])]
    open_ended = level == "invariants" and not rehearsal.forced
    steps = []
    for number, one in enumerate(played, 1):
        expect: Any = one.by_level[level] if number >= len(rehearsal.played) else one.outcome
        if open_ended or (level == "invariants" and one.outcome.refused):
            expect = "anything"
        if one.step.expect != "anything":
            expect = one.step.expect  # somebody has said it
        steps.append(msgspec.structs.replace(one.step, expect=expect))
    made = msgspec.structs.replace(case, level=level, steps=tuple(steps))
    # What is tried is what will be read.
    (read,) = loading.parse(writing.text(made), made.id)
    return read


def _verdict(case: Case, target: Target) -> RunResult:
    assert case.machine is not None
    with scratch_folder() as scratch:
        return Run(target, case, case.machine, None, scratch / "case").play()


def _releases(case: Case, kubernetes: str) -> str:
    """The releases in which the reference passes the case, around the one that was asked for."""
    good = [
        one
        for one in RELEASES
        if releases.includes(case.kubernetes, one) and all(_passes(case, one))
    ]
    if kubernetes not in good:
        raise PromotionError(
            f"a kubelet {kubernetes} is known to answer this otherwise: name the --defect by"
            " which it does (docs/findings.md)"
        )
    first = last = RELEASES.index(kubernetes)
    while first and RELEASES[first - 1] in good:
        first -= 1
    while last + 1 < len(RELEASES) and RELEASES[last + 1] in good:
        last += 1
    bounds = (f">= {RELEASES[first]}" if first else "", f"<= {RELEASES[last]}")
    newest = last == len(RELEASES) - 1
    return ", ".join(bound for bound in (bounds[0], "" if newest else bounds[1]) if bound)


def _passes(case: Case, kubernetes: str) -> Iterator[bool]:
    for documented in (True, False):
        yield _verdict(case, _reference(kubernetes, documented=documented)).good
