"""Turns a finding into a case of the suite by adding expectations to its steps.

The expectations are the reference's documented answers, reduced to those that show the failure: at
the lowest level at which the implementation fails, the full answer to the last step, and whether
the earlier steps are accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import loading, manifests, releases, writing
from numaproof.conformance.cases.manifests import pod_name
from numaproof.conformance.cases.schema import (
    BlockExpected,
    Case,
    ContainerExpected,
    DevicesExpected,
    Expected,
    Memory,
    NoArguments,
    StartStep,
    Step,
    UpdateExpected,
)
from numaproof.conformance.execution.run import Run, RunResult, Target, reference_target
from numaproof.conformance.judging.baselines import DOCUMENTED, KUBELET
from numaproof.conformance.judging.expectations import nodes_of
from numaproof.conformance.judging.oracle import any_option
from numaproof.inputs import documents
from numaproof.protocol import codec, messages
from numaproof.protocol.messages import LEVELS, Container, Level, MemoryBlock
from numaproof.protocol.releases import RELEASES
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numaproof.conformance.execution.session import Session
    from numaproof.conformance.requirements import Registry
    from numaproof.protocol.sets import CPUSet


SHARED = "shared"
_CHECKSUMS = frozenset({"checksum", "dataChecksum"})


def accepted_or_refused(
    answer: messages.Answer, readmissions: Mapping[str, messages.Answer]
) -> Expected:
    """The expectation that a step is accepted, or refused with the documented reason.

    Args:
        answer: the answer to the step.
        readmissions: the answers to the admissions after a start, by pod uid.
    """
    match answer:
        case messages.StartRefused(stage=word) | messages.AdmissionRefused(reason=word):
            return Expected(refused=word)
    refused = {
        pod_name(uid): one.reason
        for uid, one in readmissions.items()
        if isinstance(one, messages.AdmissionRefused)
    }
    return Expected(readmission=refused)


class Expecting:
    """Derives expectations from answers at a level.

    Below ``placement``, implementations choose CPUs and nodes themselves, so sets become counts.
    Below ``kubelet``, they need not have the kubelet's messages and files.

    Args:
        level: how closely answers are compared.
        session: the session with the answers, and the devices last reported.
        shared: the shared pool after the answer; None if unknown.
    """

    def __init__(self, level: Level, session: Session, shared: CPUSet | None) -> None:
        self._exact = loading.applies("placement", level)
        self._verbatim = loading.applies("kubelet", level)
        self._session = session
        self._shared = shared

    def all_of(self, answer: messages.Answer, expected: Expected) -> Expected:
        """Adds to `expected` everything in an answer that is compared at the level."""
        return msgspec.structs.replace(expected, **self._fields(answer))

    def _fields(self, answer: messages.Answer) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        match answer:
            case messages.StartRefused() | messages.AdmissionRefused():
                fields = self._message(answer)
            case messages.Started():
                cpus = answer.cpus
                fields = {"all": self._set(cpus.all), "allocatable": self._set(cpus.allocatable)}
                if answer.memory:
                    fields["memory"] = self._memory(answer.memory)
            case messages.Admitted():
                fields = {"containers": self._containers(answer.containers)}
            case messages.State():
                fields = self._state(answer)
            case messages.NodeHints() if self._exact:
                told = codec.to_plain(answer)
                fields = {"hints": {name: one for name, one in told.items() if one is not None}}
            case messages.Reconciled() if self._exact:
                fields = {"updates": tuple(self._update(one) for one in answer.updates)}
            case _:
                fields = self._without_node(answer)
        return fields

    def _without_node(self, answer: messages.Answer) -> dict[str, Any]:
        match answer:
            case messages.Assigned():
                return {"cpus": self._set(answer.cpus)}
            case messages.Merged() if self._exact:
                return {"admit": answer.admit, "hint": codec.to_plain(answer.hint)}
            case messages.Merged():
                return {"admit": answer.admit}
        return {}

    def _update(self, update: messages.CPUUpdate) -> UpdateExpected:
        return UpdateExpected(pod_name(update.uid), update.container, self._runs_on(update.cpus))

    def _message(self, answer: messages.StartRefused | messages.AdmissionRefused) -> dict[str, Any]:
        """The text of a refusal, unless it names an arbitrary one of several options."""
        told = self._session.normal(answer)
        if not self._verbatim or any_option(told) != told:
            return {}
        return {"message": codec.to_plain(told)["message"]}

    def _set(self, cpus: CPUSet) -> int | str:
        return str(cpus) if self._exact else len(cpus)

    def _runs_on(self, cpus: CPUSet) -> str:
        return SHARED if cpus == self._shared else str(cpus)

    def _containers(self, containers: Mapping[str, Container]) -> dict[str, ContainerExpected]:
        return {name: self._container(one) for name, one in containers.items()}

    def _container(self, container: Container) -> ContainerExpected:
        config = self._session.config
        aligned = config.get("topologyManagerPolicy", "none") != "none"
        pinned = container.memory or config.get("memoryManagerPolicy") == "Static"
        return ContainerExpected(
            exclusive=self._set(container.exclusive),
            cpus=self._runs_on(container.cpus)
            if self._exact and container.cpus != container.exclusive
            else None,
            affinity=codec.to_plain(container.affinity) if self._exact and aligned else None,
            memory=self._memory(container.memory) if pinned else None,
            devices=self._devices(container) or None,
        )

    def _memory(self, blocks: Sequence[MemoryBlock]) -> Memory:
        if self._exact:
            return tuple(_block(one) for one in blocks)
        sums: dict[str, int] = {}
        for one in blocks:
            sums[one.type] = sums.get(one.type, 0) + one.size
        return dict(sums)

    def _devices(self, container: Container) -> dict[str, Any]:
        """The number of devices, or their nodes if the affinity leaves no choice."""
        wanted: dict[str, Any] = {}
        for resource, ids in (container.devices or {}).items():
            nodes = nodes_of(resource, self._session.devices)
            on = tuple(nodes.get(one, ()) for one in ids)
            near = (
                self._exact
                and set(on) == {tuple(container.affinity.numa or ())}
                and len(on[0]) == 1
            )
            wanted[resource] = DevicesExpected(on) if near else len(ids)
        return wanted

    def _state(self, answer: messages.State) -> dict[str, Any]:
        pods = {pod_name(uid): self._containers(held) for uid, held in answer.pods.items()}
        files = {name: _file(text) for name, text in answer.files.items()}
        return {
            "shared": self._set(answer.shared),
            "pods": pods,
            **({"files": files} if self._verbatim else {}),
        }


def _block(block: MemoryBlock) -> BlockExpected:
    """Converts a block to an expectation and omits the default type."""
    said = {"type": block.type} if block.type != "memory" else {}
    return BlockExpected(tuple(block.numa), block.size, **said)


def _file(text: str) -> str | dict[str, Any]:
    """The contents of a checkpoint, excluding its checksums."""
    try:
        content = codec.decode_any(text)
    except codec.ProtocolError:
        return text
    if not isinstance(content, dict):
        return text
    return {key: value for key, value in content.items() if key not in _CHECKSUMS}


_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")


class PromotionError(ValueError):
    """A finding can't be promoted; the message suggests a fix."""


