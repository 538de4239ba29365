"""The invariants read pods with their own code, which agrees with the reference."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from builders.pods import numbered_pod
from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.schema import PodSpec
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.scenarios import seeded_scenario
from numaproof.conformance.judging import entitlement, pods
from numaproof.conformance.judging.pods import PodResources, amount
from numaproof.protocol.releases import NEWEST, RELEASES
from numaproof.reference.deviations.releases import release
from numaproof.reference.implementation import Reference
from numaproof.reference.pods import quantity
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod_level import PodRules

if TYPE_CHECKING:
    from numaproof.protocol import messages

LIVES = 200
"""The number of generated scenarios whose pods are read by both."""

WHOLE = {"cpu": "2", "memory": "1Gi"}
BOTH_GATES = {"PodLevelResources": True, "PodLevelResourceManagers": True}
NODES: list[tuple[str, dict[str, bool]]] = [
    *((version, {"PodLevelResources": on}) for version in RELEASES for on in (True, False)),
    (NEWEST, BOTH_GATES),
]
"""Every release with its gates on and off."""


@pytest.fixture(scope="module")
def made_up() -> list[messages.Pod]:
    """Pods of every class, with init containers, sidecars and pod-level resources, some unusual."""
    claims = Capabilities(Reference().hello(hello_args("tests")), NEWEST)
    lives = [seeded_scenario(seed, claims) for seed in range(LIVES)]
    specs = [step.admit for case in lives for step in case.steps if isinstance(step.admit, PodSpec)]
    pods = [manifests.manifest(one) for one in specs]
    for number, pod in enumerate(pods):
        own = pod["spec"].get("resources")
        if own and number % 2:
            own[min(own)].pop(("cpu", "memory")[number % 3 % 2], None)
    return pods


@pytest.mark.parametrize(("version", "gates"), NODES)
def test_both_readings_of_a_pod_agree(
    made_up: list[messages.Pod], version: str, gates: dict[str, bool]
) -> None:
    config: messages.KubeletConfiguration = {"featureGates": gates}
    known = release(version).under(gates)
    level = known.pod_level if gates["PodLevelResources"] else known.pod_level_without_gate
    classes = set()
    for manifest in made_up:
        own = pods.read(manifest, entitlement.pod_resources(config, version))
        theirs = read_pod(manifest, level, known.rule(PodRules))
        classes.add(own.qos)
        assert own.qos == theirs.qos
        assert (own.budget is None) == (theirs.budget is None)
        for left, right in zip(own.containers, theirs.containers, strict=True):
            assert (left.name, left.kind == "init") == (right.name, right.runs_to_completion)
            assert left.requests == {kind: amount(text) for kind, text in right.requests.items()}
            assert own.exclusive_cpus(left) == theirs.exclusive_cpus(right)
        if own.budget is None:
            assert own.effective_exclusive_cpus == theirs.peak_exclusive_cpus()
    assert len(classes) == 3


def test_both_readings_of_a_quantity_agree() -> None:
    choices = Seeded(0)
    units = ("", "", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+1")
    for _ in range(4000):
        number = str(choices.integer(0, 10_000))
        part = choices.pick(("", "", ".", f".{choices.integer(0, 999)}"))
        text = number + part + choices.pick(units)
        # Nothing smaller than a nano counts.
        assert -(-amount(text) * 10**9 // 1) == quantity.parse(text) * 10**9, text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1500m", Fraction(3, 2)),
        ("1.5Gi", 3 << 29),
        (".5k", 500),
        ("2E", 2 * 10**18),
        ("2E1", 20),
        (3, 3),
        ("+4", 4),
        ("two", 0),
        ("2ki", 0),
        ("1/2", 0),
        (None, 0),
        ("1" * 5000, 0),
    ],
)
def test_quantities_are_exact_and_malformed_ones_are_zero(text: object, number: int) -> None:
    assert amount(text) == number


def test_the_class_set_by_the_api_server_counts() -> None:
    given = {**numbered_pod("a", [{"limits": WHOLE}]), "status": {"qosClass": "Burstable"}}
    assert pods.read(given, PodResources()).qos == "Burstable"


def test_unset_gates_follow_their_maturity() -> None:
    def read(kubernetes: str, **gates: bool) -> PodResources:
        return entitlement.pod_resources({"featureGates": gates}, kubernetes)

    alpha = PodResources(classify=True, empty_classify=True)
    beta = replace(alpha, unpin=True)
    assert read("1.33") == PodResources()
    assert read("1.33", AllAlpha=True) == alpha
    assert read("1.34") == beta
    assert read("1.34", AllBeta=False) == PodResources()
    assert read("1.34", AllBeta=False, PodLevelResources=True) == beta
    assert read("1.36", AllBeta=False) == PodResources(unpin=True)
    assert read("1.36", PodLevelResourceManagers=True).budget
    assert read("1.37") == PodResources(classify=True, unpin=True, complete=True)
    assert read("1.37", PodLevelResourcesFixDefaulting=False) == replace(
        read("1.37"), complete=False
    )
    assert read("1.37", PodLevelResourcesFixKubeletQOSClass=False) == replace(
        read("1.37"), empty_classify=True
    )
    assert read("1.37", AllBeta=True).budget
    assert entitlement.pod_resources({}, NEWEST) == read(NEWEST)
