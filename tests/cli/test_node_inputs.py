"""What operators bring about a node: incomplete, misnamed and contradictory files are named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.node_states import listed_pod, listing, sealed
from numaproof.conformance.cases import checkpoints

if TYPE_CHECKING:
    from conftest import Command

KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
"""
NODE = ("--machine", "laptop-4c8t", "--config", "kubelet.yaml")
STATE = ("--state", "state")
UPGRADE = ("upgrade", "--from", "1.33", "--to", "1.36", "--machine", "laptop-4c8t")


@pytest.fixture
def run(command: Command) -> Command:
    """Runs the command next to a configuration, a state, its pod and an arriving pod."""
    pod = listed_pod("old", {"cpu": 2, "memory": "1Gi"})
    Path("kubelet.yaml").write_text(KUBELET)
    Path("on-node.json").write_text(listing([pod]))
    Path("new.json").write_text(json.dumps(listed_pod("new", {"cpu": 1, "memory": "1Gi"})))
    Path("state").mkdir()
    fields = {"policyName": "static", "defaultCpuSet": "0-3,6-7"}
    text = checkpoints.text({**fields, "entries": {"uid-old": {"main": "4-5"}}})
    Path("state/cpu_manager_state").write_text(text)
    return command


def test_a_checkpoint_is_judged_by_its_name(run: Command) -> None:
    Path("state/cpu_manager_state").rename("state/memory_manager_state")
    for name in "state/memory_manager_state", "state":
        ended = run("state", "check", name, *NODE)
        assert ended.code == 1
        assert "The kubelet does not start (memory)" in ended.out
        assert (
            "- its content is that of cpu_manager_state: copied under the wrong name?" in ended.out
        )
        assert "copy the file again; go on only if" in ended.out


def test_a_file_instead_of_the_state_directory_is_named(run: Command) -> None:
    ended = run(*UPGRADE, "--state", "state/cpu_manager_state")
    assert ended.code == 2
    assert "'state/cpu_manager_state' is a file; expected the directory that it is in" in ended.err


def test_an_absent_checkpoint_is_reported(run: Command) -> None:
    memory = checkpoints.text({"policyName": "None", "machineState": {}, "entries": {}})
    Path("state/memory_manager_state").write_text(memory)
    Path("state/cpu_manager_state").unlink()
    on_node = ("--config", "kubelet.yaml", *STATE)
    ended = run(*UPGRADE, *on_node, "--pods", "on-node.json")
    assert ended.code == 1
    assert "~ The kubelet of 1.36 starts, and 1 pod keeps its resources; without cpu_" in ended.out
    assert "~ cpu_manager_state: absent" in ended.out
    ended = run("simulate", *NODE, *STATE, "--pods-on-node", "on-node.json", "new.json")
    assert ended.out.startswith("~ 1 pod on the node, placement assumed; 1 pod admitted")
    assumed = "placement of 1 pod assumed, in the order of their age: state has no cpu_manager"
    assert f"~ state\n  {assumed}" in ended.out
    ended = run("state", "check", "state", *NODE)
    assert ended.code == 1
    assert "state/cpu_manager_state:\nThe kubelet starts without this file" in ended.out


def test_pods_on_a_node_without_state_are_assumed(run: Command) -> None:
    words = ("simulate", *NODE, "--pods-on-node", "on-node.json", "new.json")
    ended = run(*words)
    assert ended.out.startswith("~ 1 pod on the node, placement assumed; 1 pod admitted")
    assumed = "in the order of their age: add --state with cpu_manager_state"
    assert assumed in ended.out
    assert assumed in run(*words, "--json").json()["notes"][-1]


def test_pods_that_upgrade_does_not_know_need_attention(run: Command) -> None:
    Path("on-node.json").write_text(Path("new.json").read_text())
    for pods in (), ("--pods", "on-node.json"):
        ended = run(*UPGRADE, "--config", "kubelet.yaml", *STATE, *pods)
        assert ended.code == 1
        assert ended.out.startswith("~ ")
        assert "1 pod in the state files not evaluated" in ended.out.splitlines()[0]
        assert ended.out.count("not evaluated") == 2


