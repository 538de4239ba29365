"""For named defects, implementations may follow either the documentation or the kubelet.

Each row of `baselines.yaml` is a case played by several implementations. Each of them follows the
documentation, the kubelet, or the newest documentation on an earlier release, except for the
defects and changes after `but`. Runs state their baseline and level. `says` has the outcome, and
the baseline that was adopted with the defects that show it.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.differences import parts
from builders.machines import discover_profile, regular
from builders.tables import Table
from builders.targets import changed_reference, target_of
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.judging.baselines import (
    DOCUMENTED,
    KUBELET,
    UNCHANGED,
    Baseline,
    Baselines,
)
from numaproof.conformance.trees import tree_of
from numaproof.protocol import messages
from numaproof.protocol.events import BaselineDivergence
from numaproof.protocol.sets import CPUSet
from numaproof.reference.choices import Choices, Decisions
from numaproof.reference.deviations.defects import CHANGES, OVERRIDES
from numaproof.reference.deviations.deviation import (
    UndocumentedBehaviour,
    defect_of,
    deviation_of,
    name_of,
)
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.execution.run import Run, RunResult, Target
    from numaproof.protocol.machine import MachineInfo

    Play = Callable[..., tuple[RunResult, Run]]

BASELINES = Table(__file__, "baselines.yaml")
FOLLOWED = {"documented": DOCUMENTED, "kubelet": KUBELET, "newest documents": UNCHANGED}
REUSES = BASELINES.row("the CPUs of an init container")["case"]
UNEVEN = BASELINES.row("a core that has lost a CPU")["case"]


@BASELINES
def test_either_baseline_is_accepted_for_named_defects(
    row: dict[str, Any], play: Play, info: MachineInfo
) -> None:
    machine = regular(nodes=2) if "kubernetes" in row else info
    said = {}
    for run in row["runs"]:
        followed, baseline, level = re.split(" as | at ", run)
        target = target_of(
            InProcess(partial(reference_for, parse_baseline(followed))),
            kubernetes=row.get("kubernetes", "1.35"),
            level=level,
            oracle=True,
            baseline=baseline,
        )
        said[run] = outcome_line(*play(target, row["case"], machine))
    BASELINES.check(row, said)


def parse_baseline(text: str) -> Baseline:
    """Returns the baseline of a run."""
    followed, _, names = text.partition(" but ")
    exceptions = UNCHANGED.exceptions if names == "every change" else {*names.split()}
    base = FOLLOWED[followed]
    return Baseline(base.follows_documents, base.exceptions | exceptions)


def reference_for(baseline: Baseline) -> Reference:
    return Reference(follows_docs=baseline.follows_documents, exceptions=baseline.exceptions)


def outcome_line(result: RunResult, run: Run) -> str:
    """Returns the outcome of a run and the adopted baseline."""
    found = run.baseline_divergence(result)
    way = f", {found.baseline} by {', '.join(found.defects)}" if found else ""
    return f"{result.outcome}{way}{': ' * bool(result.message)}{result.message}"


def baseline_target(implementation: InProcess, **about: Any) -> Target:
    return target_of(implementation, **{"oracle": True, "baseline": "either", **about})


def test_an_answer_unlike_any_baseline_fails(play: Play) -> None:
    def more(answer: messages.Admitted) -> messages.Admitted:
        containers = {
            name: msgspec.structs.replace(one, cpus=one.cpus | CPUSet([0]))
            for name, one in answer.containers.items()
        }
        return messages.Admitted(containers)

    result, _ = play(baseline_target(changed_reference(admit=more), level="placement"), REUSES)
    assert result.outcome == "fail"
    assert result.message.startswith("differs from the reference: containers.app.cpus")


def test_later_answers_are_compared_with_the_chosen_baseline(play: Play) -> None:
    class Forgetful(Reference):
        """A kubelet that follows the documentation for the second pod."""

        def __init__(self) -> None:
            super().__init__()
            self._other = Reference(follows_docs=True)

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            documented = self._other.call(operation, args)
            second = isinstance(args, messages.AdmitArgs) and "b" in args.pod["metadata"]["uid"]
            return documented if second else super().call(operation, args)

    text = REUSES + "- admit: {pod: b, containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}\n"
    result, run = play(baseline_target(InProcess(Forgetful), level="placement"), text)
    assert result.outcome == "fail"
    assert run.baseline_divergence(result) == BaselineDivergence(
        "kubelet", ("init-cpus-not-reused",)
    )


def test_violating_an_expectation_of_both_baselines_fails(play: Play) -> None:
    refused = changed_reference(admit=lambda _: messages.AdmissionRefused("SomeError", "no"))
    result, run = play(baseline_target(refused, level="invariants"), REUSES)
    assert (result.outcome, run.baseline_divergence(result)) == ("fail", None)


def test_broken_invariants_without_a_matching_defect_fail(play: Play) -> None:
    def shared(answer: messages.State) -> messages.State:
        return msgspec.structs.replace(answer, shared=answer.shared | CPUSet([1, 2]))

    alone = baseline_target(InProcess(Reference), level="invariants", oracle=False)
    for target in (alone, baseline_target(changed_reference(state=shared), level="invariants")):
        result, run = play(target, UNEVEN)
        assert result.outcome == "fail"
        assert run.player.violations


def test_files_that_a_refused_start_created_are_not_required(play: Play) -> None:
    class Undoing(Reference):
        """A kubelet whose refused starts leave the state directory unchanged."""

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            if not isinstance(args, messages.StartArgs):
                return super().call(operation, args)
            folder = Path(args.state_dir)
            before = {*folder.iterdir()}
            answer = super().call(operation, args)
            if isinstance(answer, messages.StartRefused):
                for created in {*folder.iterdir()} - before:
                    created.unlink()
            return answer

    case = """
        config:
          memoryManagerPolicy: Static
          kubeReserved: {cpu: 1, memory: 28Mi}
          reservedMemory: [{numaNode: 0, limits: {memory: 128Mi}}]
        steps:
        - tamper: {file: memory_manager_state, how: write, text: "x"}
        - tamper: {file: cpu_manager_state, how: delete}
        - start: {}
          expect: anything
        - start: {config: {cpuManagerPolicy: static}}
          expect: anything
        - tamper: {file: cpu_manager_state, how: truncate}
        - start: {}
          expect: anything
    """
    for level, outcome in (("placement", "pass"), ("kubelet", "fail")):
        for implementation, expected in ((Undoing, outcome), (Reference, "pass")):
            result, _ = play(baseline_target(InProcess(implementation), level=level), case)
            assert result.outcome == expected, (level, implementation, result.message)


def test_each_baseline_reads_a_tree_at_most_once(
    tmp_path: Path,
) -> None:
    info = discover_profile("epyc-12-nodes")
    read: list[Baseline] = []

    class Reading(Reference):
        def __init__(self, baseline: Baseline) -> None:
            super().__init__(
                follows_docs=baseline.follows_documents, exceptions=baseline.exceptions
            )
            self._baseline = baseline

        def discover(self, args: messages.DiscoverArgs) -> MachineInfo:
            read.append(self._baseline)
            return super().discover(args)

    args = messages.DiscoverArgs(tree_of(info).path, "1.37")
    judge = Baselines(Reading, tmp_path, "placement")
    wrong = msgspec.structs.replace(info, num_sockets=9)
    assert parts(judge.disagreement("discover", args, wrong))[0] == "num_sockets"
    assert not judge.allows(args, lambda _, __: False)
    assert DOCUMENTED in read
    assert len(read) == len({*read})
    named = {name for one in read for name in one.exceptions}
    assert named <= {"cores-with-equal-ids-joined", *(change.name for change in CHANGES)}


def test_every_undocumented_change_has_a_name() -> None:
    changes = [one for one in OVERRIDES if isinstance(deviation_of(one), UndocumentedBehaviour)]
    assert {deviation_of(one) for one in changes if not defect_of(one)} == {*CHANGES}
    assert len({one.name for one in CHANGES}) == len(CHANGES)
    assert len({name_of(one) for one in OVERRIDES if not defect_of(one)}) == len(CHANGES)
    assert all(name_of(one) for one in OVERRIDES)


TAKES_DEVICES = """
config:
  cpuManagerPolicy: static
  topologyManagerPolicy: single-numa-node
  systemReserved: {cpu: "1"}
