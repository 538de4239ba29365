"""A single run of a case against an implementation, with an empty state directory.

All commands use it: they open a `Run`, play steps and get the result. Subclasses compare answers
with other oracles.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.loading import applies, bundled_by_id
from numaproof.conformance.cases.machine_properties import facts_of
from numaproof.conformance.execution import kubelet_command, related_runs
from numaproof.conformance.execution.capabilities import Capabilities, NotSupportedError
from numaproof.conformance.execution.implementation import (
    Implementation,
    ImplementationFailure,
    InProcess,
    ProcessBacked,
    handshake,
)
from numaproof.conformance.execution.player import Player
from numaproof.conformance.execution.session import Session
from numaproof.conformance.execution.truncation import cut, truncate
from numaproof.conformance.judging import known_defects, machine_comparison, signatures
from numaproof.conformance.judging.baselines import DOCUMENTED, KUBELET, Baseline, Baselines
from numaproof.conformance.judging.entitlement import is_static
from numaproof.conformance.judging.invariants import InvariantChecker
from numaproof.conformance.judging.oracle import AnswerJudge, Oracle, SteerableReference
from numaproof.conformance.trees import GeneratedTree, MachineTree, tree_of
from numaproof.protocol import events, messages
from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference
from numaproof.workdir.scratch import make_folder, require_room
from numaproof.workdir.state_directory import StateDirectory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.judging.finding import Finding, Source
    from numaproof.conformance.judging.invariants.view import View, Violation
    from numaproof.protocol.machine import MachineInfo


@dataclass(frozen=True)
class Scenario:
    """A case on a machine.

    Attributes:
        case: the steps.
        machine: the machine as described to the implementation.
        tree: the machine's tree; None if no step needs it, or if it can be generated from
            `machine`.
    """

    case: Case
    machine: MachineInfo
    tree: MachineTree | None = None


@dataclass(frozen=True)
class Target:
    """An implementation under test, and how to judge it.

    Attributes:
        implementation: the connection to it.
        hello: its answer to the handshake.
        kubernetes: the release that it behaves as.
        level: how closely its answers are compared.
        command: its command line; empty for the reference.
        oracle: creates a reference to compare with; None for no comparison.
        is_compared: whether its answers are compared with the reference.
        compared_with: whether `oracle` creates the reference or connects to another implementation.
        baseline: the accepted behaviour where the kubelet contradicts its documentation.
    """

    implementation: Implementation
    hello: messages.Hello
    kubernetes: str
    level: messages.Level
    command: tuple[str, ...] = ()
    oracle: Callable[[Baseline], SteerableReference] | None = None
    is_compared: bool = True
    compared_with: Source = "reference"
    baseline: events.BaselineChoice = "kubelet"

    @cached_property
    def program(self) -> ProcessBacked | None:
        """The implementation if it is a program, cached because the check is slow."""
        return self.implementation if isinstance(self.implementation, ProcessBacked) else None

    @cached_property
    def capabilities(self) -> Capabilities:
        """What it claims."""
        return Capabilities(self.hello, self.kubernetes)

    def options(self) -> tuple[str, ...]:
        """The command-line options that select this target."""
        return (
            *("--kubernetes", self.kubernetes),
            *(("--level", self.level) if self.level != self.hello.level else ()),
            *(
                ("--baseline", self.baseline)
                if self.baseline != default_baseline(self.hello)
                else ()
            ),
            *self._program(),
        )

    def _program(self) -> tuple[str, ...]:
        if not self.command:
            return ()
        kubelet = kubelet_command.options(self.command)
        return kubelet or ("--implementation", shlex.join(self.command))


def default_baseline(hello: messages.Hello) -> events.BaselineChoice:
    """Returns ``kubelet`` for implementations that claim level ``kubelet``, else ``either``."""
    return "kubelet" if hello.level == "kubelet" else "either"


def reference(baseline: Baseline) -> InProcess:
    """Creates the reference in this process, with a baseline."""
    exceptions = baseline.exceptions
    return InProcess(
        partial(Reference, follows_docs=baseline.follows_documents, exceptions=exceptions)
    )


def reference_target(kubernetes: str, baseline: Baseline) -> Target:
    """Creates a target in which the reference acts as a release of the kubelet."""
    implementation = reference(baseline)
    hello = handshake(implementation, "numaproof")
    choice: events.BaselineChoice = "documented" if baseline.follows_documents else "kubelet"
    return Target(implementation, hello, kubernetes, hello.level, baseline=choice)


@dataclass(frozen=True)
class RunResult(signatures.EndResult):
    """How a run ended."""

    @classmethod
    def of_failure(cls, failure: ImplementationFailure) -> RunResult:
        """Converts a program's failure to a result."""
        return cls(
            failure.outcome,
            str(failure),
            failure.stderr,
            finding=failure.finding,
            words=failure.words,
            ending=failure.ending,
        )

    @property
    def headline(self) -> str:
        """The message, excluding the expected and actual values."""
        return cut(self.finding.headline) if self.finding else self.message

    def showing(self, finding: Finding) -> RunResult:
        """The result with a different finding and its message."""
        return replace(self, message=cut(str(finding)), finding=finding)

    @property
    def good(self) -> bool:
        """Whether the run counts as successful."""
        return self.outcome in events.GOOD


