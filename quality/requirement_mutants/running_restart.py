"""Mutants of restarts while containers run, and of containers that end by themselves."""

from __future__ import annotations

from typing import Any

from numaproof.protocol import messages
from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.node import StartedNode
from quality.seeding import SubjectBugs

seeds = SubjectBugs("running")


# Devices of running containers


@seeds("NODE-RESTART-003").around(DeviceManager, "runs", lambda _: False)
def running_pods_need_healthy_devices() -> None:
    """Checks devices after a restart of the kubelet as after a reboot."""


@seeds("NODE-RESTART-003").around(DeviceManager, "runs")
def running_pods_need_their_plugin(rule: Any, self: DeviceManager) -> Any:
    """Checks the devices of running containers until their plugin has registered again."""
    return rule() and any(devices.nodes for devices in self.state.lists.values())


@seeds("NODE-RESTART-003").around(DeviceManager, "runs")
def running_pods_need_devices_that_are_not_unhealthy(rule: Any, self: DeviceManager) -> Any:
    """Rejects running pods whose devices are reported as unhealthy."""
    lists = self.state.lists.values()
    return rule() and not any(devices.nodes.keys() - devices.healthy for devices in lists)


@seeds("NODE-RESTART-003").around(DeviceManager, "runs")
def running_pods_need_devices_that_are_reported(rule: Any, self: DeviceManager, pod: Any) -> Any:
    """Rejects running pods whose devices have disappeared from a plugin's report."""
    return rule() and not any(
        devices.nodes and not self.state.of_pod(pod.uid, resource) <= devices.nodes.keys()
        for resource, devices in self.state.lists.items()
    )


@seeds("NODE-RESTART-003").around(DeviceManager, "runs")
def every_pod_is_taken_for_running(_rule: Any, self: DeviceManager) -> Any:
    """Admits pods that were bound while the kubelet was down without devices."""
    return bool(self.running)


@seeds("NODE-RESTART-006").around(DeviceManager, "runs")
def completed_init_containers_need_their_devices(rule: Any, container: Any) -> Any:
    """Checks the devices of completed init containers."""
    return rule() and not container.runs_to_completion


# The batch of pods


@seeds("NODE-RESTART-004").around(StartedNode, "resume")
def everything_is_released_before_pods_are_admitted(rule: Any, self: StartedNode) -> Any:
    """Releases the resources of pods that left before it admits others."""
    self.remove_stale_state("now")
    return rule()


@seeds("NODE-RESTART-004").around(StartedNode, "resume")
def cpus_are_released_before_pods_are_admitted(rule: Any, self: StartedNode) -> Any:
    """Releases the CPUs of pods that left before it admits others."""
    self.remove_stale_state("now", [self.cpus])
    return rule()


@seeds("NODE-RESTART-004").around(StartedNode, "resume")
def memory_is_released_before_pods_are_admitted(rule: Any, self: StartedNode) -> Any:
    """Releases the memory of pods that left before it admits others."""
    self.remove_stale_state("now", [self.memory])
    return rule()


@seeds("NODE-RESTART-004").around(StartedNode, "resume")
def devices_are_released_before_pods_are_admitted(rule: Any, self: StartedNode) -> Any:
    """Releases the devices of pods that left before it admits others."""
    self.remove_stale_state("now", [self.device_manager])
    return rule()


@seeds("NODE-RESTART-005").around(StartedNode, "resume")
def pods_are_admitted_newest_first(rule: Any, self: StartedNode) -> Any:
    """Admits the pods that it finds in the reverse order of their creation."""
    self.pods = dict(reversed([*self.pods.items()]))
    return rule()


@seeds("NODE-RESTART-005").around(StartedNode, "resume")
def pods_are_admitted_by_name(rule: Any, self: StartedNode) -> Any:
    """Admits the pods that it finds in the order of their names."""
    self.pods = dict(sorted(self.pods.items()))
    return rule()


# Containers that end


@seeds("NODE-END-001").after(StartedNode, "end")
def completed_init_containers_free_their_cpus(
    answer: Any, self: StartedNode, args: messages.EndArgs
) -> Any:
    """Releases the CPUs of a container as soon as it has ended."""
    self.cpus.end(args.uid, args.container)
    return answer


@seeds("NODE-END-001").after(StartedNode, "end")
def completed_init_containers_free_their_devices(
    answer: Any, self: StartedNode, args: messages.EndArgs
) -> Any:
    """Releases the devices of a container as soon as it has ended."""
    self.device_manager.release(args.uid, args.container)
    return answer


@seeds("NODE-END-001").around(StartedNode, "end")
def completed_init_containers_keep_their_memory(
    rule: Any, self: StartedNode, args: messages.EndArgs
) -> Any:
    """Keeps the memory of completed init containers until their pod leaves."""
    before = self.memory.state
    answer = rule()
    if args.uid in self.pods:
        self.memory.state = before
    return answer


@seeds("NODE-END-002").after(StartedNode, "end")
def ended_app_containers_free_their_cpus(
    answer: Any, self: StartedNode, args: messages.EndArgs
) -> Any:
    """Releases the CPUs of app containers that have ended."""
    pod = self.pods.get(args.uid)
    if pod is not None and not pod.container(args.container).init:
        self.cpus.end(args.uid, args.container)
    return answer


@seeds("NODE-END-002").around(StartedNode, "end")
def completed_pods_keep_their_resources(
    rule: Any, self: StartedNode, args: messages.EndArgs
) -> Any:
    """Frees nothing when the last app container of a pod has ended."""
    pod = self.pods[args.uid]
    apps = {one.name for one in pod.containers if not one.init}
    ended = {name for uid, name in self.ended_containers if uid == pod.uid}
    return messages.Done() if apps <= {*ended, args.container} else rule()


@seeds("NODE-END-002").after(StartedNode, "end")
def ended_containers_are_still_updated(answer: Any, self: StartedNode) -> Any:
    """Updates the CPUs of containers that have ended."""
    self.ended_containers.clear()
    return answer
