"""The kubelet's command line. What is expected here is what the kubelet of 1.37 answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from numaproof.reference.config import configuration, flags
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.deviations.releases import release
from numaproof.reference.errors import NotBuiltError

GATE = "CPUManagerPolicyAlphaOptions"


ROWS = yaml.safe_load(Path(__file__).with_name("flags.yaml").read_bytes())


@pytest.mark.parametrize("row", ROWS["set"], ids=lambda row: " ".join(row["flags"]))
def test_flags_set_fields(row: dict[str, Any]) -> None:
    found = flags.read(row["flags"], "1.37")
    assert json.loads(json.dumps(found)) == row["fields"]


@pytest.mark.parametrize("row", ROWS["refused"], ids=lambda row: " ".join(row["flags"]))
def test_what_cannot_be_read_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refusal:
        flags.read(row["flags"], "1.37")
    assert str(refusal.value) == row["says"]


@pytest.mark.parametrize("given", ["--node-ip=1.2.3.4", "-v", "--v=4", "-h"])
def test_flags_of_no_manager_are_not_built(given: str) -> None:
    with pytest.raises(NotBuiltError, match="flag -"):
        flags.read([given], "1.37")


def test_a_flag_is_known_in_the_releases_that_have_it() -> None:
    for gone, last in (("iptables-drop-bit", "1.30"), ("cloud-config", "1.33")):
        known = [name for name, found in flags.table().items() if gone in found]
        assert known[-1] == last
    assert "fail-cgroupv1" not in flags.table()["1.30"]


def in_force(config: dict[str, Any], *given: str) -> dict[str, Any]:
    known = release("1.37")
    return configuration.load(
        config, known.enabled, known.unknown_fields, flags.read(given, "1.37")
    ).in_force()


def test_flags_count_more_than_the_configuration() -> None:
    found = in_force(
        {
            "cpuManagerPolicy": "static",
            "kubeReserved": {"cpu": "1"},
            "systemReserved": {"cpu": "1"},
        },
        "--cpu-manager-policy=none",
        "--kube-reserved=memory=64Mi",
        "--cpu-manager-reconcile-period=0s",
    )
    assert found == {
        "cpuManagerPolicy": "none",
        "cpuManagerReconcilePeriod": "0s",
        "memoryManagerPolicy": "None",
        "topologyManagerPolicy": "none",
        "topologyManagerScope": "container",
        "kubeReserved": {"memory": "64Mi"},
        "systemReserved": {"cpu": "1"},
        "evictionHard": {
            "imagefs.available": "15%",
            "imagefs.inodesFree": "5%",
            "memory.available": "100Mi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
        },
        "cpuCFSQuota": True,
    }


def test_gates_of_both_count_and_those_of_the_command_line_more() -> None:
    known = release("1.37")
    given = {"featureGates": {GATE: True, "CPUManagerPolicyBetaOptions": False}}
    read = flags.read([f"--feature-gates={GATE}=false"], "1.37")
    gates = configuration.load(given, known.enabled, known.unknown_fields, read).gates
    assert (gates[GATE], gates["CPUManagerPolicyBetaOptions"]) == (False, False)


def test_an_unknown_gate_of_the_command_line_is_refused_by_the_command() -> None:
    with pytest.raises(ConfigError) as refusal:
        in_force({}, "--feature-gates=NoSuchGate=true")
    assert str(refusal.value) == (
        "failed to set feature gates from initial flags-based config:"
        " unrecognized feature gate: NoSuchGate"
    )


@pytest.mark.parametrize(("kubernetes", "word"), [("1.34", "exptected"), ("1.35", "expected")])
def test_earlier_releases_misspell_some_refusals(kubernetes: str, word: str, node: Any) -> None:
    refused = node.ask(
        "start",
        machine={},
        config={},
        state_dir=str(node.state_dir),
        kubernetes=kubernetes,
        flags=["--reserved-memory=x:memory=1"],
    )["refused"]
    assert refused["message"].endswith(f"failed to convert the NUMA node ID, {word} integer, got x")
