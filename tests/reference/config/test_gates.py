"""The table of feature gates."""

from __future__ import annotations

import pytest

from numaproof.protocol.releases import RELEASES, between
from numaproof.reference.config import gates
from numaproof.reference.config.gates import Gate


def test_the_table_has_a_column_for_each_release() -> None:
    assert tuple(gates.table()) == RELEASES


def test_every_gate_that_another_needs_is_known_to_the_same_releases() -> None:
    for known in gates.table().values():
        assert {needed for gate in known.values() for needed in gate.needs} <= known.keys()


ALPHA, BETA_OFF, BETA = Gate("alpha", False), Gate("beta", False), Gate("beta", True)
STABLE, LOCKED = Gate("stable", True), Gate("stable", True, locked=True)


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("CPUManager", (LOCKED, LOCKED, LOCKED, None, None, None, None, None)),
        ("MemoryManager", (BETA, BETA, LOCKED, LOCKED, LOCKED, LOCKED, None, None)),
        ("CPUManagerPolicyOptions", (BETA, BETA, BETA, LOCKED, LOCKED, LOCKED, LOCKED, LOCKED)),
        ("CPUManagerPolicyAlphaOptions", (ALPHA,) * 8),
        ("CPUManagerPolicyBetaOptions", (BETA,) * 8),
        (
            "TopologyManagerPolicyOptions",
            (BETA, BETA, STABLE, STABLE, STABLE, STABLE, LOCKED, LOCKED),
        ),
        ("PodLevelResources", (None, None, ALPHA, ALPHA, BETA, BETA, BETA, BETA)),
    ],
)
def test_a_gate_of_the_managers_grows_up_release_by_release(
    name: str, stages: tuple[Gate | None, ...]
) -> None:
    assert tuple(known.get(name) for known in gates.table().values()) == stages


def test_pod_level_managers_become_beta_and_stay_off() -> None:
    name, needs = "PodLevelResourceManagers", ("PodLevelResources",)
    assert gates.of_release("1.36")[name] == Gate("alpha", False, needs=needs)
    assert gates.of_release("1.37")[name] == Gate("beta", False, needs=needs)
    assert not any(name in gates.of_release(release) for release in between("1.30", "1.35"))


def test_the_gates_of_logging_are_those_of_the_kubelet_too() -> None:
    for known in gates.table().values():
        assert {"ContextualLogging", "LoggingAlphaOptions", "LoggingBetaOptions"} <= known.keys()