def test_a_damaged_checkpoint_is_a_matter_for_state_check(run: Command) -> None:
    Path("state/cpu_manager_state").write_text("{}")
    ended = run(*UPGRADE, "--config", "kubelet.yaml", *STATE)
    assert "1. make the kubelet of 1.33 start; see `numaproof state check`" in ended.out


def test_a_state_that_the_defaults_do_not_fit_needs_a_configuration(run: Command) -> None:
    ended = run(*UPGRADE, *STATE)
    assert ended.code == 2
    assert "--state state: cpu_manager_state has the policy static" in ended.err
    assert "add the node's configuration with --config" in ended.err


@pytest.fixture
def archive(run: Command) -> str:  # noqa: ARG001 - in its folder
    """An archive of an old node, without pods and state."""
    Path("w1").mkdir()
    record = "{version: 1, node: w1, kubernetes: v1.29.4, parts: [node.json, configz.json]}"
    Path("w1/collected.yaml").write_text(record)
    Path("w1/configz.json").write_text('{"kubeletconfig": {"maxPods": 20}}')
    node = {"apiVersion": "v1", "kind": "Node", "status": {"capacity": {"cpu": 8, "memory": "9Gi"}}}
    Path("w1/node.json").write_text(json.dumps(node))
    return "w1"


def test_a_node_of_an_old_release_is_answered_for_the_nearest(run: Command, archive: str) -> None:
    said = "kubelet v1.29.4 is not among the known releases, 1.30 to 1.37; this answer is for 1.30"
    ended = run("simulate", "--node", archive, "new.json")
    assert ended.code == 0
    assert "Kubernetes 1.30" in ended.out
    assert said in ended.err


def test_a_captured_node_without_pods_is_not_silently_empty(run: Command, archive: str) -> None:
    said = "it has no pods, so this answer is for a node without them"
    ended = run("simulate", "--node", archive, "new.json")
    assert f"w1: {said}; add '--pods-on-node'" in ended.err
    assert said in run("simulate", "--node", f"mine={archive}", "new.json").err
    ended = run("upgrade", "--node", archive, "--to", "1.36")
    assert f"w1: {said}; add '--pods'" in ended.err


def test_a_machine_completes_an_archive_without_a_tree(run: Command, archive: str) -> None:
    ended = run("simulate", "--node", archive, "--machine", "laptop-4c8t", "new.json")
    assert ended.code == 0
    assert "8 CPUs, 13.5 GiB" in ended.out
    assert "w1: its own description of the machine is not used" in ended.err
    Path("w1/collected.yaml").write_text("{version: 1, node: w1, parts: [configz.json]}")
    Path("w1/node.json").unlink()
    ended = run("simulate", "--node", archive, "new.json")
    assert ended.code == 2
    assert "w1 has no machine; add '--machine'" in ended.err
    ended = run("simulate", "--node", archive, "--machine", "laptop-4c8t", "new.json")
    assert ended.code == 0
    assert "description of the machine" not in ended.err


def test_machines_without_anything_else_are_nodes_of_a_fleet(run: Command) -> None:
    Path("trees").mkdir()
    run("profile", "tree", "epyc-7402p-nps2", "--out", "trees/big")
    run("profile", "tree", "laptop-4c8t", "--out", "trees/small")
    config = ("--config", "kubelet.yaml")
    Path("trees/lscpu.txt").touch()
    ended = run("simulate", "--node", "trees", *config, "new.json")
    assert "trees: left out lscpu.txt: not captured nodes" in ended.err
    assert ended.out.startswith("✓ 1 of 1 pod placed on 2 nodes")
    assert "big and 1 more: it has no pods" in ended.err
    bundled = ("--node", "a=laptop-4c8t", "--node", "b=trees/big")
    assert "placed on 2 nodes" in run("simulate", *bundled, *config, "new.json").out
    assert run("config", "check", "kubelet.yaml", "--node", "trees/big").code == 0


