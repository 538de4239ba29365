"""A real kubelet answers the protocol.

Give the path of a kubelet in NUMAPROOF_KUBELET_BINARY. The steps of a life are on one node; each
test has a node of its own.
"""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from builders.devices import NIC, device_resource
from builders.machines import discover_profile, regular
from builders.pods import container, guaranteed_resources, pod
from numaproof import fakesys
from numaproof.conformance.execution import kubelet_command
from numaproof.conformance.execution.implementation import handshake
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.kubelet.binary import Kubelet, identify
from numaproof.kubelet.trial import Trial
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator

BINARY = os.environ.get("NUMAPROOF_KUBELET_BINARY", "")

pytestmark = [
    pytest.mark.skipif(not BINARY, reason="needs a kubelet in NUMAPROOF_KUBELET_BINARY"),
    pytest.mark.usefixtures("namespaces_permitted"),
]

LAPTOP = "laptop-4c8t"
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
TWO = guaranteed_resources({"cpu": "2", "memory": "64Mi"})
FOUR = guaranteed_resources({"cpu": "4", "memory": "64Mi"})
MANY = guaranteed_resources({"cpu": "60", "memory": "64Mi"})
HALF = {"requests": {"cpu": "500m"}}


class Node:
    """A node whose kubelet is asked."""

    def __init__(self, program: Subprocess, tree: Path, state_dir: Path) -> None:
        self._program = program
        self._tree = tree
        self.state_dir = state_dir

    def call(self, operation: str, args: messages.Args | None = None) -> Any:
        """The answer to a call."""
        return self._program.call(operation, args or messages.NoArgs())

    def start(self, config: dict[str, Any] | None = None, **others: Any) -> Any:
        """The answer to a start on the laptop, with the static policy by default."""
        root = None if "machine" in others else str(self._tree)
        config = STATIC if config is None else config
        args = messages.StartArgs(config, str(self.state_dir), root=root, **others)
        return self.call("start", args)

    def admit(self, manifest: messages.Pod) -> Any:
        """The answer to an admission."""
        return self.call("admit", messages.AdmitArgs(manifest))

    def resize(self, manifest: messages.Pod) -> Any:
        """The answer to a resize."""
        return self.call("resize", messages.ResizeArgs(manifest))

    def remove(self, uid: str) -> Any:
        """The answer to a removal."""
        return self.call("remove", messages.RemoveArgs(uid))


@pytest.fixture(scope="module")
def kubelet() -> Kubelet:
    return identify(Path(BINARY))


@pytest.fixture(scope="module")
def program(kubelet: Kubelet) -> Iterator[Subprocess]:
    running = Subprocess(kubelet_command.command(str(kubelet.path), ("--v=2",)), 120)
    assert handshake(running, "tests").version == kubelet.version
    yield running
    running.close()
    assert running.leftover_processes == ()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laptop") / "tree"
    fakesys.write_directory(fakesys.build_tree(fakesys.load_profile(LAPTOP)), folder)
    return folder


@pytest.fixture
def node(program: Subprocess, tree: Path, tmp_path: Path) -> Node:
    return Node(program, tree, tmp_path)


def exclusive(state: messages.State) -> dict[str, int]:
    """By container: the number of its exclusive CPUs."""
    return {
        f"{uid}/{name}": len(has.exclusive)
        for uid, containers in state.pods.items()
        for name, has in containers.items()
    }


