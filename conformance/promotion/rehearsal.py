"""A finding played on the reference: its answers, and what each level can expect of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.errors import CaseError
from numaproof.conformance.cases.schema import Expected, NoArguments, StartStep, Step
from numaproof.conformance.execution.player import playing
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.judging.baselines import DOCUMENTED
from numaproof.conformance.promotion.expected_answers import Expecting, accepted_or_refused
from numaproof.folders.scratch import scratch_folder
from numaproof.protocol import messages
from numaproof.protocol.messages import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.session import Call
    from numaproof.protocol.messages import Level
    from numaproof.protocol.sets import CPUSet


class PromotionError(ValueError):
    """A finding can't become a case; the message says how to fix it."""


@dataclass(frozen=True)
class RehearsedStep:
    """A step that was made, whether it is accepted, and all that can be expected by level."""

    step: Step
    outcome: Expected
    by_level: Mapping[Level, Expected]


@dataclass(frozen=True)
class Rehearsal:
    """The steps that the reference made; with its state after them, if the node was up then.

    `forced` is whether every correct implementation accepts what is accepted here, wherever it
    puts it.
    """

    steps: tuple[RehearsedStep, ...]
    state: RehearsedStep | None
    forced: bool


def rehearse(case: Case, kubernetes: str) -> Rehearsal:
    assert case.machine is not None
    target = reference_target(kubernetes, DOCUMENTED)
    with scratch_folder() as scratch:
        run = Run(target, case, case.machine, None, scratch / "rehearsal")
        session = run.player.session
        _make(run, run.player.begin, 0)
        played, forced = [], True
        for number, step in enumerate(case.steps, 1):
            before, pods = len(session.calls), tuple(session.pods)
            _make(run, partial(run.player.step, step), number)
            calls = session.calls[before:]
            if calls or step.tamper:
                played.append(_step(_without_strangers(step, pods), calls, run))
            forced = forced and _is_forced(session.config, step)
        if not any(one.step.tamper is None for one in played):
            raise PromotionError(
                "nothing can be expected: the reference skips every step, for each needs a running"
                " node, or a pod on it"
            )
        state = None
        if session.started is not None and played[-1].step.verb != "state":
            last = Step(state=NoArguments(), expect="anything")
            before = len(session.calls)
            _make(run, partial(run.player.step, last), len(case.steps) + 1)
            state = _step(last, session.calls[before:], run)
    return Rehearsal(tuple(played), state, forced)


def _make(run: Run, action: Callable[[], None], number: int) -> None:
    """Makes a step, or begins, and refuses what the reference does not answer well."""
    with playing(run.player.case.id, number):
        result = run.judge(action)
    if result.outcome != "pass":
        message = f"the reference goes no further: {result.outcome}: {result.message}"
        raise CaseError(run.player.case.id, number, message)


def _without_strangers(step: Step, pods: Iterable[str]) -> Step:
    """A start without the pods, among those gone, that were not on the node."""
    if step.start is None:
        return step
    gone = tuple(name for name in step.start.gone if manifests.uid(name) in pods)
    return msgspec.structs.replace(step, start=msgspec.structs.replace(step.start, gone=gone))


def _step(step: Step, calls: Sequence[Call], run: Run) -> RehearsedStep:
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
    return RehearsedStep(step, outcome, by_level)


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
