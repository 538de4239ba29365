"""A node that starts from its state, and what-ifs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from builders import machines
from builders.node_states import listed_pod, listing, write_state
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.simulation import device_checkpoint, devices, pods, state_files
from numaproof.simulation.admission import Question
from numaproof.simulation.node_state import NodeState, running_pods
from numaproof.simulation.shared_pool import SharedPool
from numaproof.simulation.what_ifs import (
    Action,
    NodeSimulation,
    PodExistsError,
    UnknownPodError,
    Wishes,
    find_pods,
    simulate,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NIC = "vendor.example/nic"
CONFIG: messages.KubeletConfiguration = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0,24",
    "memoryManagerPolicy": "Static",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    "topologyManagerPolicy": "single-numa-node",
}
DB = listed_pod("db", {"cpu": "10", "memory": "40Gi"}, age=9, priority=100)
CACHE = listed_pod("cache", {"cpu": "8", "memory": "8Gi"}, age=8)
PACKETS = listed_pod("packets", {"cpu": "6", "memory": "4Gi", NIC: "1"}, age=7)
BATCH = listed_pod("batch", {"cpu": "6", "memory": "4Gi"}, age=6, priority=-10)
WEB = listed_pod("web", {"cpu": "1500m", "memory": "1Gi"}, age=5, shared=True)
ON_NODE = (DB, CACHE, PACKETS, BATCH, WEB)


def question(*device_flags: str) -> Question:
    machine = machines.discover_profile("epyc-7402p-nps2")
    return Question(machine, CONFIG, "1.35", devices=devices.read(device_flags, machine))


def state_of(folder: Path, on_node: Sequence[dict[str, Any]]) -> NodeState:
    """Reads the state in a folder, with these pods on the node."""
    read = pods.read([("on-node.json", listing(on_node))], pods.PodOptions(running=True))
    return NodeState(state_files.load_files(folder), running_pods(read), str(folder))


@pytest.fixture
def node(tmp_path: Path) -> Question:
    """A node with the pods in `ON_NODE`, which its state records."""
    asked = question(f"{NIC}=3@1")
    write_state(tmp_path / "state", asked, ON_NODE)
    return with_state(asked, tmp_path, ON_NODE)


def with_state(asked: Question, tmp_path: Path, on_node: Sequence[dict[str, Any]]) -> Question:
    state = state_of(tmp_path / "state", on_node)
    return Question(asked.machine, asked.config, "1.35", devices=asked.devices, state=state)


def arriving(name: str, **amounts: str) -> tuple[pods.DescribedPod, ...]:
    listed = listed_pod(name, amounts)
    return pods.read([("pods.json", json.dumps(listed))]).pods


def play(asked: Question, tmp_path: Path, *args: Any, **options: Any) -> NodeSimulation:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return simulate(asked, *args, scratch, **options)


def test_pods_on_the_node_keep_what_the_state_records(node: Question, tmp_path: Path) -> None:
    found = play(node, tmp_path, ())
    held = {one.pod: (one.containers or {})["main"] for one in found.readmissions}
    assert str(held["Pod/default/db"].exclusive) == "1-5,25-29"
    assert held["Pod/default/packets"].devices == {NIC: ("nic-0",)}
    assert not held["Pod/default/web"].exclusive
    assert found.differences == ()
    assert found.admitted


def test_who_holds_what_is_listed_by_numa_node(node: Question, tmp_path: Path) -> None:
    first, second = play(node, tmp_path, ()).holdings
    assert first.cpus is not None
    assert second.cpus is not None
    assert [(one.pod, str(one.cpus)) for one in first.cpus.exclusive] == [
        ("Pod/default/db", "1-5,25-29"),
        ("Pod/default/cache", "6-9,30-33"),
    ]
    assert str(first.cpus.reserved) == "0,24"
    assert str(second.cpus.free) == "18-23,42-47"
    (memory,) = second.memory
    assert [(one.pod, one.size >> 30) for one in memory.holders] == [
        ("Pod/default/packets", 4),
        ("Pod/default/batch", 4),
    ]
    (nics,) = second.devices
    assert nics.free == ("nic-1", "nic-2")
    assert [(one.pod, one.ids) for one in nics.holders] == [("Pod/default/packets", ("nic-0",))]


def test_disagreements_with_the_pods_on_the_node_are_named(tmp_path: Path) -> None:
    asked = question(f"{NIC}=3@1")
    write_state(tmp_path / "state", asked, (DB, PACKETS, CACHE))
    without_packets = (DB, {**CACHE, "spec": BATCH["spec"]}, BATCH)
    found = play(with_state(asked, tmp_path, without_packets), tmp_path, ())
    told = [(one.file, one.pod, one.problem) for one in found.differences]
    lost = "pod uid-packets"
    assert told == [
        (state_files.CPU, lost, "not on the node"),
        (state_files.MEMORY, lost, "not on the node"),
        (state_files.DEVICES, lost, "not on the node"),
        (state_files.CPU, "Pod/default/batch", "not recorded"),
        (state_files.MEMORY, "Pod/default/batch", "not recorded"),
    ]
    assert [one.pod for one in found.readmissions if one.refusal] == ["Pod/default/cache"]
    assert not found.admitted


def test_the_pods_that_would_have_to_go_have_no_higher_priority(
    node: Question, tmp_path: Path
) -> None:
    solver = arriving("solver", cpu="20", memory="8Gi")
    wishes = Wishes(make_room={"Pod/default/solver"})
    (result,) = play(node, tmp_path, solver, wishes=wishes).pods
    assert result.removals is not None
    assert [one.pod for one in result.removals.pods] == [
        "Pod/default/packets",
        "Pod/default/batch",
    ]
    assert result.removals.higher == 0
    assert result.removals.smallest


def test_what_ifs_follow_each_other(node: Question, tmp_path: Path) -> None:
    solver = arriving("solver", cpu="20", memory="8Gi")
    actions = (
        Action("remove", "batch"),
        Action("then", "pods.yaml", solver),
        Action("remove", "default/packets"),
        Action("then", "pods.yaml", solver),
        Action("restart"),
    )
    found = play(node, tmp_path, solver, actions=actions)
    assert found.pods[0].refusal is not None
    assert [[one.refusal is None for one in step.pods] for step in found.steps] == [
        [],
        [False],
        [],
        [True],
        [True] * 4,
    ]
    assert found.steps[0].removed_pods == ("Pod/default/batch",)
    before, after = found.steps[3].pods[0], found.steps[4].pods[-1]
    assert before == after
    assert found.steps[3].holdings == found.steps[4].holdings


def test_a_shrinking_shared_pool_is_reported(node: Question, tmp_path: Path) -> None:
    found = play(node, tmp_path, arriving("mid", cpu="8", memory="8Gi"))
    assert found.pool is not None
    assert (len(found.pool.before), len(found.pool.after)) == (18, 10)
    assert [(one.pod, one.request) for one in found.pool.pods] == [("Pod/default/web", 1500)]
    assert not found.pool.is_short


def test_a_pool_smaller_than_its_containers_requests_is_short() -> None:
    assert SharedPool(CPUSet((0, 1)), CPUSet((0,)), 1500, ()).is_short
    assert not SharedPool(CPUSet((0, 1, 2)), CPUSet((0, 1)), 1500, ()).is_short


def test_a_state_that_the_kubelet_refuses_names_the_file(tmp_path: Path) -> None:
    asked = question()
    write_state(tmp_path / "state", asked, (DB,))
    state = with_state(asked, tmp_path, (DB,)).state
    other = {**CONFIG, "cpuManagerPolicy": "none"}
    found = play(Question(asked.machine, other, "1.35", state=state), tmp_path, ())
    assert isinstance(found.start, messages.StartRefused)
    assert f'"{tmp_path}/state/cpu_manager_state"' in found.start.message


def test_a_pod_cannot_arrive_twice(node: Question, tmp_path: Path) -> None:
    with pytest.raises(PodExistsError, match="Pod/default/db is on the node"):
        play(node, tmp_path, arriving("db", cpu="1", memory="1Gi"))


def test_pods_are_found_by_the_end_of_their_name() -> None:
    names = ("Pod/a/db", "Deployment/b/web#1", "Deployment/b/web#2")
    assert find_pods("db", names) == ("Pod/a/db",)
    assert find_pods("b/web#2", names) == ("Deployment/b/web#2",)
    assert find_pods("web", names) == names[1:]
    with pytest.raises(UnknownPodError, match="no pod 'wep'; did you mean web"):
        find_pods("wep", names)


def test_ended_containers_do_not_run() -> None:
    init = [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}]
    spec = {**DB["spec"], "initContainers": init}
    ended = {"name": "main", "state": {"terminated": {"exitCode": 0}}}
    listed = {**DB, "spec": spec, "status": {"phase": "Running", "containerStatuses": [ended]}}
    read = pods.read([("on-node.json", listing((listed,)))], pods.PodOptions(running=True))
    (pod,) = running_pods(read)
    assert pod.running == ("proxy",)


def test_declared_devices_get_the_recorded_ids(node: Question) -> None:
    assert node.state is not None
    recorded = device_checkpoint.recorded_devices(node.state.files[state_files.DEVICES], "1.35")
    nodes = (NUMASet((0,)), NUMASet((1,)), NUMASet((1,)))
    declared = tuple(messages.Device(f"d{number}", near) for number, near in enumerate(nodes))
    (renamed,), notes = devices.as_recorded((messages.DeviceResource(NIC, declared),), recorded)
    assert [(one.id, list(one.numa or ())) for one in renamed.ids] == [
        ("nic-0", [1]),
        ("nic-1", [0]),
        ("nic-2", [1]),
    ]
    assert notes == ()


def test_free_devices_without_a_declaration_have_no_node(node: Question) -> None:
    assert node.state is not None
    recorded = device_checkpoint.recorded_devices(node.state.files[state_files.DEVICES], "1.35")
    (found,), (note,) = devices.as_recorded((), recorded)
    assert [(one.id, one.numa and list(one.numa)) for one in found.ids] == [
        ("nic-0", [1]),
        ("nic-1", None),
        ("nic-2", None),
    ]
    assert "2 free devices" in note


def test_a_held_device_must_be_declared(node: Question) -> None:
    assert node.state is not None
    recorded = device_checkpoint.recorded_devices(node.state.files[state_files.DEVICES], "1.35")
    with pytest.raises(devices.DevicesError, match="a container holds nic-0, which is near node 1"):
        devices.as_recorded(
            (messages.DeviceResource(NIC, (messages.Device("x", None),)),), recorded
        )
    with pytest.raises(devices.DevicesError, match="nic-0, which is not declared"):
        devices.as_recorded(
            (messages.DeviceResource(NIC, (messages.Device("nic-2", None),)),), recorded
        )


@pytest.mark.parametrize(("source", "is_critical"), [("file", True), ("api", False)])
def test_a_static_pod_makes_room_for_itself(
    source: str, *, is_critical: bool, tmp_path: Path
) -> None:
    full = listed_pod("full", {"cpu": "46", "memory": "1Gi"}, age=1, shared=True)
    static = listed_pod("static", {"cpu": "2", "memory": "1Gi"}, shared=True)
    static["metadata"]["annotations"] = {messages.SOURCE: source}
    read = pods.read([("pods.json", listing((full, static)))])
    (_, last) = simulate(question(), read.pods, tmp_path).pods
    assert last.preempted == (("Pod/default/full",) if is_critical else ())