@dataclass(frozen=True)
class PromotionOptions:
    """The user's choices for the new case.

    Attributes:
        id: the id of the case.
        title: the behaviour as a sentence; None for the statement of the first requirement.
        requirements: the requirements it checks; empty for those in the finding.
        kubernetes: the release whose answers to expect.
        level: the level of the case; None for the lowest that shows the failure.
        defect: the named defect that makes a kubelet fail the case.
    """

    id: str
    title: str | None
    requirements: tuple[str, ...]
    kubernetes: str
    level: Level | None = None
    defect: str | None = None


@dataclass(frozen=True)
class Promotion:
    """The new case, and the implementation's failure if an implementation was available."""

    case: Case
    failure: RunResult | None = None


def promote(
    finding: Case,
    options: PromotionOptions,
    registry: Registry,
    taken_ids: Iterable[str],
    target: Target | None,
) -> Promotion:
    """Turns a finding into a case.

    Args:
        finding: concrete steps on its own machine, as written by `numaproof fuzz`.
        options: the user's choices for the case.
        registry: the requirements.
        taken_ids: the ids of other cases.
        target: an implementation that must fail the case; None if none is available.

    Raises:
        PromotionError: the id or a requirement is unsuitable, or nothing can be expected.
        CaseError: the finding names an unknown requirement, or can't be played to the end.
        ImplementationFailure: the implementation didn't answer.
    """
    _check_id(options.id, frozenset(taken_ids))
    try:
        requirements = _requirements(options.requirements or finding.requirements, registry)
    except PromotionError as error:
        if options.requirements:
            raise
        raise loading.CaseError(finding.id, 0, str(error)) from None
    if finding.machine is None:
        raise PromotionError(f"{finding.id} does not define a machine: write it as a case")
    statement = registry.by_id()[requirements[0]].statement
    begun = msgspec.structs.replace(
        finding,
        id=options.id,
        title=options.title or statement.removesuffix("."),
        requirements=requirements,
        aliases=(),
        defect=options.defect,
        steps=tuple(step.on(options.kubernetes) for step in finding.steps),
    )
    try:
        return _promote(begun, finding, options, target)
    except loading.CaseError as error:
        # The finding keeps its original id in its file.
        raise loading.CaseError(finding.id, error.step, error.message) from error


