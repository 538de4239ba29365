"""What a call needs follows from the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from numaproof.conformance.claims import needs
from numaproof.conformance.claims.needs import EarlierStart
from numaproof.protocol import messages
from numaproof.protocol.machine import Core, MachineInfo, Node
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Mapping

RESERVED: Mapping[str, Any] = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1"}}


def of_start(
    config: Mapping[str, Any], earlier: EarlierStart | None = None, **args: Any
) -> set[str]:
    """What a start needs besides the policies that it names."""
    given = messages.StartArgs(config=dict(config), state_dir="", **args)
    found = needs.of_call("start", given, "1.36", MachineInfo(), earlier)
    return {one for one in found if one.startswith(("feature", "operation"))} - {"operation start"}


def of_pod(**spec: Any) -> set[str]:
    args = messages.AdmitArgs({"metadata": {"uid": "a"}, "spec": spec})
    return {*needs.of_call("admit", args, "1.36", MachineInfo())} - {"operation admit"}


def limits(**quantities: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): amount for name, amount in quantities.items()}
    return {"name": "app", "resources": {"limits": named}}


def test_a_start_and_a_pod_of_whole_cpus_need_no_feature() -> None:
    assert of_start(RESERVED) == set()
    assert of_pod(containers=[limits(cpu="2", memory="1Gi")]) == set()


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"initContainers": [limits(cpu="1")]}, {"feature init-containers"}),
        (
            {"initContainers": [{**limits(cpu="1"), "restartPolicy": "Always"}]},
            {"feature sidecars"},
        ),
        ({"resources": {}}, {"feature pod-level-resources"}),
        (
            {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}},
            {"feature pod-level-resources", "feature huge-pages"},
        ),
        ({"containers": [limits(hugepages_1Gi="1Gi")]}, {"feature huge-pages"}),
        (
            {"containers": [{"resources": {"limits": {"vendor.example/nic": "1"}}}]},
            {"operation devices"},
        ),
        ({"containers": [{"resources": None}], "initContainers": None}, set()),
    ],
)
def test_a_pod_needs_what_its_manifest_has(spec: dict[str, Any], needed: set[str]) -> None:
    assert of_pod(**spec) == needed


@pytest.mark.parametrize(
    ("config", "needed"),
    [
        ({"featureGates": {"CPUManagerPolicyBetaOptions": False}}, {"feature-gates"}),
        ({"featureGates": {"CPUManagerPolicyOptions": True}}, set()),
        ({"featureGates": {"PodLevelResourceManagers": True}}, {"pod-level-resource-managers"}),
        ({"featureGates": {"CPUManagerPolicyAlphaOptions": True}}, {"feature feature-gates"}),
        (
            {
                "cpuManagerPolicyOptions": {"align-by-socket": "true"},
                "featureGates": {"CPUManagerPolicyAlphaOptions": True},
            },
            set(),
        ),
        ({"featureGates": {"UnheardOf": True}}, {"feature-gates", "configuration-validation"}),
        ({"featureGates": ["MemoryManager"]}, {"feature-gates", "configuration-validation"}),
        ({"cpuManagerPolicy": "dynamic"}, {"configuration-validation"}),
        ({"memoryManagerPolicy": "BestEffort"}, {"configuration-validation"}),
        ({"topologyManagerPolicy": "always"}, {"configuration-validation"}),
        ({"reservedSystemCPUs": "all"}, {"configuration-validation"}),
        ({"cpuManagerPolicyOptions": {"unheard-of": "true"}}, {"configuration-validation"}),
        ({"cpuManagerPolicyOptions": {"full-pcpus-only": "yes"}}, {"configuration-validation"}),
        (
            {"cpuManagerPolicy": "none", "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
            {"configuration-validation"},
        ),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"hugepages-2Mi": "2Mi"}}]},
            {"feature huge-pages"},
        ),
        ({"reservedMemory": [5]}, {"configuration-validation"}),
        ({"kubeReserved": {"cpu": "0"}}, set()),
    ],
)
def test_a_configuration_needs_what_it_says(config: dict[str, Any], needed: set[str]) -> None:
    assert of_start({**RESERVED, **config}) == {
        f"feature {one.removeprefix('feature ')}" for one in needed
    }


def test_a_tree_and_devices_need_their_operations() -> None:
    assert of_start(RESERVED, root="/tree") == {"operation discover"}
    nic = messages.DeviceResource("vendor.example/nic", ())
    assert of_start(RESERVED, devices=(nic,)) == {"operation devices"}


def test_a_second_start_needs_restart_and_on_a_changed_node_more() -> None:
    same = EarlierStart(dict(RESERVED), MachineInfo())
    assert of_start(RESERVED, same) == {"feature restart"}
    both = {"feature restart", "feature reconfiguration"}
    assert of_start({**RESERVED, "kubeReserved": {"cpu": "2"}}, same) == both
    other = EarlierStart(dict(RESERVED), MachineInfo(num_cores=4))
    assert of_start(RESERVED, other) == both


def test_the_removal_of_a_container_needs_a_feature_and_that_of_a_pod_none() -> None:
    def removal(container: str | None) -> list[str]:
        args = messages.RemoveArgs("a", container)
        return [*needs.of_call("remove", args, "1.36", MachineInfo())]

    assert removal(None) == ["operation remove"]
    assert removal("app") == ["operation remove", "feature container-removal"]


def test_options_that_exclude_each_other_need_validation_without_a_node_too() -> None:
    options = {"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"}
    args = messages.AssignArgs(MachineInfo(), CPUSet(), 1, options)
    found = {*needs.of_call("assign", args, "1.36", MachineInfo())}
    assert "feature configuration-validation" in found
    args = messages.AssignArgs(MachineInfo(), CPUSet(), 1, {"full-pcpus-only": "true"})
    found = {*needs.of_call("assign", args, "1.36", MachineInfo())}
    assert found == {"operation assign", "CPU Manager option full-pcpus-only"}


def test_whether_a_configuration_is_valid_depends_on_machine_release_and_text_alone() -> None:
    def validated(config: dict[str, Any], kubernetes: str, machine: MachineInfo) -> bool:
        args = messages.StartArgs(config=config, state_dir="")
        return "feature configuration-validation" in needs.of_call(
            "start", args, kubernetes, machine
        )

    one_cpu = MachineInfo(num_cores=1, topology=(Node(0, cores=(Core(0, (0,)),)),))
    named = {"reservedSystemCPUs": "0"}
    assert [validated(named, "1.37", one) for one in (one_cpu, MachineInfo())] == [False, True]
    options = {"cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}}
    static = {**RESERVED, **options}
    assert [validated(static, one, one_cpu) for one in ("1.31", "1.35", "1.31")] == [
        True,
        False,
        True,
    ]
    config = dict(RESERVED)
    assert not validated(config, "1.37", one_cpu)
    config["kubeReserved"] = {"cpu": 1.5}
    assert validated(config, "1.37", one_cpu)