def test_an_assumption_can_be_about_one_node_of_a_fleet(run: Command, archive: str) -> None:
    nodes = ("--node", f"a={archive}", "--node", f"b={archive}")
    words = ("simulate", *nodes, "new.json", "--assume", "nodes=2", "--assume", "b:nodes=4")
    ended = run(*words)
    assert ended.code == 0
    for node, count in ("a", 2), ("b", 4):
        assumed = f"assuming {count} sockets (--assume {node}:sockets=N)"
        assert f"{node}: a Node doesn't show the sockets; {assumed}" in ended.err
    ended = run(*words, "--assume", "c:sockets=1")
    assert ended.code == 2
    assert "--assume c:sockets: no node 'c'; it has: a, b" in ended.err


def test_unpinned_memory_is_not_said_to_be_on_a_numa_node(run: Command) -> None:
    ended = run("simulate", "--machine", "epyc-7402p-nps2", "--config", "kubelet.yaml", "new.json")
    assert re.search(
        r"largest Guaranteed pod: \d+ CPUs on nodes 0-1 and 124.\d GiB of mem", ended.out
    )
    Path("kubelet.yaml").write_text(
        f"{KUBELET}topologyManagerPolicy: single-numa-node\nmemoryManagerPolicy: Static\n"
        "reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]\n"
    )
    ended = run("simulate", "--machine", "epyc-7402p-nps2", "--config", "kubelet.yaml", "new.json")
    assert re.search(r"largest Guaranteed pod: 24 CPUs and 62.\d GiB of memory on node", ended.out)


def test_the_headline_names_what_would_have_to_go(run: Command) -> None:
    large = listed_pod("large", {"cpu": 6, "memory": "1Gi"})
    words = ("simulate", *NODE, *STATE, "--pods-on-node", "on-node.json", "large.json")
    for cpus, said in (6, "remove old to make room"), (8, "no removal would help"):
        large["spec"]["containers"][0]["resources"]["limits"]["cpu"] = cpus
        large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpus
        Path("large.json").write_text(json.dumps(large))
        ended = run(*words, "--explain", "large")
        assert f"1 of 1 pod refused; {said}\n" in ended.out


def test_cpus_reused_from_an_init_container_have_one_owner(run: Command) -> None:
    pod = listed_pod("two", {"cpu": 2, "memory": "1Gi"})
    first = {**pod["spec"]["containers"][0], "name": "first"}
    pod["spec"]["initContainers"] = [first]
    Path("new.json").write_text(json.dumps(pod))
    Path("kubelet.yaml").write_text(
        f"{KUBELET}memoryManagerPolicy: Static\n"
        "reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]\n"
    )
    for words in ("new.json",), ("--pods-on-node", "new.json"):
        ended = run("simulate", *NODE, *words)
        assert "more than one owner" not in ended.out
        assert re.search(r" A  Pod/default/two/main +2-3\n", ended.out)
        assert " 0 B " not in ended.out
    assert ended.out.count("Pod/default/two") == 3
    ended = run("simulate", *NODE, "new.json")
    title = "Reused by later containers of the pod\n"
    assert f"{title}  Pod/default/two, init container first: CPUs 2-3\n" in ended.out


def test_an_output_is_not_an_input(run: Command) -> None:
    Path("pods").mkdir()
    Path("new.json").rename("pods/new.json")
    Path("link.yaml").symlink_to("kubelet.yaml")
    words = ("simulate", *NODE, *STATE, "--pods-on-node", "on-node.json", "pods")
    inputs = (
        "kubelet.yaml",
        "link.yaml",
        "on-node.json",
        "pods/new.json",
        "state/cpu_manager_state",
    )
    before = {name: Path(name).read_bytes() for name in inputs}
    for name in inputs:
        ended = run(*words, "--nrt", name)
        assert ended.code == 2
        assert f"Error: {name} is already an input or output; name another file" in ended.err
    assert {name: Path(name).read_bytes() for name in inputs} == before
    assert run(*words, "--nrt", "a.svg", "--out", "a.svg").code == 2
    for _ in range(2):
        assert run(*words, "--nrt", "nrt.yaml", "--out", "pods/node.html").code == 0


def test_a_missing_folder_of_an_output_is_an_error(run: Command) -> None:
    ended = run("simulate", *NODE, "new.json", "--nrt", "outt/nrt.yaml")
    assert ended.code == 2
    assert "outt/nrt.yaml: the folder outt does not exist; create it first" in ended.err