def _promote(
    draft: Case, finding: Case, options: PromotionOptions, target: Target | None
) -> Promotion:
    rehearsal = _rehearse(draft, options.kubernetes)
    levels = (options.level,) if options.level else LEVELS
    if target is None:
        # Broken invariants show at any level, differences from the reference only at level
        # placement and above.
        level: Level = options.level or ("invariants" if finding.requirements else "placement")
        made = Promotion(
            _with_expectations(draft, rehearsal, level, with_state=level != "invariants")
        )
    else:
        made = _least(draft, rehearsal, levels, target)
    case = msgspec.structs.replace(made.case, kubernetes=_releases(made.case, options.kubernetes))
    return replace(made, case=case)


def _check_id(name: str, taken_ids: frozenset[str]) -> None:
    if not _ID.fullmatch(name):
        raise PromotionError(
            f"{name!r} is not a valid id: name the area and the behaviour in lower-case words"
            " joined by hyphens, such as remove-frees-what-was-held"
        )
    if name in taken_ids:
        raise PromotionError(f"a case {name} already exists: choose another id")


def _requirements(names: Sequence[str], registry: Registry) -> tuple[str, ...]:
    rows = registry.by_id()
    for name in names:
        if name not in rows:
            close = get_close_matches(name.upper(), rows, n=3)
            hint = (
                f"did you mean {' or '.join(close)}?"
                if close
                else "see docs/requirements.md for the list"
            )
            raise PromotionError(f"there is no requirement {name}; {hint}")
    if not names:
        raise PromotionError(
            "the finding names no requirement: add --requirement with an id from"
            " conformance/requirements.yaml, such as CPU-STATIC-001"
        )
    return tuple(dict.fromkeys(names))