devices: {v.example/nic: [null, null, [0], [0]]}
steps:
- start: {}
- admit:
    pod: a
    init: {side: {limits: {cpu: 1, v.example/nic: 2}, restartPolicy: Always}}
    containers: {app: {limits: {cpu: 1, v.example/nic: 2}}}
  expect: anything
"""


TAKES_MEMORY_TOO = """
config:
  cpuManagerPolicy: static
  memoryManagerPolicy: Static
  topologyManagerPolicy: single-numa-node
  systemReserved: {cpu: "1", memory: 156Mi}
  reservedMemory: [{numaNode: 0, limits: {memory: 256Mi}}]
devices: {v.example/nic: [[0], [0], null, null]}
steps:
- start: {}
- admit:
    pod: a
    init: {side: {limits: {cpu: 1, memory: 64Mi, v.example/nic: 2}, restartPolicy: Always}}
    containers: {app: {limits: {cpu: 1, memory: 13600Mi, v.example/nic: 2}}}
  expect: anything
"""


@pytest.mark.parametrize("steps", [TAKES_DEVICES, TAKES_MEMORY_TOO])
@pytest.mark.parametrize("level", ["placement", "kubelet"])
@pytest.mark.parametrize("number", range(6))
def test_a_refusal_may_depend_on_devices_that_nobody_sees(
    number: int, level: str, steps: str, play: Play
) -> None:
    class Chooses(Reference):
        """A kubelet that gives the sidecar other devices."""

        def call(self, operation: str, args: messages.Args) -> messages.Answer:
            self.prefer(Choices(only_devices=True, decisions=Decisions((number,))))
            return super().call(operation, args)

    result, _ = play(baseline_target(InProcess(Chooses), level=level), steps)
    assert result.outcome == "pass"
