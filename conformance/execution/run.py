"""One run of a case against an implementation, from an empty state directory.

Every command shares it: each opens a `Run`, plays steps, and asks for the result. Where answers are
compared with something else than the reference, a subclass has another oracle.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.loading import applies, bundled_by_id
from numaproof.conformance.cases.machine_properties import facts_of
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
    from numaproof.conformance.judging.finding import Finding
    from numaproof.conformance.judging.invariants.view import View, Violation
    from numaproof.protocol.machine import MachineInfo


@dataclass(frozen=True)
class Scenario:
    """A case on one machine.

    Attributes:
        case: the steps.
        machine: what the implementation is told of the machine.
        tree: the machine's tree; None where no step needs one, or one can be made of `machine`.
    """

    case: Case
    machine: MachineInfo
    tree: MachineTree | None = None


@dataclass(frozen=True)
class Target:
    """What is under test, and as what.

    Attributes:
        implementation: how to reach it.
        hello: its answer to the handshake.
        kubernetes: the release that it behaves as.
        level: how much of its answers is compared.
        command: its command line; empty for the reference.
        oracle: makes a fresh reference to compare with; None if it is compared with none.
        is_compared: whether its answers are compared with the reference's at all.
        baseline: what is right where kubelets contradict their documents.
    """

    implementation: Implementation
    hello: messages.Hello
    kubernetes: str
    level: messages.Level
    command: tuple[str, ...] = ()
    oracle: Callable[[Baseline], SteerableReference] | None = None
    is_compared: bool = True
    baseline: events.BaselineChoice = "kubelet"

    @cached_property
    def program(self) -> ProcessBacked | None:
        """The implementation if it is a program; to ask that takes as long as many an answer."""
        return self.implementation if isinstance(self.implementation, ProcessBacked) else None

    @cached_property
    def capabilities(self) -> Capabilities:
        """What may be asked of it."""
        return Capabilities(self.hello, self.kubernetes)

    def options(self) -> tuple[str, ...]:
        """The command-line options that select this target again."""
        return (
            *("--kubernetes", self.kubernetes),
            *(("--level", self.level) if self.level != self.hello.level else ()),
            *(
                ("--baseline", self.baseline)
                if self.baseline != default_baseline(self.hello)
                else ()
            ),
            *(("--implementation", shlex.join(self.command)) if self.command else ()),
        )


def default_baseline(hello: messages.Hello) -> events.BaselineChoice:
    """How to judge an implementation by its claims: one of level ``kubelet`` as a kubelet."""
    return "kubelet" if hello.level == "kubelet" else "either"


def reference(baseline: Baseline) -> InProcess:
    """The reference, in this process, following a baseline."""
    exceptions = baseline.exceptions
    return InProcess(
        partial(Reference, follows_docs=baseline.follows_documents, exceptions=exceptions)
    )


def reference_target(kubernetes: str, baseline: Baseline) -> Target:
    """The reference, in this process, as a kubelet of a release, judged as what it is."""
    implementation = reference(baseline)
    hello = handshake(implementation, "numaproof")
    choice: events.BaselineChoice = "documented" if baseline.follows_documents else "kubelet"
    return Target(implementation, hello, kubernetes, hello.level, baseline=choice)


@dataclass(frozen=True)
class RunResult(signatures.EndResult):
    """How a run ended."""

    @classmethod
    def of_failure(cls, failure: ImplementationFailure) -> RunResult:
        """A program's failure as the end of a run."""
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
        """The message without the two sides of what it shows."""
        return cut(self.finding.headline) if self.finding else self.message

    def showing(self, finding: Finding) -> RunResult:
        """The same, with a finding as what it shows."""
        return replace(self, message=cut(str(finding)), finding=finding)

    @property
    def good(self) -> bool:
        """Whether it leaves the whole run successful."""
        return self.outcome in events.GOOD


@cache
def _claims_of_reference() -> frozenset[str]:
    return reference_target(RELEASES[-1], KUBELET).capabilities.claims


