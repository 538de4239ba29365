"""Implementations are only asked for what they claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from builders import machines
from builders.targets import case_of, changed_reference, target_of
from numaproof.conformance.execution.capabilities import Capabilities, NotSupportedError
from numaproof.conformance.execution.run import Scenario, claims_needed
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.protocol import messages

if TYPE_CHECKING:
    from pathlib import Path


def capabilities(operations: tuple[str, ...], *cpu: str) -> Capabilities:
    hello = messages.Hello(
        protocol=1,
        name="toy",
        version="1",
        language="C",
        kubernetes=("1.35",),
        level="admission",
        operations=operations,
        policies=messages.Policies(cpu=cpu, topology=("none", "restricted")),
        options=messages.Options(cpu=("full-pcpus-only",), topology=()),
    )
    return Capabilities(hello, "1.35")


@pytest.mark.parametrize(
    ("operations", "can"), [(("discover",), False), (("assign",), True), (("merge", "state"), True)]
)
def test_discovery_alone_has_no_scenarios(operations: tuple[str, ...], can: bool) -> None:  # noqa: FBT001
    capable = capabilities(operations, "none", "static")
    assert capable.can_be_fuzzed is can
    if can:
        verbs = {step.verb for seed in range(20) for step in seeded_scenario(seed, capable).steps}
        assert verbs == {*operations} - {"state"}


def test_managers_without_claimed_policies_are_off() -> None:
    needs = {
        "operation": ("hello", "start", "state"),
        "CPU Manager policy": ("none", "static"),
        "Memory Manager policy": ("None", "Static"),
        "Topology Manager policy": ("none", "restricted", "best-effort"),
        "Topology Manager scope": ("container", "pod"),
        "CPU Manager option": ("full-pcpus-only", "align-by-socket"),
        "Topology Manager option": ("prefer-closest-numa-nodes",),
    }
    capable = capabilities(("start",), "static")
    lacking = [
        need
        for need in (f"{kind} {name}" for kind, names in needs.items() for name in names)
        if not capable.makes(need)
    ]
    assert lacking == [
        "operation state",
        "CPU Manager policy none",
        "Memory Manager policy Static",
        "Topology Manager policy best-effort",
        "Topology Manager scope pod",
        "CPU Manager option align-by-socket",
        "Topology Manager option prefer-closest-numa-nodes",
    ]
    for need in lacking:
        with pytest.raises(NotSupportedError, match=f"^{need}$"):
            capable.require([need])


def test_a_rehearsal_ends_with_the_first_call_that_needs_a_missing_claim(tmp_path: Path) -> None:
    case = case_of("steps: [{admit: {pod: p, containers: {app: {}}}}, {reconcile: {}}]")
    scenario = Scenario(case, machines.regular())
    target = target_of(changed_reference(), operations=("start", "state", "reconcile"))
    whole = claims_needed(scenario, "1.35", tmp_path / "whole")
    assert {"operation start", "operation admit", "operation reconcile"} <= {*whole}
    until = claims_needed(scenario, "1.35", tmp_path / "until", target.capabilities)
    assert until == whole[: len(until)]
    assert "operation admit" in until
    assert "operation reconcile" not in until