def test_pods_come_and_go(node: Node) -> None:
    started = node.start()
    assert started.cpus == messages.StartedCPUs(CPUSet.parse("0-7"), CPUSet.parse("1-7"))
    web = node.admit(pod("uid-web", [container("app", TWO), container("log", TWO)]))
    assert isinstance(web, messages.Admitted)
    assert [len(one.exclusive) for one in web.containers.values()] == [2, 2]
    assert isinstance(node.admit(pod("uid-log", [container("app", HALF)])), messages.Admitted)
    big = node.admit(pod("uid-big", [container("app", MANY)]))
    assert isinstance(big, messages.AdmissionRefused)
    assert big.reason == "UnexpectedAdmissionError"
    assert "requested=60" in big.message
    assert big.pod is None
    state = node.call("state")
    assert exclusive(state) == {"uid-web/app": 2, "uid-web/log": 2, "uid-log/app": 0}
    assert state.pods["uid-web"] == web.containers
    assert state.pods["uid-log"]["app"].cpus == state.shared
    assert state.files["cpu_manager_state"]
    assert node.remove("uid-web") == messages.Done()
    assert node.remove("uid-none") == messages.Done()
    assert node.call("state").shared == CPUSet.parse("0-7")
    again = node.admit(pod("uid-web", [container("app", TWO)]))
    assert isinstance(again, messages.Admitted)


def test_what_is_reconciled_is_told_once(node: Node) -> None:
    node.start()
    node.admit(pod("uid-web", [container("app", TWO)]))
    node.admit(pod("uid-log", [container("app", HALF)], [container("prepare", HALF)]))
    first = node.call("reconcile")
    state = node.call("state")
    told = {(one.uid, one.container): one.cpus for one in first.updates}
    assert told == {
        ("uid-web", "app"): state.pods["uid-web"]["app"].exclusive,
        ("uid-log", "prepare"): state.shared,
        ("uid-log", "app"): state.shared,
    }
    assert node.call("reconcile") == messages.Reconciled(())
    node.admit(pod("uid-next", [container("app", TWO)]))
    updates = node.call("reconcile").updates
    assert {one.uid for one in updates} == {"uid-log", "uid-next"}
    node.remove("uid-next")
    node.admit(pod("uid-next", [container("app", TWO)]))
    assert "uid-next" in {one.uid for one in node.call("reconcile").updates}


def test_a_resize_is_accepted_or_leaves_everything_as_it_was(node: Node, kubelet: Kubelet) -> None:
    if kubelet.minor < (1, 33):
        pytest.skip("pods can't be resized in this release")
    node.start()
    node.admit(pod("uid-web", [container("app", TWO)]))
    node.admit(pod("uid-log", [container("app", HALF)]))
    before = node.call("state")
    refusal = node.resize(pod("uid-web", [container("app", MANY)]))
    assert isinstance(refusal, messages.AdmissionRefused)
    assert refusal.reason == "Infeasible"
    burstable = pod("uid-log", [container("app", {"requests": {"cpu": "600m"}})])
    assert node.resize(burstable) == messages.Admitted(before.pods["uid-log"])
    assert node.resize(burstable) == messages.Admitted(before.pods["uid-log"])
    assert node.call("state") == before
    told = {(one.uid, one.cpus) for one in node.call("reconcile").updates}
    assert told == {("uid-web", before.pods["uid-web"]["app"].cpus), ("uid-log", before.shared)}


def test_what_a_kubelet_without_cgroups_can_not_resize(node: Node, kubelet: Kubelet) -> None:
    if kubelet.minor < (1, 33):
        pytest.skip("pods can't be resized in this release")
    node.start()
    assert isinstance(node.resize(pod("uid-a", [container("app", HALF)])), messages.Fault)
    node.admit(pod("uid-a", [container("app", HALF)], [container("prepare", HALF)]))
    more = container("app", {"requests": {"cpu": "600m"}})
    for one in (
        pod("uid-a", [more], [container("prepare", HALF)]),
        pod("uid-a", [more], resources={"requests": {"cpu": "2"}}),
    ):
        assert isinstance(node.resize(one), messages.Unsupported)
    assert isinstance(node.call("state"), messages.State)