_ENDED = frozenset({"crash", "time-out", "protocol error"})
"""Outcomes after which the program is gone: the next call starts it again."""


class Run:
    """A case opened on a machine.

    Args:
        target: what is tested.
        case: the case; its steps are played by `play`, or others one by one through `player`.
        machine: what the implementation is told of the machine.
        tree: the machine's tree, for steps that discover it; None if there is none. A case that
            starts from a tree has one made of the machine.
        scratch: an empty or missing directory for state directories.

    Attributes:
        player_type: what plays the steps.
        broke: how the program broke, so that there is no answer; None while it did not.
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
        )
        checker = InvariantChecker(target.level)
        self.player = self.player_type(case, session, facts, target.level, checker, self._baselines)

    def _oracle(self) -> AnswerJudge | None:
        """What is asked about each answer."""
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
        return Oracle(
            target.oracle(KUBELET), _create_folder(scratch / "reference"), target.level, seen
        )

    def _root(self, tree: MachineTree | None) -> Callable[[], str | Path] | None:
        """Finds the tree in the form that the target can read."""
        if tree is None:
            return None
        return tree.directory if self.target.program else tree.in_process_path

    def play(self) -> RunResult:
        """Plays the steps of the case.

        One that expects nothing of any answer, such as a generated one, goes on past failures that
        a known defect explains and past pods that are not supported: it is `unsupported` where
        there was such a pod and nothing is wrong.

        A bundled case whose needs are not all claimed is `unsupported` at once: nothing is called.

        Raises:
            CaseError: the case cannot be played as written.
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
        """What the calls of a bundled case need, unless all of it is claimed."""
        if self.target.capabilities.makes(*_claims_of_reference()):
            return ()
        if self.case.id not in bundled_by_id():
            return ()
        machine, scratch = self.player.session.machine, self._scratch / "rehearsal"
        return claims_needed(self.case, machine, self._tree, self.target.kubernetes, scratch)

    def final_result(self, result: RunResult) -> RunResult:
        """The verdict once it is known whether the program outlived its last answer.

        What it left in its state directory is looked at then, too. Where the answers are wrong,
        what it logged in this run is part of the verdict.
        """
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

    def baseline_divergence(self, result: RunResult) -> events.BaselineDivergence | None:
        """Whose behaviour the implementation has where a kubelet contradicts its documents.

        None where only one is right, and where both would have answered alike. A run that ended
        badly did not follow the documents: only what it shares with the kubelet is reported.
        """
        found = self._baselines.baseline_divergence() if self._baselines else None
        return found if result.good or (found and found.baseline == "kubelet") else None

    def judge(self, action: Callable[[], None]) -> RunResult:
        """The verdict after an action of the player: all of its steps, or one more.

        A broken invariant says more of the cause than a difference from the reference. A defect
        explains broken invariants, but no difference from the reference, which has it too, and no
        expectation that is not met, unless the case names it.
        """
        return self._verdict(self._result_of(action))

    def _verdict(self, result: RunResult) -> RunResult:
        if not result.good:
            require_room(self._scratch)
        player = self.player
        outcome, defect = known_defects.judge(
            result.outcome, self.case, player.broken_invariants, self._known_defects
        )
        wrong = [one for one in player.problems if one.source != "invariant"]
        if outcome == "expected failure" and wrong and not self.case.defect:
            return result.showing(wrong[0])
        if outcome == "fail" and (broken := self._unexplained_violations()):
            result = result.showing(broken[0].finding)
        return replace(result, outcome=outcome, defect=defect)

    def violated_requirements(self, result: RunResult) -> tuple[str, ...]:
        """The requirements that a failed run is known to violate, whatever its case is about.

        They follow from broken invariants, and from a wrong machine where the case is about
        nothing that is wrong with it. Empty unless the run failed.
        """
        if result.outcome != "fail":
            return ()
        violated = [one.requirement for one in self._unexplained_violations()]
        if set(self.case.requirements) <= {*self.unaffected(result), *self.undiscovered()}:
            violated += machine_comparison.broken_everywhere(self._wrong(result))
        return tuple(dict.fromkeys(violated))

    def undiscovered(self) -> tuple[str, ...]:
        """The requirements of the case that are about what is not discovered."""
        seen = self.target.capabilities.discovers
        return machine_comparison.unseen_requirements(self.case.requirements, seen)

    def unaffected(self, result: RunResult) -> tuple[str, ...]:
        """The requirements of the case that a machine discovered wrongly meets all the same."""
        seen = self.target.capabilities.discovers
        return machine_comparison.kept_requirements(
            self.case.requirements, self._wrong(result), seen
        )

    def _wrong(self, result: RunResult) -> frozenset[str]:
        """What is wrong of the machine that the last call discovered."""
        session = self.player.session
        if result.outcome != "fail" or not session.calls:
            return frozenset()
        right, seen = session.oracle and session.oracle.answer, self.target.capabilities.discovers
        return machine_comparison.differing(session.calls[-1].answer, right, seen)

    def _unexplained_violations(self) -> list[Violation]:
        """The broken invariants that no known defect explains."""
        return [
            violation
            for violation, facts in self.player.broken_invariants
            if known_defects.explain(violation, facts, self._known_defects) is None
        ]

    def _result_of(self, action: Callable[[], None]) -> RunResult:
        """How an action ended by itself."""
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
        """The cause of the failure that `result` of this run is; empty if it is none."""
        calls = self.player.session.calls
        shown = (call.operation for call in calls if result.finding in call.problems)
        operation = next(shown, calls[-1].operation if calls else "")
        invariants = [one.invariant for one in self._unexplained_violations()]
        return signatures.signature(result, operation, invariants)

    def steps(self) -> tuple[events.ReportedCall, ...]:
        """Every call that was made, as reports show it."""
        session = self.player.session
        return tuple(session.reported_call(call) for call in session.calls)

    def pictures(self) -> tuple[events.Picture, ...]:
        """The machine around the last call."""
        return pictures(self.player.checker)


