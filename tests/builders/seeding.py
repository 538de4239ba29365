"""`simulate` questions that show a named defect, derived from the defect's smallest case."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.machines import AnyMachine, GivenMachine, ProfileMachine
from numaproof.conformance.execution.run import Run, reference_target
from numaproof.conformance.judging.baselines import KUBELET
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference
from numaproof.simulation.admission import Question
from numaproof.simulation.pods import DescribedPod
from numaproof.simulation.state_files import read_files
from numaproof.simulation.upgrades import UpgradeQuestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.implementation import InProcess
    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.deviations.deviation import Defect

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"

Asked = tuple[Question, tuple[DescribedPod, ...]]

ALPHA = {"CPUManagerPolicyAlphaOptions": True, "CPUManagerPolicyBetaOptions": True}


class _Recorder:
    """A reference that records its calls."""

    def __init__(self, reference: InProcess) -> None:
        self.reference = reference
        self.calls: list[tuple[str, Any]] = []

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        self.calls.append((operation, args))
        return self.reference.call(operation, args)

    def prefer(self, choices: Any) -> None:
        self.reference.prefer(choices)

    def close(self) -> None:
        self.reference.close()


def calls(defect: Defect, folder: Path) -> list[tuple[str, Any]]:
    """Returns the calls of a defect's smallest case with the newest kubelet that has the defect."""
    (case,) = loading.read_file(FINDINGS / f"{defect.name}.yaml")
    machine = _machine(case, folder)
    target = reference_target(defect.releases[-1], KUBELET)
    recorder = _Recorder(target.implementation)  # type: ignore[arg-type] # in this process
    target = dataclasses.replace(target, implementation=recorder)
    Run(target, case, machine.info, machine.tree, folder / "case").play()
    return recorder.calls


def _machine(case: Case, folder: Path) -> AnyMachine:
    if case.machine is not None:
        return GivenMachine(case.machine)
    names = case.machines.names or ()
    bundled = [ProfileMachine(fakesys.load_profile(name), folder / "tree") for name in names]
    return machines.select(bundled, case)[0]


def questions(defect: Defect, folder: Path) -> Iterator[Asked]:
    """Yields questions that may show a defect: the start and the admissions of its case.

    An assignment becomes a node whose other CPUs are reserved. A node must reserve a CPU; if
    that
    would hide the defect, each CPU is tried, with pods of every size.
    """
    release = defect.releases[-1]
    made = calls(defect, folder)
    operation, args = made[0]
    if operation == "assign":
        yield from _assign_questions(args, release)
        return
    pods = []
    for following, each in made[1:]:
        if following in ("start", "remove"):
            break
        if following in ("admit", "hints"):
            pods.append(DescribedPod(f"pod-{len(pods)}", each.pod))
    yield Question(args.machine, args.config, release, devices=args.devices or ()), tuple(pods)


def _assign_questions(args: messages.AssignArgs, release: str) -> Iterator[Asked]:
    every = cpus(args.machine)
    reserved = CPUSet.from_mask(every.mask & ~args.available.mask)
    choices = (
        [(reserved, args.count)]
        if reserved
        else [(CPUSet([cpu]), count) for count in range(args.count, 1, -1) for cpu in every]
    )
    for taken, count in choices:
        config = {
            "cpuManagerPolicy": "static",
            "reservedSystemCPUs": str(taken),
            "cpuManagerPolicyOptions": dict(args.options),
            "featureGates": ALPHA,
        }
        yield Question(args.machine, config, release), (guaranteed_pod("pod", count),)


def cpus(machine: MachineInfo) -> CPUSet:
    """All CPUs of a machine."""
    return CPUSet(
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    )


def guaranteed_pod(name: str, cpus: int) -> DescribedPod:
    """A Guaranteed pod with one container."""
    limits = {"cpu": str(cpus), "memory": "64Mi"}
    spec = {"containers": [{"name": "app", "resources": {"limits": limits, "requests": limits}}]}
    return DescribedPod(name, {"metadata": {"uid": name, "name": name}, "spec": spec})


def upgrades(defect: Defect, folder: Path) -> tuple[UpgradeQuestion, tuple[DescribedPod, ...]]:
    """The node in a defect's case before the last start, which an upgrade repeats.

    It has the kubelet's files and pods.
    """
    made = calls(defect, folder)
    last = max(n for n, (operation, _) in enumerate(made) if operation == "start")
    start, again = made[0][1], made[last][1]
    state = folder / "state"
    state.mkdir()
    reference = Reference()
    pods: dict[str, DescribedPod] = {}
    for operation, args in made[:last]:
        if operation == "start":
            args = msgspec.structs.replace(args, state_dir=str(state))  # noqa: PLW2901
        answer = reference.call(operation, args)
        if isinstance(answer, messages.Admitted):
            pods[args.pod["metadata"]["uid"]] = DescribedPod(args.pod["metadata"]["name"], args.pod)
        elif operation == "remove" and args.container is None:
            del pods[args.uid]
    release = defect.releases[-1]
    question = UpgradeQuestion(
        machine=again.machine or start.machine,
        config=again.config,
        before=release,
        after=release,
        devices=again.devices or (),
        files=read_files(state),
    )
    return question, tuple(pods.values())