def _claims_of_reference() -> frozenset[str]:
    return _newest_kubelet().capabilities.claims


_ENDED = frozenset({"crash", "time-out", "protocol error"})
"""Outcomes after which the program has ended; the next call restarts it."""


class Run:
    """A case opened on a machine.

    Args:
        target: the implementation under test.
        case: the case. `play` plays its steps; `player` can play others one by one.
        machine: the machine as described to the implementation.
        tree: the machine's tree, for steps that discover it; None if there is none. In that case,
            if the case starts from a tree, one is generated from the machine.
        scratch: an empty or missing directory for state directories.

    Attributes:
        player_type: the class of the player.
        broke: the program's failure, if it failed to answer.
    """

    player_type: ClassVar[type[Player]] = Player

    def __init__(
        self,
        target: Target,
        case: Case,
        machine: MachineInfo,
        tree: MachineTree | None,
        scratch: Path,
    ) -> None:
        self.target = target
        self.case = case
        self.broke: RunResult | None = None
        self._scratch = scratch
        self._tree = tree
        is_kubelet = target.baseline == "kubelet"
        self._known_defects = (
            known_defects.known_defects(target.kubernetes) if is_kubelet else frozenset()
        )
        judge = self._oracle()
        self._baselines = judge if isinstance(judge, Baselines) else None
        if target.program:
            target.program.begin()
        facts = facts_of(machine)
        session = Session(
            implementation=target.implementation,
            capabilities=target.capabilities,
            state_dir=StateDirectory.create(scratch / "state"),
            kubernetes=target.kubernetes,
            machine=machine,
            level=target.level,
            root=self._root(tree_for(case, machine, tree, scratch)),
            oracle=judge,
            shadow_oracle=_shadow_oracle(target, scratch),
            from_tree=case.tree,
            tell=case.tell,
            check_node=case.check_node,
        )
        checker = InvariantChecker(target.level)
        self.player = self.player_type(case, session, facts, target.level, checker, self._baselines)

    def _oracle(self) -> AnswerJudge | None:
        """Creates the judge of answers."""
        target, scratch = self.target, self._scratch
        if target.oracle is None:
            return None
        level = target.level if target.is_compared else "invariants"
        seen = target.capabilities.discovers
        if target.baseline != "kubelet":
            made, either = scratch / "references", target.baseline == "either"
            return Baselines(target.oracle, made, level, kubelet=either, discovers=seen)
        if not applies("admission", level):
            return None
        folder = _create_folder(scratch / "reference")
        return Oracle(
            target.oracle(KUBELET), folder, target.level, seen, source=target.compared_with
        )

    def _root(self, tree: MachineTree | None) -> Callable[[], str | Path] | None:
        """The path of the tree in a form that the target can read."""
        if tree is None:
            return None
        return tree.directory if self.target.program else tree.in_process_path

    def play(self) -> RunResult:
        """Plays the steps of the case.

        Cases without expectations, such as generated ones, continue after failures that a known
        defect explains and after unsupported pods. They are `unsupported` if a pod was unsupported
        and nothing else is wrong. If a needed claim is missing, bundled cases are `unsupported` and
        no call is made.

        Raises:
            CaseError: the case can't be played as written.
        """
        return self.final_result(self._play_steps())

    def _play_steps(self) -> RunResult:
        if any(step.expect != "anything" and not step.tamper for step in self.case.steps):
            needs = self._needs()
            if not self.target.capabilities.makes(*needs):
                return self.judge(partial(self.player.session.require, *needs))
            return self.judge(self.player.play)
        result = self.judge(self.player.begin)
        for number in range(len(self.case.steps)):
            if not result.good or self.player.out_of_step:
                break
            ended = self.judge(partial(self.player.play_step, number))
            if ended.outcome != "pass" or result.outcome != "unsupported":
                result = ended
        return result

    def _needs(self) -> tuple[str, ...]:
        """The claims that a bundled case needs; empty if the implementation claims everything."""
        if self.target.capabilities.makes(*_claims_of_reference()):
            return ()
        if self.case.id not in bundled_by_id():
            return ()
        target, scratch = self.target, self._scratch / "rehearsal"
        scenario = Scenario(self.case, self.player.session.machine, self._tree)
        return claims_needed(scenario, target.kubernetes, scratch, target.capabilities)

    def final_result(self, result: RunResult) -> RunResult:
        """The verdict after checking that the program is still running after its last answer.

        Also checks the state directory. If an answer is wrong, the verdict includes the program's
        log.
        """
        if result.outcome == "pass":
            result = self.judge(self._compare_with_related_node)
        program = self.target.program
        if program is None or result.outcome in _ENDED:
            return result
        try:
            program.check_alive()
            self.player.session.check_state()
        except ImplementationFailure as failure:
            self.broke = RunResult.of_failure(failure)
            if result.good:
                return self._verdict(self.broke)
            log = failure.stderr
        else:
            log = "" if result.good else program.log()
        return replace(result, stderr=result.stderr or log)

    def _compare_with_related_node(self) -> None:
        """Compares the first pods with those of a related node, if it is this run's turn."""
        if self.target.oracle is None or not self.player.checks_invariants:
            return
        share = related_runs.SHARE if self.case.machine is None else 1
        state_dir = self._scratch / "related"
        session = self.player.session
        broken = related_runs.broken_relation(session, state_dir, share)
        if broken is not None:
            self.player.note(session.calls[-1], [broken])

    def baseline_divergence(self, result: RunResult) -> events.BaselineDivergence | None:
        """Whether the implementation follows the kubelet or its documentation where they differ.

        None if only one is accepted or if they agree. A failed run didn't follow the documentation,
        so only defects that it shares with the kubelet are reported.
        """
        found = self._baselines.baseline_divergence() if self._baselines else None
        return found if result.good or (found and found.baseline == "kubelet") else None

    def judge(self, action: Callable[[], None]) -> RunResult:
        """The verdict after an action of the player, such as playing one or all steps.

        Broken invariants take precedence over differences from the reference, because they say more
        about the cause. A defect can explain broken invariants, but not differences from the
        reference, which has the same defect. Unmet expectations are explained only by the defect
        that the case names.
        """
        return self._verdict(self._result_of(action))

    def _verdict(self, result: RunResult) -> RunResult:
        if not result.good:
            require_room(self._scratch)
        player = self.player
        wrong = [one for one in player.problems if one.source != "invariant"]
        different = [one for one in wrong if one.source == self.target.compared_with]
        outcome, defect = known_defects.judge(
            result.outcome,
            self.case,
            player.broken_invariants,
            self._known_defects,
            differs=bool(different),
        )
        if outcome == "expected failure" and wrong and not self.case.defect:
            return result.showing(wrong[0])
        if outcome == "fail":
            broken = [one.finding for one in self._unexplained_violations()]
            result = next(map(result.showing, (*broken, *different)), result)
        return replace(result, outcome=outcome, defect=defect)

    def violated_requirements(self, result: RunResult) -> tuple[str, ...]:
        """The requirements that a failed run violates, in addition to its case's.

        They follow from broken invariants, and from a wrongly discovered machine if none of the
        case's requirements covers the error. Empty unless the run failed.
        """
        if result.outcome != "fail":
            return ()
        violated = [one.requirement for one in self._unexplained_violations()]
        if set(self.case.requirements) <= {*self.unaffected(result), *self.undiscovered()}:
            violated += machine_comparison.broken_everywhere(self._wrong(result))
        return tuple(dict.fromkeys(violated))

    def undiscovered(self) -> tuple[str, ...]:
        """The case's requirements about fields that the implementation doesn't discover."""
        seen = self.target.capabilities.discovers
        return machine_comparison.unseen_requirements(self.case.requirements, seen)

    def unaffected(self, result: RunResult) -> tuple[str, ...]:
        """The case's requirements that the wrongly discovered machine still meets."""
        seen = self.target.capabilities.discovers
        return machine_comparison.kept_requirements(
            self.case.requirements, self._wrong(result), seen
        )

    def _wrong(self, result: RunResult) -> frozenset[str]:
        """How the last discovered machine differs from the real one."""
        session = self.player.session
        if result.outcome != "fail" or not session.calls:
            return frozenset()
        right, seen = session.oracle and session.oracle.answer, self.target.capabilities.discovers
        return machine_comparison.differing(session.calls[-1].answer, right, seen)

    def _unexplained_violations(self) -> list[Violation]:
        """The broken invariants that no known defect explains."""
        return [
            violation
            for violation, facts, _ in self.player.broken_invariants
            if known_defects.explain(violation, facts, self._known_defects) is None
        ]

    def _result_of(self, action: Callable[[], None]) -> RunResult:
        """The result of an action before accounting for known defects."""
        try:
            action()
        except NotSupportedError as missing:
            return RunResult("unsupported", f"the implementation does not have {missing}")
        except ImplementationFailure as failure:
            self.broke = RunResult.of_failure(failure)
            return self.broke
        answers = (call.answer for call in self.player.session.calls)
        fault = next((one for one in answers if isinstance(one, messages.Fault)), None)
        if fault:
            words = cut(fault.message)
            return RunResult("fault", words, truncate(fault.trace), words=words)
        problems = self.player.problems
        return RunResult("fail").showing(problems[0]) if problems else RunResult("pass")

    def signature(self, result: RunResult) -> str:
        """The signature of the failure; empty if `result` is not a failure."""
        calls = self.player.session.calls
        shown = (call.operation for call in calls if result.finding in call.problems)
        operation = next(shown, calls[-1].operation if calls else "")
        invariants = [one.invariant for one in self._unexplained_violations()]
        return signatures.signature(result, operation, invariants)

    def steps(self) -> tuple[events.ReportedCall, ...]:
        """All calls of the run, for reports."""
        session = self.player.session
        return tuple(session.reported_call(call) for call in session.calls)

    def pictures(self) -> tuple[events.Picture, ...]:
        """Pictures of the machine before and after the last call."""
        return pictures(self.player.checker)


