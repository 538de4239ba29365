"""The kubelet's command line. What is expected here is what the kubelet of 1.37 answers."""

from __future__ import annotations

from typing import Any

import pytest

from numaproof.reference.config import configuration, flags
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.deviations.releases import release
from numaproof.reference.errors import NotBuiltError

GATE = "CPUManagerPolicyAlphaOptions"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["--cpu-manager-policy=static"], {"cpuManagerPolicy": "static"}),
        (["--cpu_manager_policy", "static"], {"cpuManagerPolicy": "static"}),
        (["--cpu-manager-policy=static", "--cpu-manager-policy="], {"cpuManagerPolicy": ""}),
        (
            ["--kube-reserved=cpu=1,,memory = 64Mi"],
            {"kubeReserved": {"cpu": "1", "memory": "64Mi"}},
        ),
        (
            ["--system-reserved=cpu=1", "--system-reserved=cpu=2,pid=9"],
            {"systemReserved": {"cpu": "2", "pid": "9"}},
        ),
        (["--kube-reserved="], {"kubeReserved": {}}),
        (
            ["--cpu-manager-policy-options=full-pcpus-only=true,strict-cpu-reservation=true"],
            {"cpuManagerPolicyOptions": {"full-pcpus-only": "true,strict-cpu-reservation=true"}},
        ),
        (
            ["--topology-manager-policy-options=a=true,b=9", "--topology-manager-scope=pod"],
            {
                "topologyManagerPolicyOptions": {"a": "true", "b": "9"},
                "topologyManagerScope": "pod",
            },
        ),
        (["--eviction-hard=memory.available<1Gi"], {"evictionHard": {"memory.available": "1Gi"}}),
        (
            ["--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Mi;1:memory=2Gi"],
            {
                "reservedMemory": (
                    (0, {"memory": "1Gi", "hugepages-2Mi": "2Mi"}),
                    (1, {"memory": "2Gi"}),
                )
            },
        ),
        (["--reserved-memory=4294967297:memory=1"], {"reservedMemory": ((1, {"memory": "1"}),)}),
        (["--reserved-memory="], {}),
        (["--cpu-cfs-quota"], {"cpuCFSQuota": True}),
        (["--cpu-cfs-quota=0"], {"cpuCFSQuota": False}),
        (["--cpu-manager-reconcile-period=90s"], {"cpuManagerReconcilePeriod": "1m30s"}),
        (["--feature-gates=A=true,B=F"], {"featureGates": {"A": True, "B": False}}),
        (["--"], {}),
    ],
)
def test_flags_set_fields(given: list[str], found: dict[str, Any]) -> None:
    assert flags.read(given, "1.37") == found


UNREAD = "failed to parse kubelet flag: "


def invalid(flag: str, value: str, why: str) -> tuple[list[str], str]:
    """A flag with a value that cannot be read, and the refusal."""
    return [f"--{flag}={value}"], f'{UNREAD}invalid argument "{value}" for "--{flag}" flag: {why}'


FORMAT = (
    "the reserved memory has incorrect format,"
    " expected numaNodeID:type=quantity[,type=quantity...], got {}"
)
NO_TRUTH = 'strconv.ParseBool: parsing "{0}": invalid syntax'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--no-such-flag=1"], f"{UNREAD}unknown flag: --no-such-flag"),
        (["---x"], f"{UNREAD}bad flag syntax: ---x"),
        (["--=x"], f"{UNREAD}bad flag syntax: --=x"),
        (["-x"], f"{UNREAD}unknown shorthand flag: 'x' in -x"),
        (["--cpu-manager-policy"], f"{UNREAD}flag needs an argument: --cpu-manager-policy"),
        (["static"], "unknown command static"),
        (["--cpu-cfs-quota", "false"], "unknown command false"),
        ([""], "unknown command "),
        invalid("kube-reserved", "cpu", "malformed pair, expect string=string"),
        invalid("eviction-hard", "memory.available=1Gi", "malformed pair, expect string<string"),
        invalid(
            "feature-gates",
            f"{GATE}=maybe",
            f"invalid value of {GATE}: maybe, err: {NO_TRUTH.format('maybe')}",
        ),
        invalid("cpu-cfs-quota", "no", NO_TRUTH.format("no")),
        invalid("cpu-manager-reconcile-period", "5", 'time: missing unit in duration "5"'),
        invalid(
            "reserved-memory",
            "x:memory=1",
            "failed to convert the NUMA node ID, expected integer, got x",
        ),
        invalid("reserved-memory", "memory=1", FORMAT.format("memory=1")),
        invalid(
            "reserved-memory",
            "0:memory",
            "the reserved limit has incorrect value, expected type=quantity, got memory",
        ),
        invalid(
            "reserved-memory", "0:disk=5", 'memory type conversion error, unknown type: "disk"'
        ),
        invalid("reserved-memory", "0:memory=z", "failed to parse the quantity: z"),
    ],
)
def test_what_cannot_be_read_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        flags.read(given, "1.37")
    assert str(refusal.value) == message


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