def tree_for(
    case: Case, machine: MachineInfo, tree: MachineTree | None, scratch: Path
) -> MachineTree | None:
    """The tree of a case's machine: the one there is, or one that is made of the machine."""
    if tree is None and case.tree:
        return GeneratedTree(partial(tree_of, machine), scratch / "machine")
    return tree


def _create_folder(path: Path) -> Path:
    make_folder(path)
    return path


def _shadow_oracle(target: Target, scratch: Path) -> Oracle | None:
    """Compares where nothing is compared yet, to see what more could be claimed."""
    if target.oracle is None or target.level != messages.LEVELS[0]:
        return None
    seen = target.capabilities.discovers
    return Oracle(
        target.oracle(DOCUMENTED), _create_folder(scratch / "silent"), messages.LEVELS[-1], seen
    )


def claims_needed(
    case: Case, machine: MachineInfo, tree: MachineTree | None, kubernetes: str, scratch: Path
) -> tuple[str, ...]:
    """The claims that the calls of a case need, which playing it on the reference shows.

    Arguments are as for `Run`.
    """
    run = Run(reference_target(kubernetes, KUBELET), case, machine, tree, scratch)
    run.play()
    return run.player.session.needed_claims


def pictures(checker: InvariantChecker) -> tuple[events.Picture, ...]:
    """Up to two pictures, before and after the last call whose states are known."""
    views = (("before", checker.before), ("after", checker.now))
    return tuple(picture(title, view) for title, view in views if view is not None)


def picture(title: str, view: View) -> events.Picture:
    """Which container owns which CPUs in a view."""
    owners = [
        events.Owner(f"{manifests.pod_name(uid)}/{name}", str(cpus))
        for (uid, name), cpus in sorted(view.exclusive().items())
    ]
    reserved = view.reserved()
    if reserved:
        owners.append(events.Owner("reserved", str(reserved)))
    return events.Picture(title, tuple(owners), str(view.state.shared))
