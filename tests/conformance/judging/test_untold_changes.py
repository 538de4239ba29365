"""Changes between releases that no document tells: whoever follows the newest documents passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.conformance.judging.baselines import UNCHANGED
from numaproof.protocol.events import Parted
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
    from pathlib import Path

    MakeTarget = Callable[..., Target]
    Played = Callable[..., tuple[RunResult, Run]]

ALL_NODES = "device-hints-name-all-nodes"
EMPTY_PARTS = "empty-memory-parts-served"

WIDER = """
devices: {vendor.example/nic: [[1]]}
steps:
- hints: {pod: {pod: a, containers: {app: {limits: {vendor.example/nic: 1}}}}, container: app}
"""
NOTHING = """
config:
  cpuManagerPolicy: static
  kubeReserved: {cpu: "1"}
  memoryManagerPolicy: Static
  reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]
steps:
- admit:
    pod: a
    status: {qosClass: Guaranteed}
    containers: {app: {limits: {cpu: 1, memory: 64Mi}}, log: {}}
"""
"""The container that asks for nothing is refused by earlier kubelets."""

TOLD = """
- hints: {pod: {pod: a, containers: {app: {limits: {vendor.example/nic: 1}}}}, container: app}
  expect:
    hints:
      devices:
        vendor.example/nic: [{numa: [1], preferred: true}, {numa: [0, 1], preferred: false}]
"""
"""What a case expects of the earlier releases."""


@pytest.fixture
def played(tmp_path: Path, make_target: MakeTarget) -> Callable[..., tuple[RunResult, Run]]:
    """Plays a text on 1.31 with two NUMA nodes, with these deviations as the other way round."""

    def played(
        text: str, left_out: frozenset[str], judged_as: str, **more: Any
    ) -> tuple[RunResult, Run]:
        implementation = InProcess(
            lambda: Reference(documented=more.get("documented", True), exceptions=left_out)
        )
        target = make_target(
            implementation,
            kubernetes="1.31",
            level=more.get("level", "placement"),
            oracle=True,
            judged_as=judged_as,
        )
        head = "cases:\n- id: test\n  title: A test\n  requirements: []\n"
        body = "".join(f"  {line}\n" for line in text.strip().splitlines())
        (case,) = loading.parse(head + body, "test.yaml")
        run = Run(
            target,
            case,
            machines.regular(nodes=2),
            None,
            tmp_path / str(len(list(tmp_path.iterdir()))),
        )
        return run.play(), run

    return played


@pytest.mark.parametrize(("text", "name"), [(WIDER, ALL_NODES), (NOTHING, EMPTY_PARTS)])
def test_whoever_follows_the_newest_documents_passes_on_earlier_releases(
    played: Played, text: str, name: str
) -> None:
    for left_out in (frozenset({name}), UNCHANGED.exceptions):
        result, run = played(text, left_out, "either")
        assert result == RunResult("pass")
        assert run.parted(result) == Parted("documented", (name,))
        result, run = played(text, left_out, "documented")
        assert result == RunResult("pass")
        assert run.parted(result) is None


@pytest.mark.parametrize("text", [WIDER, NOTHING])
def test_whoever_does_as_the_releases_of_that_time_passes_too(played: Played, text: str) -> None:
    for judged_as in ("either", "documented"):
        result, run = played(text, frozenset(), judged_as)
        assert result == RunResult("pass")
        assert run.parted(result) is None


@pytest.mark.parametrize("text", [WIDER, NOTHING])
def test_a_kubelet_of_an_earlier_release_must_do_as_that_did(played: Played, text: str) -> None:
    result, _ = played(text, UNCHANGED.exceptions, "kubelet", level="kubelet", documented=False)
    assert result.outcome == "fail"


@pytest.mark.parametrize("level", ["invariants", "admission", "placement"])
@pytest.mark.parametrize("judged_as", ["either", "documented"])
def test_a_case_that_expects_an_untold_change_does_not_fail_who_lacks_it(
    played: Played, level: str, judged_as: str
) -> None:
    text = WIDER + TOLD.lstrip("\n")
    assert played(text, UNCHANGED.exceptions, judged_as, level=level)[0] == RunResult("pass")
    wrong = text.replace("{numa: [0, 1], preferred: false}", "{numa: [0], preferred: false}")
    assert played(wrong, UNCHANGED.exceptions, judged_as, level=level)[0].outcome == "fail"


def test_the_defects_of_kubelets_stay_wrong_where_only_the_documents_are_right(
    played: Played,
) -> None:
    text = """
    config: {cpuManagerPolicy: static, reservedSystemCPUs: '0'}
    steps:
    - admit:
        pod: a
        init: {setup: {limits: {cpu: 1, memory: 64Mi}}}
        containers: {app: {limits: {cpu: 2, memory: 64Mi}}}
    """.replace("\n    ", "\n")
    assert played(text, frozenset({"init-cpus-not-reused"}), "documented")[0].outcome == "fail"
    assert played(text, UNCHANGED.exceptions, "documented")[0].outcome == "pass"


def test_every_change_has_a_name_of_its_own_or_is_one_of_a_defect() -> None:
    changes = [one for one in OVERRIDES if isinstance(deviation_of(one), UndocumentedBehaviour)]
    assert {deviation_of(one) for one in changes if not defect_of(one)} == {*CHANGES}
    assert len({one.name for one in CHANGES}) == len(CHANGES)
    assert len({name_of(one) for one in OVERRIDES if not defect_of(one)}) == len(CHANGES)
    assert all(name_of(one) for one in OVERRIDES)