def test_a_restart_keeps_what_pods_have(node: Node) -> None:
    stays, goes = (pod(uid, [container("app", TWO)]) for uid in ("uid-stays", "uid-goes"))
    node.start()
    for one in (goes, stays):
        node.admit(one)
    before = node.call("state").pods["uid-stays"]
    assert isinstance(node.start(pods=(stays,)), messages.Started)
    after = node.call("state")
    assert after.pods == {"uid-stays": before}
    assert after.shared == CPUSet.parse("0-7") - before["app"].exclusive
    assert node.admit(stays) == messages.Admitted(before)
    assert isinstance(node.admit(stays), messages.Unsupported)


def test_the_pool_between_two_admissions_of_a_start_is_unknown(node: Node) -> None:
    """A start admits all pods at once, and the pool afterwards is all that can be seen."""
    first, last = (pod(uid, [container("app", HALF)]) for uid in ("uid-first", "uid-last"))
    web = pod("uid-web", [container("app", TWO)])
    node.start({"cpuManagerPolicy": "none"})
    for one in (first, web, last):
        node.admit(one)
    for name in node.state_dir.glob("cpu_manager_state"):
        name.unlink()
    assert isinstance(node.start(pods=(first, web, last)), messages.Started)
    assert isinstance(node.admit(first), messages.Unsupported)
    exclusive_cpus = node.admit(web).containers["app"].exclusive
    assert node.admit(last).containers["app"].cpus == CPUSet.parse("0-7") - exclusive_cpus


def test_running_pods_survive_a_restart_of_the_kubelet(node: Node) -> None:
    web = pod("uid-web", [container("app", {"limits": {"cpu": "2", "memory": "64Mi", NIC: "1"}})])
    late = pod("uid-late", [container("app", TWO)])
    node.start(devices=(device_resource(a=None),))
    before = node.admit(web)
    assert node.admit(pod("uid-goes", [container("app", FOUR)])).containers
    # The plugin does not come back, and what the pod that left had is free too late.
    node.start(pods=(web, late), running={"uid-web": ("app",)})
    assert node.admit(web) == before
    assert node.admit(late).reason == "UnexpectedAdmissionError"
    assert node.call("state").pods == {"uid-web": before.containers}
    told = node.call("reconcile").updates
    assert [(one.uid, one.cpus) for one in told] == [
        ("uid-web", before.containers["app"].exclusive)
    ]


def test_static_pods_come_from_files(node: Node) -> None:
    static = pod("uid-static", [container("app", TWO)])
    static["metadata"]["annotations"] = {messages.SOURCE: "file"}
    web = pod("uid-web", [container("app", TWO)])
    node.start()
    held = node.admit(static).containers
    assert len(held["app"].exclusive) == 2
    node.admit(web)
    assert node.call("state").pods["uid-static"] == held
    assert node.resize(static) == messages.Unsupported("a resize of a static pod")
    running = dict.fromkeys(("uid-static", "uid-web"), ("app",))
    node.start(pods=(web, static), running=running)
    assert node.call("state").pods["uid-static"] == held
    for name in node.state_dir.glob("cpu_manager_state"):
        name.unlink()
    # After a reboot, static pods come first.
    node.start(pods=(web, static))
    first, second = (node.admit(one).containers["app"].exclusive for one in (static, web))
    assert min(first) < min(second)
    assert node.remove("uid-static") == messages.Done()
    assert exclusive(node.call("state")) == {"uid-web/app": 2}


def test_containers_end_by_themselves(node: Node) -> None:
    job = pod("uid-job", [container("one", TWO), container("two", TWO)], [container("load", TWO)])
    job["spec"]["restartPolicy"] = "Never"
    node.start()
    held = node.admit(job).containers

    def end(uid: str, name: str) -> Any:
        return node.call("end", messages.EndArgs(uid, name))

    for name in ("load", "two"):
        assert end("uid-job", name) == messages.Done()
        assert node.call("state").pods == {"uid-job": held}
    assert [one.container for one in node.call("reconcile").updates] == ["one"]
    assert end("uid-job", "one") == messages.Done()
    assert node.call("state").shared == CPUSet.parse("0-7")
    node.admit(pod("uid-web", [container("app", TWO)]))
    assert isinstance(end("uid-web", "app"), messages.Unsupported)


