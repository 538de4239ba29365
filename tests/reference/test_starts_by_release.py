"""What a start takes in one release, and refuses in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol.releases import RELEASES, between
from numaproof.reference.deviations.releases import TABLE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reference.conftest import Player

CPU_OPTIONS = {
    "full-pcpus-only": "bbbsssss",
    "distribute-cpus-across-numa": "aaabbbbb",
    "align-by-socket": "aaaaaaaa",
    "distribute-cpus-across-cores": " aaaaaaa",
    "strict-cpu-reservation": "  abbsss",
    "prefer-align-cpus-by-uncorecache": "  aabbss",
}
TOPOLOGY_OPTIONS = {
    "prefer-closest-numa-nodes": "bbssssss",
    "max-allowable-numa-nodes": " bbbbsss",
}
MATURITIES = {" ": None, "a": "alpha", "b": "beta", "s": "stable"}


def test_options_grow_up_release_by_release() -> None:
    found = TABLE.values()
    for name, stages in CPU_OPTIONS.items():
        assert [one.cpu_options.get(name) for one in found] == [MATURITIES[s] for s in stages]
    for name, stages in TOPOLOGY_OPTIONS.items():
        assert [one.topology_options.get(name) for one in found] == [MATURITIES[s] for s in stages]


def test_without_its_gate_there_is_no_memory_manager(node: Player) -> None:
    config: dict[str, Any] = {
        "release": "1.31",
        "memoryManagerPolicy": "Dynamic",
        "featureGates": {"MemoryManager": False},
    }
    assert node.start(**config)["ok"]["memory"] == []
    assert list(node.ask("state")["ok"]["files"]) == ["cpu_manager_state"]
    # A file that an earlier kubelet left stays as it is, whatever is in it.
    file: Path = node.state_dir / "memory_manager_state"
    file.write_text("garbage")
    assert "ok" in node.start(**config)
    assert node.ask("state")["ok"]["files"]["memory_manager_state"] == "garbage"
    config["featureGates"] = {}
    assert node.refusal(**config) == ("memory", 'unknown policy: "Dynamic"')


@pytest.mark.parametrize(
    ("reserved", "rounded", "exact"),
    [
        ("1.0004", "1-3", "2-3"),
        ("1000400001n", "1-3", "2-3"),
        ("1.0005", "2-3", "2-3"),
        ("1000499001n", "2-3", "2-3"),
        ("400u", None, "1-3"),
        ("500u", "1-3", "1-3"),
    ],
)
def test_cpu_reservations_count_in_thousandths_from_1_37_on(
    node: Player, machine: Any, reserved: str, rounded: str | None, exact: str
) -> None:
    for release in RELEASES:
        found = rounded if release in between("1.37") else exact
        answer = node.start(machine(smt=1), release=release, kubeReserved={"cpu": reserved})
        if found:
            assert answer["ok"]["cpus"]["allocatable"] == found
        else:
            assert "unable to determine reserved CPU resources" in answer["refused"]["message"]