def _least(case: Case, rehearsal: _Rehearsal, levels: Sequence[Level], target: Target) -> Promotion:
    """The case with the fewest expectations that fails on the target."""
    claimed = [one for one in levels if loading.applies(one, target.level)]
    if not claimed:
        raise PromotionError(
            f"{target.hello.name} claims level {target.level}, so cases of level"
            f" {levels[0]} are not played"
        )
    alone = replace(target, is_compared=False)
    for level in claimed:
        for asked in (False, True):
            made = _with_expectations(case, rehearsal, level, with_state=asked)
            if not (verdict := _verdict(made, alone)).good:
                return Promotion(made, verdict)
    # Otherwise only the comparison with the reference, call by call, may still show the failure.
    if not (verdict := _verdict(made, target)).good:
        return Promotion(made, verdict)
    message = (
        f"{target.hello.name} passes the case at level {claimed[-1]}: there is no failure to keep"
    )
    raise PromotionError(message)


@dataclass(frozen=True)
class _PlayedStep:
    """A step played on the reference, its answer, and whether it was accepted."""

    step: Step
    answer: messages.Answer | None
    outcome: Expected


@dataclass(frozen=True)
class _Rehearsal:
    """A run of the finding on the reference.

    Attributes:
        run: the run, after all steps.
        steps: the steps that were not skipped.
        state: the final state, if the node was running.
        is_forced: whether every correct implementation accepts the same steps, wherever it places
            pods.
    """

    run: Run
    steps: tuple[_PlayedStep, ...]
    state: _PlayedStep | None
    is_forced: bool


def _rehearse(case: Case, kubernetes: str) -> _Rehearsal:
    assert case.machine is not None
    look = Step(state=NoArguments(), expect="anything")
    steps = (*case.steps, look)
    with scratch_folder() as scratch:
        target = reference_target(kubernetes, DOCUMENTED)
        looking = msgspec.structs.replace(case, steps=steps)
        run = Run(target, looking, case.machine, None, scratch / "rehearsal")
        session = run.player.session
        _make(run, run.player.begin, 0)
        made, forced = [], True
        for number, step in enumerate(steps):
            pods = tuple(session.pods)
            done = _make(run, partial(run.player.play_step, number), number + 1)
            if done or step.tamper:
                made.append(
                    _PlayedStep(_without_strangers(step, pods), *done or (None, Expected()))
                )
            forced = forced and _is_forced(session.config, step)
    state = made.pop() if made and made[-1].step is look else None
    if not any(one.step.tamper is None for one in made):
        raise PromotionError(
            "nothing can be expected: the reference skips every step, because each needs a"
            " running node or a pod on it"
        )
    return _Rehearsal(run, tuple(made), None if made[-1].step.verb == "state" else state, forced)


def _make(
    run: Run, action: Callable[[], None], number: int
) -> tuple[messages.Answer, Expected] | None:
    """Plays a step; returns the answer and whether it was accepted, or None if it was skipped.

    Raises:
        CaseError: the reference refuses to play the step.
    """
    made = run.player.session.calls
    before = len(made)
    result = run.judge(action)
    if result.outcome != "pass":
        message = f"the reference can't play the step: {result.outcome}: {result.message}"
        raise loading.CaseError(run.case.id, number, message)
    answers = [(call.args, call.answer) for call in made[before:] if call.answer is not None]
    if not answers:
        return None
    again = {
        args.pod["metadata"]["uid"]: answer
        for args, answer in answers[1:]
        if isinstance(args, messages.AdmitArgs)
    }
    return answers[0][1], accepted_or_refused(answers[0][1], again)


def _without_strangers(step: Step, pods: Iterable[str]) -> Step:
    """Removes from a start's `removed_pods` the pods that were not on the node."""
    if step.start is None:
        return step
    gone = tuple(name for name in step.start.removed_pods if manifests.uid(name) in pods)
    return msgspec.structs.replace(
        step, start=msgspec.structs.replace(step.start, removed_pods=gone)
    )


_CHOOSES = ("cpuManagerPolicyOptions", "topologyManagerPolicyOptions")
_POLICIES = {"topologyManagerPolicy": "none", "memoryManagerPolicy": "None"}