def test_the_memory_manager_pins_memory(node: Node) -> None:
    config = {
        "memoryManagerPolicy": "Static",
        "topologyManagerPolicy": "single-numa-node",
        "kubeReserved": {"memory": "100Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "200Mi"}}],
    }
    started = node.start(config, machine=regular(2, memory=4 << 30))
    assert {(tuple(one.numa), one.type) for one in started.memory} >= {
        ((0,), "memory"),
        ((1,), "memory"),
    }
    admitted = node.admit(pod("uid-a", [container("app", TWO)]))
    (block,) = admitted.containers["app"].memory
    assert (block.type, block.size) == ("memory", 64 << 20)
    assert admitted.containers["app"].affinity == messages.Hint(block.numa, preferred=True)


def test_devices_are_reported_and_allocated(node: Node) -> None:
    reports = (device_resource(d0=[0], d1=[0], d2=[0], unhealthy="d2"),)
    node.start({}, devices=reports)
    wants = {"limits": {NIC: 1, "memory": "1Gi"}}
    first = node.admit(pod("uid-a", [container("app", wants)]))
    second = node.admit(pod("uid-b", [container("app", wants)]))
    given = [one.containers["app"].devices[NIC] for one in (first, second)]
    assert sorted(given) == [("d0",), ("d1",)]
    third = node.admit(pod("uid-c", [container("app", wants)]))
    assert isinstance(third, messages.AdmissionRefused)
    reports = (device_resource(d0=[0], d1=[0], d2=[0]),)
    assert node.call("devices", messages.DevicesArgs(reports)) == messages.Done()
    fourth = node.admit(pod("uid-d", [container("app", wants)]))
    assert fourth.containers["app"].devices == {NIC: ("d2",)}


def test_a_plugin_disappears_and_returns(node: Node) -> None:
    report = device_resource(d0=[0])
    gone = device_resource(d0=[0], unhealthy="d0")
    wants = {"limits": {NIC: 1, "memory": "1Gi"}}
    node.start({}, devices=(report,))
    for _ in range(2):
        assert node.call("devices", messages.DevicesArgs((gone,))) == messages.Done()
        assert not list(node.state_dir.glob("*/plugin*.sock"))
        refused = node.admit(pod("uid-a", [container("app", wants)]))
        assert isinstance(refused, messages.AdmissionRefused)
        assert node.call("devices", messages.DevicesArgs((report,))) == messages.Done()
        assert list(node.state_dir.glob("plugins_registry/plugin*.sock"))
    admitted = node.admit(pod("uid-b", [container("app", wants)]))
    assert admitted.containers["app"].devices == {NIC: ("d0",)}
    assert isinstance(node.call("state"), messages.State)


def test_a_plugin_whose_devices_are_in_use_stays(node: Node) -> None:
    report = device_resource(d0=[0])
    node.start({}, devices=(report,))
    node.admit(pod("uid-a", [container("app", {"limits": {NIC: 1, "memory": "1Gi"}})]))
    gone = device_resource(d0=[0], unhealthy="d0")
    assert node.call("devices", messages.DevicesArgs((gone,))) == messages.Done()
    assert list((node.state_dir / "device-plugins").glob("plugin*.sock"))


def test_a_pod_that_came_before_its_plugin_takes_nothing_from_others(node: Node) -> None:
    wants = {"limits": {NIC: 1, "memory": "1Gi"}}
    node.start({})
    early = node.admit(pod("uid-a", [container("app", wants)]))
    assert early.containers["app"].devices is None
    assert node.call("devices", messages.DevicesArgs((device_resource(d0=[0]),))) == messages.Done()
    late = node.admit(pod("uid-b", [container("app", wants)]))
    assert late.containers["app"].devices == {NIC: ("d0",)}


def test_a_plugin_that_fails_gives_no_devices(node: Node) -> None:
    report = device_resource(d0=[0])
    node.start({}, devices=(replace(report, fails=True),))
    wants = {"limits": {NIC: 1, "memory": "1Gi"}}
    refused = node.admit(pod("uid-a", [container("app", wants)]))
    assert isinstance(refused, messages.AdmissionRefused)
    assert messages.PLUGIN_FAILURE in refused.message
    assert node.call("devices", messages.DevicesArgs((report,))) == messages.Done()
    admitted = node.admit(pod("uid-b", [container("app", wants)]))
    assert admitted.containers["app"].devices == {NIC: ("d0",)}


def test_a_refused_pod_and_quotas_are_told_if_they_are_wanted(node: Node) -> None:
    node.start(tell=("refused-pods", "quota"))
    admitted = node.admit(pod("uid-a", [container("app", TWO)], [container("prepare", TWO)]))
    assert {name for name, has in admitted.containers.items() if has.quota is None} == set()
    answer = node.admit(pod("uid-b", [container("app", MANY)]))
    assert (answer.pod.phase, answer.pod.reason) == ("Failed", answer.reason)
    assert answer.pod.message.endswith(answer.message)
    assert answer.pod.event


def test_quotas_of_pods_whose_init_containers_hold_memory_are_unsupported(node: Node) -> None:
    reserved = {
        "memoryManagerPolicy": "Static",
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    }
    node.start(STATIC | reserved, tell=("quota",))
    answer = node.admit(pod("uid-a", [container("app", TWO)], [container("prepare", TWO)]))
    what = "the quota of a pod whose init containers hold memory"
    assert answer == messages.Unsupported(what)
    assert node.call("state").pods == {}


def test_a_node_without_room_refuses_pods_unless_they_are_critical(node: Node) -> None:
    node.start(STATIC | {"maxPods": 2}, check_node=True)
    node.admit(pod("uid-a", [container("app", TWO)]))
    node.admit(pod("uid-b", [container("app", {"requests": {"cpu": "5"}})]))
    third = pod("uid-c", [container("app", HALF)])
    assert node.admit(third).reason == "OutOfpods"
    assert node.call("reconcile") == messages.Unsupported(
        "reconcile a node that has no room for another pod"
    )
    critical = pod("uid-d", [container("app", HALF)], priorityClassName="system-node-critical")
    reason, message = "Preempting", "Preempted in order to admit critical pod"
    assert node.admit(critical).preempted == (messages.PreemptedPod("uid-b", reason, message),)
    assert exclusive(node.call("state")) == {"uid-a/app": 2, "uid-d/app": 0}
    node.remove("uid-d")
    assert node.admit(third).containers["app"].exclusive == CPUSet()
    assert node.remove("uid-a") == messages.Done()
    last = node.admit(pod("uid-e", [container("app", {"requests": {"cpu": "6501m"}})]))
    assert last.message.endswith("cpu, requested: 6501, used: 500, capacity: 7000")


@pytest.mark.parametrize(
    ("config", "stage", "words"),
    [
        ({"cpuManagerPolicy": "static"}, "cpu", "unable to determine reserved CPU resources"),
        ({"memoryManagerPolicy": "Static"}, "memory", 'total amount "0" of type "memory"'),
        ({"topologyManagerPolicy": "any"}, "config", 'topologyManagerPolicy) "any" must be one of'),
        (
            {
                "topologyManagerPolicy": "restricted",
                "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "maybe"},
            },
            "topology",
            'bad value for option "prefer-closest-numa-nodes"',
        ),
    ],
)
def test_a_start_is_refused_with_the_reason(
    config: dict[str, Any], stage: str, words: str, node: Node
) -> None:
    answer = node.start(config)
    assert isinstance(answer, messages.StartRefused)
    assert answer.stage == stage
    assert words in answer.message.replace(" (--topology-manager-policy)", ")")


def test_a_checkpoint_that_is_broken_is_named_where_it_is(node: Node) -> None:
    (node.state_dir / "cpu_manager_state").write_text("{")
    answer = node.start()
    assert (type(answer), answer.stage) == (messages.StartRefused, "cpu")
    assert f'"{node.state_dir}/cpu_manager_state"' in answer.message


def test_an_unknown_feature_gate_is_refused_or_a_fault(node: Node) -> None:
    """Later releases panic."""
    answer = node.start({"featureGates": {"NoSuchGate": True}})
    assert isinstance(answer, messages.StartRefused | messages.Fault)
    assert "unrecognized feature gate: NoSuchGate" in answer.message
    assert isinstance(answer, messages.StartRefused) or answer.message.startswith("panic: ")
    assert isinstance(node.start(), messages.Started)


def test_the_configuration_in_force_is_told_if_it_is_wanted(node: Node) -> None:
    assert node.start().config is None
    config = node.start(tell=("effective-configuration",)).config
    assert config["cpuManagerPolicy"] == "static"
    assert config["reservedSystemCPUs"] == "0"
    assert config["memoryManagerPolicy"] == "None"
    assert config["cpuManagerReconcilePeriod"] == "10s"


def test_the_machine_is_discovered(node: Node, tree: Path) -> None:
    found = node.call("discover", messages.DiscoverArgs(str(tree)))
    assert isinstance(found, MachineInfo)
    assert found == discover_profile(LAPTOP)


def test_what_cannot_be_asked_does_no_harm(node: Node) -> None:
    node.start()
    merge = node.call("merge", messages.MergeArgs((0,), "none", ()))
    assert merge == messages.Unsupported("operation merge")
    assert node.call("state").pods == {}


def test_a_kubelet_passes_its_trial(kubelet: Kubelet, tmp_path: Path) -> None:
    check = Trial(kubelet, (), 120, "tests").check(tmp_path)
    assert check.fix == "", check.state
    assert check.state.startswith(f"started on {LAPTOP}, admitted and removed a pod in ")


def running_kubelets(process: int) -> Iterator[int]:
    """The ids of the kubelets among the descendants of a process."""
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            if Path(f"/proc/{child}/exe").resolve() == Path(BINARY).resolve():
                yield child
            yield from running_kubelets(child)


def test_a_kubelet_that_dies_is_a_fault(node: Node) -> None:
    node.start()
    (process,) = running_kubelets(os.getpid())
    descriptor = os.pidfd_open(process)
    os.kill(process, signal.SIGKILL)
    assert select.select([descriptor], [], [], 60)[0]
    os.close(descriptor)
    answer = node.admit(pod("uid-a", [container("app", TWO)]))
    assert isinstance(answer, messages.Fault)
    assert answer.message == "it ended with signal SIGKILL"
    assert answer.trace
    assert isinstance(node.start(), messages.Started)


def test_metrics_show_what_is_exclusive(node: Node, kubelet: Kubelet) -> None:
    node.start(tell=("metrics",))
    node.admit(pod("uid-web", [container("app", TWO), container("log", HALF)]))
    node.admit(pod("uid-job", [container("app", TWO)]))
    big = node.admit(pod("uid-big", [container("app", MANY)]))
    assert isinstance(big, messages.AdmissionRefused)
    metrics = node.call("state").metrics
    assert metrics["cpu_manager_pinning_requests_total"] == 2
    assert metrics["cpu_manager_pinning_errors_total"] == 1
    assert metrics["topology_manager_admission_requests_total"] == 3
    if kubelet.minor >= (1, 32):
        assert metrics["cpu_manager_exclusive_cpu_allocation_count"] == 2
        assert metrics["cpu_manager_shared_pool_size_millicores"] == 5000