def tree_for(
    case: Case, machine: MachineInfo, tree: MachineTree | None, scratch: Path
) -> MachineTree | None:
    """The tree for a case; generated from the machine if the case needs one."""
    if tree is None and case.tree:
        return GeneratedTree(partial(tree_of, machine), scratch / "machine")
    return tree


def _create_folder(path: Path) -> Path:
    make_folder(path)
    return path


def _shadow_oracle(target: Target, scratch: Path) -> Oracle | None:
    """Creates an oracle that shows which level could be claimed.

    None from level ``placement`` on, where the ordinary oracle makes no choices of its target's.
    """
    if target.oracle is None or applies("placement", target.level):
        return None
    seen = target.capabilities.discovers
    return Oracle(
        target.oracle(DOCUMENTED), _create_folder(scratch / "silent"), messages.LEVELS[-1], seen
    )


def claims_needed(
    scenario: Scenario, kubernetes: str, scratch: Path, capabilities: Capabilities | None = None
) -> tuple[str, ...]:
    """The claims that a case needs, determined by playing it on the reference.

    With the `capabilities` of another implementation, ends with the first call that needs a claim
    that it doesn't make. For the other arguments, see `Run`.
    """
    target = _rehearsal_target(kubernetes)
    run = Run(target, scenario.case, scenario.machine, scenario.tree, scratch)
    session = run.player.session
    if capabilities is not None:
        session.capabilities = session.capabilities.up_to(capabilities)
    run.play()
    return session.needed_claims


def _rehearsal_target(kubernetes: str) -> Target:
    """The reference as a kubelet; its `hello` is checked only once."""
    return replace(_newest_kubelet(), implementation=reference(KUBELET), kubernetes=kubernetes)


@cache
def _newest_kubelet() -> Target:
    return reference_target(RELEASES[-1], KUBELET)


def pictures(checker: InvariantChecker) -> tuple[events.Picture, ...]:
    """Pictures of the states before and after the last call, if known."""
    views = (("before", checker.before), ("after", checker.now))
    return tuple(picture(title, view) for title, view in views if view is not None)


def picture(title: str, view: View) -> events.Picture:
    """Shows which containers own which CPUs."""
    owners = [
        events.Owner(f"{manifests.pod_name(uid)}/{name}", str(cpus))
        for (uid, name), cpus in sorted(view.exclusive().items())
    ]
    # Without the static policy, no CPUs are allocatable, but containers run on all of them.
    if is_static(view.config) and (reserved := view.reserved()):
        owners.append(events.Owner("reserved", str(reserved)))
    return events.Picture(title, tuple(owners), str(view.state.shared))
