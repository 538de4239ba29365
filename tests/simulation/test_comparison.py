"""Configurations compared by what they do with the same pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from builders.node_states import listed_pod, listing
from numaproof.cli.comparison_view import difference_sections
from numaproof.simulation import pods
from numaproof.simulation.admission import Question
from numaproof.simulation.comparison import (
    ChangeError,
    ComparedVariant,
    compare,
    parse_change,
    variants,
)

if TYPE_CHECKING:
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "topologyManagerPolicy": "single-numa-node",
}
QUESTION = Question(machines.regular(nodes=2, cores=4), CONFIG, "1.37")
PODS = pods.read(
    [("pods.json", listing([listed_pod(n, {"cpu": 5, "memory": "1Mi"}) for n in ("a", "b", "c")]))]
).pods


def compared(folder: Path, *texts: str) -> tuple[ComparedVariant, ...]:
    return compare(variants(QUESTION, [parse_change(one) for one in texts], ()), PODS, folder)


def test_every_combination_of_values_is_tried() -> None:
    changes = [
        parse_change("topologyManagerPolicy=none,restricted"),
        parse_change("topologyManagerScope=container,pod"),
    ]
    found = variants(QUESTION, changes, ())
    assert [one.name for one in found] == [
        "as configured",
        "topologyManagerPolicy none, topologyManagerScope container",
        "topologyManagerPolicy none, topologyManagerScope pod",
        "topologyManagerPolicy restricted, topologyManagerScope container",
        "topologyManagerPolicy restricted, topologyManagerScope pod",
    ]


def test_the_configuration_itself_is_not_repeated() -> None:
    found = variants(QUESTION, [parse_change("topologyManagerPolicy=none,single-numa-node")], ())
    assert len(found) == 2


def test_the_best_is_marked_and_the_pods_that_differ_are_named(tmp_path: Path) -> None:
    first, second = compared(tmp_path, "topologyManagerPolicy=best-effort")
    assert (first.admitted, first.refused, first.is_best) == (2, 1, False)
    assert (second.admitted, second.refused, second.is_best) == (3, 0, True)
    assert second.gains == ("Pod/default/c",)
    assert second.losses == ()
    assert (second.exclusive_cpus, second.aligned_pods, second.unaligned_pods) == (15, 2, 1)
    assert (first.whole_nodes, second.whole_nodes) == (0, 0)


def test_the_refused_pods_of_the_configuration_are_named(tmp_path: Path) -> None:
    first, _ = difference_sections(compared(tmp_path, "topologyManagerPolicy=best-effort"))
    cause = "no preferred set of NUMA nodes has enough CPUs free"
    lack = "node 0: 2 CPUs free, 5 needed; node 1: 3 CPUs free, 5 needed"
    assert (first.title, first.lines) == (
        "as configured",
        (
            "refuses 1 pod",
            f"  1 pod: {cause}",
            f"    such as Pod/default/c: container main: no node can provide 5 CPUs: {lack}",
        ),
    )


def test_cores_shared_with_others_are_split(tmp_path: Path) -> None:
    first, second = compared(tmp_path, "cpuManagerPolicyOptions.full-pcpus-only=true")
    assert first.split_cores == 2
    assert (second.admitted, second.split_cores, second.whole_nodes) == (0, 0, 2)
    assert [str(one.cause) for one in second.causes] == [
        "the number of CPUs is not a multiple of a core's"
    ]


def test_a_refused_start_is_a_row(tmp_path: Path) -> None:
    _, second = compared(tmp_path, "cpuManagerPolicy=dynamic")
    assert second.refusal is not None
    assert "dynamic" in second.refusal.message
    assert not second.is_best


def test_a_configuration_that_can_crash_the_kubelet_is_not_the_best(tmp_path: Path) -> None:
    machine = machines.with_node(machines.regular(nodes=2, cores=4), 1, node_id=64)
    question = Question(machine, CONFIG, "1.37")
    tried = variants(question, [parse_change("topologyManagerPolicy=best-effort,none")], ())
    found = compare(tried, PODS, tmp_path)
    assert [bool(one.crashes) for one in found] == [True, True, False]
    assert [one.is_best for one in found] == [False, False, True]
    first, *_ = difference_sections(found)
    assert "topologyManagerPolicy makes the kubelet panic" in first.lines[0]


def test_cpu_lists_are_separated_by_semicolons() -> None:
    change = parse_change("reservedSystemCPUs=0,8;0-1,8-9")
    assert [value for _, value in change.values] == ["0,8", "0-1,8-9"]


def test_values_have_the_types_of_their_fields() -> None:
    assert parse_change("maxPods=10,20").values == (("10", 10), ("20", 20))
    assert parse_change("featureGates.NodeSwap=true").values == (("true", True),)
    assert parse_change("kubeReserved.cpu=1").values == (("1", "1"),)
    text = "[{numaNode: 0, limits: {memory: 1Gi}}]"
    change = parse_change(f"reservedMemory={text}")
    assert change.values == ((text, [{"numaNode": 0, "limits": {"memory": "1Gi"}}]),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing.yaml", "neither a file nor KEY=VALUE"),
        ("topologyManagerPolcy=none", "did you mean topologyManagerPolicy"),
        ("topologyManagerPolicy.x=none", "has no keys"),
        ("maxPods=many", "must be a whole number"),
    ],
)
def test_a_change_that_is_none_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ChangeError, match=message):
        parse_change(text)


def test_too_many_combinations_are_an_error() -> None:
    numbers = ",".join(map(str, range(15)))
    changes = [parse_change(f"maxPods={numbers}"), parse_change(f"podsPerCore={numbers}")]
    with pytest.raises(ChangeError, match="225 combinations"):
        variants(QUESTION, changes, ())
