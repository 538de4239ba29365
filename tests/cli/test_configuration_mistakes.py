"""Mistakes in configurations are answered with what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Command

HEAD = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"


@pytest.mark.parametrize("cpus", ["0,99", "x"])
def test_reserved_cpus_that_are_refused_are_one_error(command: Command, cpus: str) -> None:
    text = f"{HEAD}cpuManagerPolicy: static\nreservedSystemCPUs: '{cpus}'\n"
    Path("k.yaml").write_text(text, "utf-8")
    ended = command("config", "check", "k.yaml", "--machine", "epyc-7402p-nps2")
    assert ended.code == 1
    assert ended.out.count(": error: ") == 1
    assert ": error: reservedSystemCPUs: " in ended.out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reservedMemory: [null, {numaNode: null}]", "reservedMemory [null, {numaNode: null}]"),
        (
            "spec: {cpuManagerPolicy: static}",
            "spec: unknown field (move the fields in spec out of it)",
        ),
        ("maxPods: 99999999999999999999", "use a smaller number, or quote it if it is text"),
    ],
)
def test_a_mistake_is_shown_as_written(command: Command, line: str, message: str) -> None:
    Path("k.yaml").write_text(f"{HEAD}{line}\n", "utf-8")
    ended = command("config", "check", "k.yaml", "--machine", "epyc-7402p-nps2")
    assert message in ended.out + ended.err


def test_each_gate_that_a_flag_sets_is_refused_by_its_name(command: Command) -> None:
    flags = "kubelet --feature-gates=CPUManager=true,TopologyManager=true --reserved-cpus=0\n"
    Path("flags.txt").write_text(flags, "utf-8")
    ended = command(
        "config", "check", "flags.txt", "--machine", "epyc-7402p-nps2", "--kubernetes", "1.33"
    )
    lines = [line for line in ended.out.splitlines() if "featureGates" in line]
    assert {line.partition("featureGates.")[2].partition(":")[0] for line in lines} == {
        "CPUManager",
        "TopologyManager",
    }
    for line in lines:
        gate = line.partition("featureGates.")[2].partition(":")[0]
        assert f"feature gate: {gate} (remove the gate)" in line


def test_what_a_product_may_add_makes_the_advice_conditional(command: Command) -> None:
    check = ("config", "check", "k.yaml", "--machine", "epyc-7402p-nps2")
    Path("k.yaml").write_text(f"{HEAD}cpuManagerPolicy: static\n", "utf-8")
    assert "(reserve CPU: set reservedSystemCPUs" in command(*check).out
    Path("k.yaml").write_text(
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\n"
        "metadata: {name: cpumanager-enabled}\n"
        "spec: {kubeletConfig: {cpuManagerPolicy: static, cpuManagerReconcilePeriod: 5s}}\n",
        "utf-8",
    )
    ended = command(*check)
    assert "(OpenShift may set what is missing; if not, reserve CPU: set" in ended.out
    assert "only because of" not in ended.out
    assert ended.code == 0


@pytest.mark.parametrize(
    ("options", "kubernetes"),
    [
        (
            "cpu-manager-policy-options=full-pcpus-only=true,distribute-cpus-across-numa=true",
            "1.37",
        ),
        ("topology-manager-policy-options=prefer-closest-numa-nodes=true,x=true", "1.30"),
    ],
)
def test_a_flag_that_takes_one_option_is_to_be_repeated(
    command: Command, options: str, kubernetes: str
) -> None:
    flags = "--cpu-manager-policy=static --reserved-cpus=0 --topology-manager-policy=restricted"
    Path("f").write_text(f"{flags} --{options}\n", "utf-8")
    check = ("config", "check", "f", "--machine", "epyc-7402p-nps2", "--kubernetes", kubernetes)
    assert "repeat it for each option" in command(*check).out


def test_what_a_flag_overrides_is_noted(command: Command) -> None:
    Path("talos.yaml").write_text(
        "version: v1alpha1\nmachine:\n  kubelet:\n"
        "    extraArgs: {cpu-manager-policy: none, feature-gates: KubeletPodResources=true}\n"
        "    extraConfig:\n      cpuManagerPolicy: static\n      featureGates: {InPlace: true}\n",
        "utf-8",
    )
    ended = command("config", "check", "talos.yaml", "--machine", "epyc-7402p-nps2")
    overrides = [line for line in ended.err.splitlines() if "overrides" in line]
    message = "talos.yaml:4: --cpu-manager-policy=none overrides cpuManagerPolicy static of"
    assert overrides == [f"{message} talos.yaml:6"]