def test_pods_without_a_device_checkpoint_get_devices_anew(run: Command) -> None:
    nic = "vendor.example/nic"
    amounts = {"cpu": 1, "memory": "1Gi", nic: 2}
    Path("on-node.json").write_text(listing([listed_pod("old", {**amounts, "cpu": 2})]))
    Path("new.json").write_text(json.dumps(listed_pod("new", amounts)))
    words = ("simulate", *NODE, "--devices", f"{nic}=3@0", "--pods-on-node", "on-node.json")
    for state in (), STATE:
        ended = run(*words, *state, "new.json")
        assert ended.code == 1
        assert "2 held by containers, 1 free" in ended.out


def test_unknown_devices_of_pods_on_the_node_are_named(run: Command) -> None:
    nic = "vendor.example/nic"
    Path("on-node.json").write_text(
        listing([listed_pod("old", {"cpu": 2, "memory": "1Gi", nic: 1})])
    )
    said = f"devices unknown, so not evaluated: {nic} of 1 pod; add --devices {nic}=COUNT@NODES"
    ended = run("simulate", *NODE, *STATE, "--pods-on-node", "on-node.json", "new.json")
    assert ended.out.startswith("~ 1 pod on the node, devices unknown; 1 pod admitted")
    assert f"~ state\n  {said}" in ended.out
    words = (*UPGRADE, "--config", "kubelet.yaml", "--pods", "on-node.json")
    for state in (), STATE:
        ended = run(*words, *state)
        assert ended.code == 1
        assert ended.out.startswith("~ The kubelet of 1.36 starts")
        assert f"without {nic}" in ended.out.splitlines()[0]
        assert f"  ~ {said}\n" in ended.out
    assert run(*words, "--devices", f"{nic}=1@0").code == 0


def test_upgrade_takes_devices_from_the_state(run: Command) -> None:
    nic = "vendor.example/nic"
    Path("on-node.json").write_text(
        listing([listed_pod("old", {"cpu": 2, "memory": "1Gi", nic: 1})])
    )
    held = {"PodUID": "uid-old", "ContainerName": "main", "ResourceName": nic}
    data = {
        "PodDeviceEntries": [{**held, "DeviceIDs": {"0": ["eth1"]}, "AllocResp": ""}],
        "RegisteredDevices": {nic: ["eth0", "eth1"]},
    }
    Path("state/device-plugins").mkdir()
    Path("state/device-plugins/kubelet_internal_checkpoint").write_bytes(sealed(data))
    ended = run(*UPGRADE, "--config", "kubelet.yaml", *STATE, "--pods", "on-node.json")
    assert f"✓ Pod/default/old/main: keeps CPUs 4-5, {nic} eth1" in ended.out


def test_pods_with_other_uids_than_the_state_are_assumed(run: Command) -> None:
    pod = listed_pod("old", {"cpu": 2, "memory": "1Gi"})
    pod["metadata"]["uid"] = "another"
    Path("on-node.json").write_text(listing([pod]))
    ended = run("simulate", *NODE, *STATE, "--pods-on-node", "on-node.json", "new.json")
    assert ended.out.startswith("~ 1 pod on the node, placement assumed; 1 pod admitted")
    assert "no uid in these files is that of a pod on the node: is the listing of" in ended.out


def test_a_reservation_that_the_product_may_add_is_no_error(run: Command) -> None:
    Path("node.yaml").write_text(
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
        "spec: {kubelet: {config: {cpuManagerPolicy: static}}}\n"
    )
    ended = run("config", "check", "node.yaml", "--machine", "laptop-4c8t")
    assert ended.code == 0
    assert "warning: cpuManagerPolicy: [cpumanager] unable to determine reserved" in ended.out
    assert "(EKS may set what is missing; if not, reserve CPU:" in ended.out
    ended = run(*UPGRADE, "--config", "node.yaml", "--pods", "on-node.json")
    assert ended.code == 1
    assert ended.out.startswith("~ The kubelet of 1.36 starts, and 1 pod keeps its resources")
    assert "Before the upgrade" not in ended.out
    assert "~ node.yaml:3: cpuManagerPolicy: [cpumanager] unable" in ended.out
    assert "EKS may set what is missing" in ended.out
    assert "To do" not in ended.out
    ended = run("simulate", *NODE[:2], "--config", "node.yaml", "new.json")
    assert ended.code == 1
    assert "Fix: cpuManagerPolicy: EKS may set what is missing" in ended.out


