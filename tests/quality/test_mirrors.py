"""Correct implementations that choose other resources than the reference aren't blamed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from builders.checkout import ROOT
from builders.fuzz_runs import found_in, fuzz_events
from builders.machines import regular
from builders.targets import case_of
from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.cases.manifests import without_cpus
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.execution.run import Run
from numaproof.conformance.requirements import load_registry
from numaproof.protocol import codec, messages
from numaproof.protocol.sets import CPUSet
from quality.mirror_runs import blamed, target
from quality.mirrors import MIRRORS, Mirror
from quality.suite import Suite

if TYPE_CHECKING:
    from pathlib import Path


DEPENDENT = (
    "dev-health-held-and-admitted-again",
    "dev-init-reused-device-keeps-its-node",
    "mem-group-for-small-pods-if-allowed",
    "mem-group-of-the-fewest-nodes",
    "mem-group-wider-than-needed",
    "mem-remove-rejected-by-others",
    "mem-restart-gone-group-leaves-single-nodes",
    "mem-restart-gone-pods-give-back",
    "mem-static-admitted-again-takes-no-more",
    "node-end-init-container-frees-memory",
    "restart-with-other-reserved-cpus-of-the-pool",
    "topo-example-guaranteed-fraction-when-cpus-are-used-up",
)
"""Cases whose outcomes depend on the resources that the reference chooses."""

FEW = ("laptop-4c8t", "xeon-gold-6230-2s-snc2", "sparse-nodes", "epyc-7402p-nps2", "hugepages-2s")


@pytest.mark.parametrize("name", MIRRORS)
def test_a_mirror_is_not_blamed_for_its_choices(name: str, tmp_path: Path) -> None:
    cases = [one for one in loading.bundled_cases() if one.id in DEPENDENT]
    machines = [ProfileMachine(fakesys.load_profile(one), tmp_path) for one in FEW]
    runs, failures = blamed(name, "admission", Suite(cases, machines, load_registry()))
    assert runs
    assert failures == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("both", 1), ("everything", 2)])
def test_fuzzing_does_not_blame_a_mirror(name: str, seed: int, tmp_path: Path) -> None:
    stream = list(fuzz_events(target(name, "admission"), tmp_path, 200, seed))
    assert found_in(stream) == []


REFUSED_RESTART = """
config: {cpuManagerPolicy: static, memoryManagerPolicy: None, kubeReserved: {cpu: 1}}
steps:
- start: {}
  expect: anything
- admit: {pod: a, containers: {app: {limits: {cpu: 1, memory: 64Mi}}}}
  expect: anything
- start:
    config:
      memoryManagerPolicy: Static
      kubeReserved: {cpu: 1, memory: 28Mi}
      reservedMemory: [{numaNode: 0, limits: {memory: 1Mi}}]
  expect: anything
"""


def test_a_refused_restart_keeps_the_earlier_reservation(tmp_path: Path) -> None:
    """Otherwise, the reference would find its own reserved CPUs in use."""
    case, mirror = case_of(REFUSED_RESTART), target("both", "admission")
    run = Run(mirror, case, regular(nodes=2), None, tmp_path)
    assert run.play().outcome == "pass"


REFUSED_FOR_ITS_CHOICE = """
devices: {vendor.example/nic: [[0], [0], [1]]}
config: {topologyManagerPolicy: restricted}
steps:
- admit:
    pod: a
    init:
      load: {limits: {cpu: 1, memory: 64Mi, vendor.example/nic: 1}}
      wait: {limits: {cpu: 1, memory: 64Mi}}
    containers:
      one: {limits: {cpu: 1, memory: 64Mi}}
      two: {limits: {cpu: 1, memory: 64Mi, vendor.example/nic: 2}}
  expect: anything
"""


def test_a_choice_that_leads_to_a_refusal_is_found(tmp_path: Path) -> None:
    """The init container gets the device on node 1, which its app container can't reuse."""
    case, mirror = case_of(REFUSED_FOR_ITS_CHOICE), target("nodes", "admission")
    run = Run(mirror, case, regular(nodes=2), None, tmp_path)
    assert run.play().outcome == "pass"
    refused = [one for one in run.player.session.calls if one.operation == "admit"]
    assert isinstance(refused[0].answer, messages.AdmissionRefused)


MANY_WAYS = """
config: {topologyManagerPolicy: restricted, cpuManagerPolicy: static, kubeReserved: {cpu: 1}}
steps:
- admit:
    pod: a
    containers:
      one: {limits: {cpu: 2, memory: 64Mi}}
      two: {limits: {cpu: 2, memory: 64Mi}}
      three: {limits: {cpu: 2, memory: 64Mi}}
      four: {limits: {cpu: 2, memory: 64Mi}}
      five: {limits: {cpu: 2, memory: 64Mi}}
      six: {limits: {cpu: 2, memory: 64Mi}}
      seven: {limits: {cpu: 2, memory: 64Mi}}
  expect: anything
- admit: {pod: b, containers: {app: {limits: {cpu: 2, memory: 64Mi}}}}
  expect: anything
"""


@pytest.mark.parametrize(
    ("refused", "outcome"), [("uid-a", "pass"), ("uid-b", "fail")], ids=["many", "one"]
)
def test_a_refusal_is_blamed_only_if_no_choices_lead_to_it(
    refused: str, outcome: str, tmp_path: Path
) -> None:
    """A pod with seven containers has more choices than can be tried; the next one is judged."""
    case, mirror = case_of(MANY_WAYS), target("nodes", "admission")
    run = Run(
        replace(mirror, implementation=InProcess(partial(_Refusing, refused))),
        case,
        regular(nodes=4),
        None,
        tmp_path,
    )
    assert run.play().outcome == outcome


class _Refusing(Mirror):
    """A mirror that refuses a pod."""

    def __init__(self, uid: str) -> None:
        super().__init__("nodes")
        self._uid = uid

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        answer = super().call(operation, args)
        if isinstance(args, messages.AdmitArgs) and args.pod["metadata"]["uid"] == self._uid:
            super().call("remove", messages.RemoveArgs(self._uid))
            return messages.AdmissionRefused("TopologyAffinityError", "no")
        return answer


UNEVEN = """
config:
  topologyManagerPolicy: restricted
  cpuManagerPolicy: static
  cpuManagerPolicyOptions: {full-pcpus-only: "true"}
  kubeReserved: {cpu: 2}
steps:
- admit: {pod: a, containers: {app: {limits: {cpu: 10, memory: 64Mi}}}}
  expect: anything
"""


def test_whole_cores_of_an_affinity_come_first(tmp_path: Path) -> None:
    """A core of node 1 has one thread, so that the CPUs taken first there aren't whole cores."""
    machine = without_cpus(regular(nodes=3, cores=6), CPUSet.parse("8,13-17,31-35"))
    run = Run(target("everything", "admission"), case_of(UNEVEN), machine, None, tmp_path)
    result = run.play()
    assert (result.outcome, result.message) == ("pass", "")


def test_a_mirror_is_a_program_as_well() -> None:
    command = [sys.executable, "-m", "quality.mirrors", "both", "--level", "invariants"]
    hello = b'{"id": 1, "op": "hello", "args": {"protocol": [1, 1], "harness": "test"}}\n'
    ended = subprocess.run(command, input=hello, capture_output=True, check=True, cwd=ROOT)
    answer = codec.decode(ended.stdout, dict)
    assert (answer["ok"]["name"], answer["ok"]["level"]) == ("mirror both", "invariants")
