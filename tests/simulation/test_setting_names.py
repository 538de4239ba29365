"""Misspelt names in a configuration get the one that is probably meant."""

from __future__ import annotations

from typing import Any

import pytest

from builders import machines
from numaproof.simulation.admission import Question
from numaproof.simulation.configuration_check import judge

BASE = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0-1"}


@pytest.mark.parametrize(
    ("settings", "meant"),
    [
        ({"cpuManagerPolicyOptions": {"full-pcpu-only": "true"}}, "full-pcpus-only"),
        (
            {
                "topologyManagerPolicy": "restricted",
                "topologyManagerPolicyOptions": {"max-allowed-numa-nodes": "9"},
            },
            "max-allowable-numa-nodes",
        ),
        ({"cpuManagerPolicy": "Statik"}, "static"),
        ({"memoryManagerPolicy": "static"}, "Static"),
        ({"topologyManagerPolicy": "single-numa-nodes"}, "single-numa-node"),
        ({"topologyManagerScope": "pods"}, "pod"),
        ({"featureGates": {"CPUManagerPolicyAlphaOption": True}}, "CPUManagerPolicyAlphaOptions"),
        ({"evictionHard": {"memory.availble": "1Gi"}}, "memory.available"),
        ({"kubeReserved": {"memry": "1Gi"}}, "memory"),
    ],
)
def test_the_name_that_is_meant_is_the_fix(settings: dict[str, Any], meant: str) -> None:
    question = Question(machines.discover_profile("laptop-4c8t"), {**BASE, **settings}, "1.37")
    fixes = [one.fix for one in judge(question).findings if one.severity == "error"]
    assert fixes[0].startswith(f"did you mean {meant}?")
    assert "did you mean" not in "".join(fixes[1:])


def test_a_name_of_another_release_is_not_misspelt() -> None:
    settings = {"cpuManagerPolicyOptions": {"distribute-cpus-across-cores": "true"}}
    question = Question(machines.discover_profile("laptop-4c8t"), {**BASE, **settings}, "1.30")
    (error,) = judge(question).findings
    assert "did you mean" not in error.fix


def test_a_right_name_with_another_error_is_not_misspelt() -> None:
    question = Question(
        machines.discover_profile("laptop-4c8t"), {"cpuManagerPolicy": "static"}, "1.37"
    )
    (error,) = judge(question).findings
    assert error.fix.startswith("reserve CPU")
