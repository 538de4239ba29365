"""Refused pods grouped by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from builders.node_states import listed_pod, listing
from numaproof.protocol import messages
from numaproof.simulation import devices, pods
from numaproof.simulation.admission import Question, admit_all, begin, node_of
from numaproof.simulation.explaining import cause_of
from numaproof.simulation.refusal_groups import refusal_groups

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.simulation.refusal_groups import RefusalGroup

NIC = "vendor.example/nic"
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
MEMORY = {
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
}
RESTRICTED = {"topologyManagerPolicy": "restricted"}


def question(config: dict[str, Any]) -> Question:
    machine = machines.regular(nodes=2, cores=4, memory=16 * machines.GIB)
    return Question(machine, config, "1.37", devices=devices.read([f"{NIC}=1@0"], machine))


def groups(
    folder: Path, config: dict[str, Any], *listed: dict[str, Any]
) -> tuple[RefusalGroup, ...]:
    described = pods.read([("pods.json", listing(listed))]).pods
    return refusal_groups(admit_all(question(config), described, str(folder)).pods)


def amounts(cpu: object, memory: object = "1Gi", **more: object) -> dict[str, object]:
    return {"cpu": cpu, "memory": memory, **more}


CAUSES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "no preferred set of NUMA nodes has enough CPUs free": (
        STATIC | RESTRICTED,
        [amounts(5), amounts(5), amounts(4)],
    ),
    "the policy allows one NUMA node, and no node has enough CPUs even if empty": (
        STATIC | {"topologyManagerPolicy": "single-numa-node"},
        [amounts(9)],
    ),
    "no set of NUMA nodes is preferred for all of CPUs and memory": (
        STATIC | RESTRICTED | MEMORY,
        [amounts(9)],
    ),
    "not enough CPUs free": (STATIC, [amounts(12), amounts(4)]),
    "not enough memory free": (STATIC | MEMORY, [amounts(1, "20Gi"), amounts(1, "20Gi")]),
    "not enough vendor.example/nic free": (
        STATIC,
        [amounts(1, **{NIC: 1}), amounts(1, **{NIC: 1})],
    ),
    "not enough whole cores free": (
        STATIC | {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
        [amounts(12), amounts(4)],
    ),
    "the number of CPUs is not a multiple of a core's": (
        STATIC | {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
        [amounts(3)],
    ),
    "not enough allocatable CPUs left": ({}, [amounts(12), amounts(12)]),
    "not enough CPUs even if the node were empty": (STATIC | RESTRICTED, [amounts(16)]),
    "not enough memory even if the node were empty": (STATIC | MEMORY, [amounts(1, "32Gi")]),
    "not enough vendor.example/nic even if the node were empty": (
        STATIC,
        [amounts(1, **{NIC: 2})],
    ),
    "not enough CPUs and memory even if the node were empty": ({}, [amounts(17, "40Gi")]),
    "no device plugin provides vendor.example/gpu": (
        STATIC,
        [amounts(1, **{"vendor.example/gpu": 1})],
    ),
}


@pytest.mark.parametrize("text", CAUSES)
def test_a_cause_is_in_words_without_amounts(tmp_path: Path, text: str) -> None:
    config, requested = CAUSES[text]
    listed = [listed_pod(f"pod-{n}", one) for n, one in enumerate(requested)]
    (group,) = groups(tmp_path, config, *listed)
    assert group.text == text
    assert group.example == f"Pod/default/pod-{len(requested) - 1}"


@pytest.mark.parametrize("text", [text for text in CAUSES if "device plugin" not in text])
def test_the_cause_alone_is_that_of_the_explanation(tmp_path: Path, text: str) -> None:
    config, requested = CAUSES[text]
    reference, _ = begin(question(config), str(tmp_path))
    node = node_of(reference)
    listed = [listed_pod(f"pod-{n}", one) for n, one in enumerate(requested)]
    *admitted, last = pods.read([("pods.json", listing(listed))]).pods
    for one in admitted:
        node.admit(messages.AdmitArgs(one.manifest))
    assert str(cause_of(node, node.read_pod(last.manifest))) == text


def test_pods_that_differ_in_names_and_numbers_are_one_group(tmp_path: Path) -> None:
    listed = [listed_pod(f"pod-{n}", amounts(2 + n)) for n in range(6)]
    found = groups(tmp_path, STATIC | RESTRICTED, *listed)
    assert [(one.reason, one.pods, one.example) for one in found] == [
        ("TopologyAffinityError", 3, "Pod/default/pod-3")
    ]


def test_the_largest_group_comes_first(tmp_path: Path) -> None:
    odd = [listed_pod(f"odd-{n}", amounts(3)) for n in range(3)]
    large = listed_pod("large", amounts(16))
    config = STATIC | {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
    assert [one.pods for one in groups(tmp_path, config, large, *odd)] == [3, 1]


def test_an_admitted_pod_is_in_no_group(tmp_path: Path) -> None:
    assert groups(tmp_path, STATIC, listed_pod("db", amounts(2))) == ()