def _is_forced(config: Mapping[str, Any], step: Step) -> bool:
    """Whether a step's outcome depends only on amounts, not on earlier placement."""
    changed = step.start is not None and step.start != StartStep(
        config=step.start.config, devices=step.start.devices
    )
    return (
        step.tamper is None
        and not changed
        and not any(config.get(key) for key in _CHOOSES)
        and all(config.get(key, none) == none for key, none in _POLICIES.items())
    )


def _with_expectations(
    case: Case, rehearsal: _Rehearsal, level: Level, *, with_state: bool
) -> Case:
    """Adds the expectations at a level to a case; `with_state` adds a final state check."""
    played = [*rehearsal.steps, *([rehearsal.state] if with_state and rehearsal.state else [])]
    open_ended = level == "invariants" and not rehearsal.is_forced
    view = rehearsal.run.player.checker.now
    full = Expecting(level, rehearsal.run.player.session, view.state.shared if view else None)
    steps = []
    for number, one in enumerate(played, 1):
        expect: Any = one.outcome
        if number >= len(rehearsal.steps) and one.answer is not None:
            expect = full.all_of(one.answer, one.outcome)
        if open_ended or (level == "invariants" and one.outcome.refused):
            expect = "anything"
        if one.step.expect != "anything":
            expect = one.step.expect  # the user's own expectation
        steps.append(msgspec.structs.replace(one.step, expect=expect))
    made = msgspec.structs.replace(case, level=level, steps=tuple(steps))
    # Read the case back, so that what is tested is what was written.
    (read,) = loading.parse(writing.text(made), made.id)
    return read


def _verdict(case: Case, target: Target) -> RunResult:
    assert case.machine is not None
    with scratch_folder() as scratch:
        return Run(target, case, case.machine, None, scratch / "case").play()


def _releases(case: Case, kubernetes: str) -> str:
    """The range of releases in which the reference passes the case, around the requested one."""
    good = [
        one
        for one in RELEASES
        if releases.includes(case.kubernetes, one) and all(_passes(case, one))
    ]
    if kubernetes not in good:
        raise PromotionError(
            f"kubelet {kubernetes} answers this differently: name the defect with --defect (see"
            " docs/findings.md for the list)"
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
    for baseline in (DOCUMENTED, KUBELET):
        yield _verdict(case, reference_target(kubernetes, baseline)).good


def append_case(text: str, case: Case, file: str) -> str:
    """Appends a case to the text of a case file, independently of the file's defaults.

    Args:
        text: the text of the file; empty for a new file.
        case: the case.
        file: the name of the file, for messages.

    Raises:
        documents.DocumentError: the text is not a case file, or the case can't be added.
    """
    if not text:
        return f"cases:\n{writing.item(case)}"
    before = loading.parse(text, file)
    item = writing.item(case, **_explicit_fields(case, documents.load(text, file=file).data))
    made = writing.with_items(text, "cases", item, file, "a case")
    if not _reads_as(made, (*before, case)):
        message = "a case can't be added to this file"
        raise documents.DocumentError(
            file, 0, "", message, "add it to another file with --out FILE"
        )
    return made


def _explicit_fields(case: Case, data: dict[str, Any]) -> dict[str, Any]:
    """The fields that must be explicit to override the file's defaults."""
    defaults = data.get("defaults") or {}
    said: dict[str, Any] = {}
    taken_away = dict.fromkeys(defaults.get("config") or {}, None)
    if taken_away:
        said["config"] = taken_away
    if defaults.get("kubernetes") and not case.kubernetes:
        said["kubernetes"] = f">= {RELEASES[0]}"
    return said


def _reads_as(text: str, expected_cases: tuple[Case, ...]) -> bool:
    """Whether the new text contains the existing cases unchanged, and the new one."""
    try:
        *others, last = loading.parse(text, "")
    except documents.DocumentError:
        return False
    of_file = {"machines": expected_cases[-1].machines, "kubernetes": expected_cases[-1].kubernetes}
    return (*others, msgspec.structs.replace(last, **of_file)) == expected_cases
