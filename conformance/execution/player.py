"""Plays the steps of a case against an implementation.

Each step is expanded for the machine, turned into calls and judged by the case's expectations, by
the invariants and, in the session, by the oracle.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from numaproof.conformance.cases import checkpoints, expressions, manifests
from numaproof.conformance.cases.loading import CaseError, merge_configs
from numaproof.conformance.cases.schema import (
    Case,
    Devices,
    EndStep,
    Expectation,
    Expected,
    HintsStep,
    MemoryChange,
    PodSpec,
    RemoveStep,
    StartStep,
    Step,
)
from numaproof.conformance.claims.needs import CHECKPOINT_FILES, POLICY_FIELDS
from numaproof.conformance.execution.capabilities import NotSupportedError
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.judging import expectations, known_defects
from numaproof.conformance.judging.invariants.view import BrokenInvariant
from numaproof.conformance.judging.machine_comparison import seen_in
from numaproof.inputs.plurals import format_numbers
from numaproof.protocol import codec, discovery, messages
from numaproof.protocol.messages import Level, MergeArgs
from numaproof.protocol.sets import CPUSet
from numaproof.reference.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.execution.session import Call, Session
    from numaproof.conformance.judging.baselines import Baselines
    from numaproof.conformance.judging.finding import Finding
    from numaproof.conformance.judging.invariants import InvariantChecker
    from numaproof.conformance.judging.invariants.view import View, Violation

_WITHOUT_START = frozenset({"start", "assign", "discover", "tamper", "merge"})
"""Steps that need no running node. If a case begins with any other step, the node is started first.
"""


_UNPLAYABLE = (ValueError, LookupError, codec.ProtocolError, UnsupportedError)
"""Errors from badly written steps: invalid values, unknown names, values that don't fit the
protocol, and amounts too large to compute with.
"""


def starts_implicitly(case: Case) -> bool:
    """Whether the node is started before the first step."""
    return case.steps[0].verb not in _WITHOUT_START


@contextmanager
def playing(case: str, step: int) -> Iterator[None]:
    """Converts errors from badly written steps into one that names the case and the step.

    Args:
        case: the id of the case.
        step: the number of the step, from 1; 0 for the case as a whole.

    Raises:
        CaseError: the step can't be played as written.
    """
    try:
        yield
    except CaseError:
        raise
    except _UNPLAYABLE as error:
        raise CaseError(case, step, str(error)) from error


@dataclass
class Player:
    """Plays one case once.

    Attributes:
        facts: the machine's current properties.
        level: how closely answers are compared.
        checker: checks the invariants.
        baselines: the accepted baselines; None if there is only one.
        broken_invariants: the broken invariants in the order found.
        out_of_step: whether the harness and the implementation disagree about the node's state,
            because a start or a following admission was unsupported. If so, nothing more can be
            played.
    """

    checks_invariants: ClassVar[bool] = True

    case: Case
    session: Session
    facts: Facts
    level: Level
    checker: InvariantChecker
    baselines: Baselines | None = None
    out_of_step: bool = False
    broken_invariants: list[BrokenInvariant] = field(default_factory=list)
    _pods: dict[str, messages.Pod] = field(default_factory=dict)

    @property
    def violations(self) -> list[Violation]:
        """The broken invariants."""
        return [one.violation for one in self.broken_invariants]

    @property
    def problems(self) -> list[Finding]:
        """All findings so far."""
        return [problem for call in self.session.calls for problem in call.problems]

    def play(self) -> None:
        """Plays all steps until a problem is found.

        Raises:
            NotSupportedError: a call needs a missing claim, or was answered ``unsupported``.
            CaseError: the case can't be played as written.
            ImplementationFailure: there was no answer.
        """
        self.begin()
        for number in range(len(self.case.steps)):
            if self.problems:
                return
            self.play_step(number)

    def play_step(self, number: int) -> None:
        """Plays a step of the case; steps are numbered from 0.

        Raises:
            NotSupportedError: a call needs a missing claim, or was answered ``unsupported``.
            CaseError: the step can't be played as written.
            ImplementationFailure: there was no answer.
        """
        with playing(self.case.id, number + 1):
            self.step(self.expand(self.case.steps[number]))

    def begin(self) -> None:
        """Reports the case's devices, and starts the node if the first step doesn't.

        Raises:
            CaseError: the devices, the configuration or `let` is invalid.
            NotSupportedError: the case was generated for an implementation without usable claims.
        """
        if not self.case.steps:
            raise NotSupportedError("an operation that scenarios can use")
        with playing(self.case.id, 0):
            self.session.devices = self._devices_of(self.case.devices, self.case.failing)
            if starts_implicitly(self.case):
                self.step(Step(start=StartStep()))

    def step(self, step: Step) -> None:
        """Plays an expanded step.

        A step that accepts any answer is skipped if it is impossible, for example because the node
        is not running or the pod doesn't exist. Once the player is `off_script`, this applies to
        all steps.

        Raises:
            NotSupportedError: a call needs a missing claim, or was answered ``unsupported``.
            ImplementationFailure: there was no answer.
        """
        verb = step.verb
        try:
            if step.start is not None and step.start.kubernetes:
                self.session.change_release(step.start.kubernetes)
            step = step.on(self.session.kubernetes)
            if self._is_open(step.expect) and not self._makes_sense(step, verb):
                return
            if verb not in _WITHOUT_START and self.session.start_answer is None:
                raise LookupError(f"{verb}: the node is not running; add a `start` step before it")
            if isinstance(step.expect, Expected) and (step.expect.files or step.expect.checkpoints):
                self.session.require(CHECKPOINT_FILES)
            getattr(self, f"_{verb}")(getattr(step, verb), step.expect)
        except NotSupportedError:
            self.out_of_step = self.out_of_step or verb == "start"
            raise

    def expand(self, step: Step) -> Step:
        """The step with all expressions evaluated for the current state."""
        plain = msgspec.to_builtins(step)
        return msgspec.convert(expressions.expand(plain, self.names()), Step)

    def names(self) -> dict[str, Any]:
        """The names that the case's expressions may use, with their current values."""
        names = self.facts.names()
        if self.session.start_answer is not None:
            cpus = self.session.start_answer.cpus
            names |= {"allocatable": cpus.allocatable, "reserved": cpus.all - cpus.allocatable}
            names["shared"] = self.checker.now.state.shared if self.checker.now else cpus.all
        for name, value in self.case.let.items():
            names[name] = expressions.evaluate(value, names) if isinstance(value, str) else value
        return names

    def _is_open(self, expected: object) -> bool:
        """Whether the case makes no assumption about previous answers."""
        return expected == "anything" or (self.baselines is not None and self.baselines.off_script)

    def _makes_sense(self, step: Step, verb: str) -> bool:
        if verb in _WITHOUT_START:
            return True
        if self.session.start_answer is None:
            return False
        if isinstance(step.admit, str):
            return step.admit in self._pods
        if step.resize is not None:
            return manifests.uid(step.resize.pod) in self.session.pods
        if step.hints is not None:
            return self._has_container(step.hints)
        ending = step.end or step.remove
        return not isinstance(ending, RemoveStep | EndStep) or self._is_there(ending)

    def _is_there(self, removal: RemoveStep | EndStep) -> bool:
        """Whether the pod is on the node and has the container."""
        pod = self.session.pods.get(manifests.uid(removal.pod))
        return pod is not None and removal.container in (None, *manifests.containers(pod))

    # The verbs

    def _start(self, step: StartStep, expected: Expectation) -> None:
        for name in step.removed_pods:
            if self.session.pods.pop(manifests.uid(name), None) is not None:
                self.session.note(f"removed pod {name} from the node while the kubelet was down")
            elif not self._is_open(expected):
                raise LookupError(f"gone: the pod {name} is not on the node")
        if step.offline or step.memory:
            self._change_machine(step)
        written = merge_configs(self.case.config, step.config)
        config = manifests.texts_where_due(expressions.expand(written, self.names()))
        if step.devices is not None:
            self.session.devices = self._devices_of(step.devices)
        for pod in step.new_pods:
            self.session.pods[manifests.uid(pod.pod)] = self._pod(pod)
            self.session.note(f"bound pod {pod.pod} to the node while the kubelet was down")
        answer = self.session.start(config, step.flags, from_tree=step.tree, running=step.running)
        if self.session.start_answer is not None:
            # If only the kubelet restarts, the start itself admits the pods.
            if self.checks_invariants and self.session.pods and not step.running:
                self.note(self.session.calls[-1], self.checker.after_start(self._look))
            self._readmit(expected)
        self._judge(answer, expected)

    def _change_machine(self, step: StartStep) -> None:
        """Takes CPUs offline and changes memory while the kubelet is down."""
        machine = manifests.without_cpus(self.session.machine, CPUSet.parse(step.offline))
        self.session.machine = manifests.with_memory(machine, step.memory)
        self.session.from_tree = False  # the tree describes the original machine
        if step.offline:
            self.session.note(f"took {format_numbers('CPU', CPUSet.parse(step.offline))} offline")
        for change in step.memory:
            self.session.note(_changed_memory(change))
        self.facts = type(self.facts)(self.session.machine)

    def _readmit(self, expected: Expectation) -> None:
        for uid in list(self.session.pods):
            answer = self.session.admit(self.session.pods[uid])
            if isinstance(answer, messages.Unsupported):
                raise NotSupportedError(answer.what)
            if self.checks_invariants and isinstance(answer, messages.AdmissionRefused):
                unseen = self.session.view(self.facts, messages.State(CPUSet(), {}))
                self.note(self.session.calls[-1], self.checker.after_readmission(uid, unseen))
            wanted = expected
            if isinstance(expected, Expected):
                wanted = Expected(refused=expected.readmission.get(manifests.pod_name(uid)))
            self.session.calls[-1].problems += self._unmet(wanted, answer)

    def _admit(self, pod: PodSpec | str, expected: Expectation) -> None:
        self._judge(self.session.admit(self._pod(pod)), expected)

    def _resize(self, pod: PodSpec, expected: Expectation) -> None:
        resized = manifests.manifest(pod)
        answer = self.session.resize(resized)
        if isinstance(answer, messages.Admitted):
            self._pods[pod.pod] = resized
        self._judge(answer, expected)

    def _remove(self, step: RemoveStep | str, expected: Expectation) -> None:
        removal = RemoveStep(step) if isinstance(step, str) else step
        if removal.container is not None and not self._is_there(removal):
            where = f"of pod {removal.pod} on the node"
            raise LookupError(f"remove: there is no container {removal.container} {where}")
        answer = self.session.remove(manifests.uid(removal.pod), removal.container)
        self._judge(answer, expected)

    def _end(self, step: EndStep, expected: Expectation) -> None:
        if not self._is_there(step):
            where = f"of pod {step.pod} on the node"
            raise LookupError(f"end: there is no container {step.container} {where}")
        self._judge(self.session.end(manifests.uid(step.pod), step.container), expected)

    def _state(self, _: object, expected: Expectation) -> None:
        self._judge(self.session.call("state", messages.NoArgs()), expected)

    def _reconcile(self, _: object, expected: Expectation) -> None:
        self._judge(self.session.call("reconcile", messages.NoArgs()), expected)

    def _has_container(self, step: HintsStep) -> bool:
        """Whether the pod of a `hints` step is known and has the container."""
        if isinstance(step.pod, str) and step.pod not in self._pods:
            return False
        return step.container in (None, *manifests.containers(self._pod(step.pod)))

    def _hints(self, step: HintsStep, expected: Expectation) -> None:
        pod = self._pod(step.pod)
        if not self._has_container(step):
            raise LookupError(f"hints: the pod has no container {step.container}")
        args = messages.HintsArgs(pod, step.container)
        self._judge(self.session.call("hints", args), expected)

    def _assign(self, step: Any, expected: Expectation) -> None:
        args = messages.AssignArgs(
            machine=self.session.machine,
            available=CPUSet.parse(step.available),
            count=step.count,
            options=step.options,
            kubernetes=self.session.kubernetes,
        )
        self._judge(self.session.call("assign", args), expected)

    def _discover(self, _: object, expected: Expectation) -> None:
        if isinstance(expected, Expected) and expected.machine:
            self._require_any(seen_in(expected.machine))
        args = messages.DiscoverArgs(self.session.tree(), self.session.kubernetes)
        self._judge(self.session.call("discover", args), expected)

    def _require_any(self, fields: tuple[str, ...]) -> None:
        """Requires discovery of at least one of these fields."""
        seen = self.session.capabilities.discovers
        if seen is not None and seen.isdisjoint(fields):
            self.session.require(*map(discovery.claim, fields))

    def _tamper(self, step: Any, _: Expectation) -> None:
        self.checker.forget()
        text = step.text if step.checkpoint is None else checkpoints.text(step.checkpoint)
        self.session.tamper(step.file, step.how, text)

    def _devices(self, devices: Devices, expected: Expectation) -> None:
        self._judge(self.session.report_devices(self._devices_of(devices)), expected)

    def _devices_of(
        self, devices: Devices, failing: tuple[str, ...] = ()
    ) -> tuple[messages.DeviceResource, ...]:
        names = self.names()
        plain = expressions.expand(msgspec.to_builtins(devices), names)
        preferred = expressions.expand(self.case.preferred, names)
        ids = msgspec.convert(preferred, dict[str, tuple[str, ...]])
        return manifests.device_lists(plain, ids, failing)

    def _merge(self, step: Any, expected: Expectation) -> None:
        known = POLICY_FIELDS["topologyManagerPolicy"].policies
        if step.policy not in known:
            raise ValueError(f"merge: policy must be one of {', '.join(known)}")
        plain = {**msgspec.to_builtins(step), "kubernetes": self.session.kubernetes}
        self._judge(self.session.call("merge", codec.from_plain(plain, MergeArgs)), expected)

    def _pod(self, pod: PodSpec | str) -> messages.Pod:
        """The pod described in the step, or the pod with that name from an earlier step."""
        if isinstance(pod, str):
            if pod not in self._pods:
                raise LookupError(f"no earlier step describes the pod {pod}")
            return self._pods[pod]
        self._pods[pod.pod] = manifests.manifest(pod)
        return self._pods[pod.pod]

    # Judging

    def _judge(self, answer: messages.Answer, expected: Expectation) -> None:
        if isinstance(answer, messages.Unsupported):
            raise NotSupportedError(answer.what)
        call = self.session.calls[-1]
        if isinstance(answer, messages.Fault) and not answer.trace and self._is_reference:
            # The reference didn't break; the request is invalid.
            raise ValueError(answer.message.partition(": ")[2])
        if self.checks_invariants and not isinstance(answer, messages.Fault):
            self.note(call, self.checker.after(call.args, answer, self._look))
        call.problems += self._unmet(expected, answer)

    def note(self, call: Call, violations: Iterable[Violation]) -> None:
        """Records the broken invariants that aren't shared with kubelets as problems of a call."""
        number = len(self.session.calls)
        broken = [
            BrokenInvariant(one, self.facts, number) for one in violations if not self._shared(one)
        ]
        self.broken_invariants += broken
        call.problems += [one.violation.finding for one in broken]

    def _look(self) -> View | None:
        """Requests the state for the invariants; None if the node can't report it.

        Raises:
            ImplementationFailure: there was no answer.
        """
        session = self.session
        if session.start_answer is None or not session.capabilities.has("state"):
            return None
        state = session.call("state", messages.NoArgs())
        return session.view(self.facts, state) if isinstance(state, messages.State) else None

    @property
    def _is_reference(self) -> bool:
        played = self.session.implementation
        return isinstance(played, InProcess) and played.is_reference

    def _shared(self, violation: Violation) -> bool:
        """Whether a broken invariant results from a defect shared with kubelets."""
        if self.baselines is None:
            return False
        known = known_defects.known_defects(self.session.kubernetes)
        defect = known_defects.explain(violation, self.facts, known, self.baselines.shared)
        return self.baselines.has_defect(defect)

    def _unmet(self, expected: Expectation, answer: messages.Answer) -> list[Finding]:
        """The unmet expectations; empty if the answer is right under another baseline."""
        view = self.checker.now
        problems = expectations.check(expected, answer, self._context(view.state if view else None))
        calls = self.session.calls
        if not problems or self.baselines is None or any(call.problems for call in calls):
            return problems

        def meets(other: messages.Answer, state: messages.State | None) -> bool:
            return not expectations.check(expected, other, self._context(state))

        call = next(one for one in reversed(calls) if one.answer is answer)
        return [] if self.baselines.allows(call.args, meets) else problems

    def _context(self, state: messages.State | None) -> expectations.Context:
        containers = {
            f"{manifests.pod_name(uid)}/{name}": container
            for uid, held in (state.pods.items() if state else ())
            for name, container in held.items()
        }
        return expectations.Context(
            facts=self.facts,
            shared=state.shared if state else None,
            containers=containers,
            state_dir=str(self.session.state_dir.path),
            devices=self.session.devices,
            level=self.level,
            discovers=self.session.capabilities.discovers,
        )


def _changed_memory(change: MemoryChange) -> str:
    of = f"huge pages of {change.hugepages} KiB" if change.hugepages else "memory"
    return f"changed the {of} of NUMA node {change.node} to {change.bytes} bytes"