LSCPU = """\
CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE
  0    0      0    0 0:0:0:0          yes
  1    0      0    1 1:1:1:0          yes
  2    0      0    2 2:2:2:0          yes
"""


def test_an_assumption_about_one_of_several_nodes_can_be_typed_as_shown(run: Command) -> None:
    Path("a.txt").write_text(LSCPU)
    Path("big.json").write_text(json.dumps(listed_pod("big", {"cpu": 4, "memory": "1Gi"})))
    words = ("simulate", "--node", "a=a.txt", "--node", "b=laptop-4c8t", "new.json", "big.json")
    ended = run(*words, *NODE[2:])
    option = "--assume a:memory=SIZE"
    assert f"{option} (1 pod: Pod/default/new)\n" in ended.out
    assert f"({option}, the machine's total)" in ended.err
    assert "fits, memory unknown" in ended.out
    assert "Not evaluated" not in run(*words, *NODE[2:], "--assume", "a:memory=8Gi").out
    with Path("kubelet.yaml").open("a") as file:
        file.write("memoryManagerPolicy: Static\n")
    assert f"(add {option}" in run(*words, *NODE[2:]).err


def test_each_of_several_nodes_that_do_not_start_gets_its_fix(run: Command) -> None:
    Path("a.txt").write_text(LSCPU)
    Path("kubelet.yaml").write_text(KUBELET.replace('"0"', '"0,7"'))
    ended = run("simulate", "--node", "a=a.txt", "--node", "b=laptop-4c8t", *NODE[2:], "new.json")
    assert ended.code == 1
    assert "✗ a: the kubelet does not start\n  config: reserved-cpus: 0,7 is not" in ended.out
    assert "\n  Fix: reservedSystemCPUs: list only CPUs that are online\n" in ended.out


def test_upgrade_takes_a_number_of_replicas(run: Command) -> None:
    pod = json.loads(Path("new.json").read_text())["spec"]
    del pod["nodeName"]
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 90, "template": {"spec": pod}},
    }
    Path("web.json").write_text(json.dumps(workload))
    words = (*UPGRADE, "--config", "kubelet.yaml", "--pods", "web.json", "--replicas", "2")
    assert "and 2 pods keep their resources" in run(*words).out


def test_a_product_that_reserves_nothing_leaves_the_error(run: Command) -> None:
    Path("node.yaml").write_text(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"
        "nodeRegistration:\n  kubeletExtraArgs: [{name: cpu-manager-policy, value: static}]\n"
    )
    ended = run("config", "check", "node.yaml", "--machine", "laptop-4c8t")
    assert ended.code == 1
    assert ": error: cpuManagerPolicy:" in ended.out
    assert "(kubeadm may set what is missing; if not, reserve CPU:" in ended.out


def test_a_pod_that_a_restart_ends_has_a_reason(run: Command) -> None:
    Path("kubelet.yaml").write_text(
        KUBELET.replace('"0"', '"0-1"') + "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
    )
    Path("new.json").write_text(json.dumps(listed_pod("full", {"cpu": 6, "memory": "1Gi"})))
    ended = run("simulate", *NODE, "--kubernetes", "1.35", "new.json", "--restart")
    after = ended.out.partition("After a restart")[2]
    assert "SMTAlignmentError: " in after
    assert "the restarting kubelet refuses the pod, although the node has room for it once" in after
    assert "Hint: drain the node before its kubelet restarts." in after
    assert "--explain" not in after


ZONES = """\
apiVersion: topology.node.k8s.io/v1alpha2
kind: NodeResourceTopology
metadata: {name: b}
zones:
- name: node-0
  type: Node
  resources: [{name: cpu, capacity: 8, allocatable: 8, available: 4}]
- name: node-1
  type: Node
  resources:
  - {name: cpu, capacity: 8, allocatable: 8, available: 8}
  - {name: vendor.example/nic, capacity: 2, allocatable: 2, available: 2}
"""
NIC = "vendor.example/nic"


