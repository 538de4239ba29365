"""All problems of a configuration are listed, without errors that follow from others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from numaproof.simulation.admission import Question
from numaproof.simulation.configuration_check import ConfigurationFinding, judge

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = "cpuManagerPolicyOptions"


def found(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    machine = machines.discover_profile("epyc-7402p-nps2")
    verdict = judge(Question(machine, {"cpuManagerPolicy": "static", **settings}, "1.37"))

    def row(one: ConfigurationFinding) -> tuple[str, str]:
        return one.severity, ".".join(map(str, one.path))

    return map(row, verdict.findings)


def test_a_missing_reservation_hides_no_warning_and_causes_none() -> None:
    settings = {
        OPTIONS: {"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"},
        "topologyManagerPolicy": "single-numa-node",
        "kubeReserved": {"cpu": "0"},
    }
    assert [*found(settings)] == [
        ("error", "cpuManagerPolicy"),
        ("warning", f"{OPTIONS}.distribute-cpus-across-numa"),
    ]


def test_a_misspelt_policy_is_judged_as_the_one_that_is_meant() -> None:
    settings = {"cpuManagerPolicy": "statik", OPTIONS: {"full-pcpus-only": "false"}}
    assert [*found(settings)] == [("error", "cpuManagerPolicy"), ("error", "cpuManagerPolicy")]


def test_options_of_an_unknown_policy_are_not_judged() -> None:
    settings = {"cpuManagerPolicy": "dynamic", OPTIONS: {"full-pcpus-only": "false"}}
    assert [*found(settings)] == [("error", "cpuManagerPolicy")]


RESERVATIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"kubeReserved": {"cpu": 1}}, ["kubeReserved.cpu"]),
    ({"systemReserved": ["cpu"]}, ["systemReserved"]),
    ({"reservedSystemCPUs": "9999"}, ["reservedSystemCPUs"]),
    ({"kubeReserved": {"memory": 1}}, ["kubeReserved.memory", "cpuManagerPolicy"]),
]


@pytest.mark.parametrize(("settings", "errors"), RESERVATIONS)
def test_a_reservation_that_is_refused_is_not_missing(
    settings: dict[str, Any], errors: list[str]
) -> None:
    assert [*found(settings)] == [("error", path) for path in errors]


def test_a_flag_that_is_refused_is_not_missing() -> None:
    machine = machines.discover_profile("epyc-7402p-nps2")
    flags = ("--kube-reserved=cpu",)
    verdict = judge(Question(machine, {"cpuManagerPolicy": "static"}, "1.37", flags=flags))
    assert [one.path for one in verdict.findings] == [("--kube-reserved",)]