@pytest.fixture
def nic_pods(run: Command) -> Command:
    """Like `run`, with a NodeResourceTopology that lists devices, and a pod that requests one."""
    Path("nrt.yaml").write_text(ZONES)
    Path("kubelet.yaml").write_text(KUBELET.partition("reserved")[0] + "kubeReserved: {cpu: '1'}\n")
    pods = [listed_pod(name, {"cpu": 1, "memory": "1Gi", NIC: 1}) for name in ("x", "y")]
    Path("nics.json").write_text(listing(pods))
    return run


def test_devices_can_be_those_of_one_node_of_a_fleet(nic_pods: Command) -> None:
    nodes = ("--node", "a=laptop-4c8t", "--node", "b=nrt.yaml", "--config", "kubelet.yaml")
    ended = nic_pods("simulate", *nodes, "nics.json")
    option = f"--devices b:{NIC}=2@1"
    assert f"b: lists 2 {NIC}: add {option}\n" in ended.err
    words = option.split()
    ended = nic_pods("simulate", *nodes, *words, "nics.json", "--json")
    assert {one["node"] for one in json.loads(ended.out)["placements"]} == {"b"}
    assert f"lists 2 {NIC}" not in ended.err
    both = nic_pods("simulate", *nodes, *words, "--devices", f"{NIC}=1@0", "nics.json", "--json")
    assert [one["node"] for one in json.loads(both.out)["placements"]] == ["a", "b"]
    ended = nic_pods("simulate", *nodes, "--devices", f"c:{NIC}=1", "nics.json")
    assert ended.code == 2
    assert f"--devices c:{NIC}=1: no node 'c'; it has: a, b" in ended.err


def test_devices_that_are_given_are_not_asked_for(nic_pods: Command) -> None:
    words = ("simulate", "--machine", "nrt.yaml", "--config", "kubelet.yaml", "nics.json")
    assert f"lists 2 {NIC}: add --devices {NIC}=2@1\n" in nic_pods(*words).err
    assert f"lists 2 {NIC}" not in nic_pods(*words, "--devices", f"{NIC}=2@1").err
    ended = nic_pods(*words, "--devices", f"{NIC}=1@1")
    assert f"lists 2 {NIC}, but this answer is for 1" in ended.err


def test_pods_of_a_node_in_use_are_asked_for_as_the_command_takes_them(nic_pods: Command) -> None:
    node = ("--node", "b=nrt.yaml", "--config", "kubelet.yaml")
    for command in (
        ("simulate", *node, "new.json"),
        ("simulate", "--machine", "nrt.yaml", *node[2:], "new.json"),
    ):
        ended = nic_pods(*command)
        assert "for its pods, collect the node with `kubectl numaproof`" in ended.err
        assert "--pods-on-node" not in ended.err


def test_missing_pods_of_one_of_several_nodes_are_to_be_collected(
    run: Command, archive: str
) -> None:
    Path("state").rename(Path(archive) / "state")
    Path(archive, "configz.json").write_text(
        json.dumps({"kubeletconfig": {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}})
    )
    ended = run("simulate", "--node", f"a={archive}", "new.json", "--assume", "nodes=1")
    assert ended.code == 2
    assert "the files name 1 pod by uid; collect a again, with its pods" in ended.err


NODE_OBJECT = """\
kind: Node
status: {capacity: {cpu: 8, memory: 16Gi}, nodeInfo: {kubeletVersion: v1.33.4}}
"""


def test_a_node_with_another_release_than_the_answer_is_named(run: Command) -> None:
    Path("node.yaml").write_text(NODE_OBJECT)
    note = "node.yaml: its kubelet is v1.33.4, but this answer is for 1.37 (--kubernetes 1.33)"
    words = ("--config", "kubelet.yaml", "new.json")
    check = ("config", "check", "kubelet.yaml", "--machine", "node.yaml")
    for command in ("simulate", "--machine", "node.yaml", *words), check:
        assert note in run(*command).err
        for release in "1.33", "1.34":
            assert "its kubelet" not in run(*command, "--kubernetes", release).err
    note = note.removeprefix("node.yaml: ")
    assert note in run("simulate", "--node", "w7=node.yaml", *words).err
