"""Mutants of resizing pods in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference.errors import AdmissionError
from numaproof.reference.node import StartedNode
from numaproof.reference.resize import Resizing
from quality.seeding import Change, SubjectBugs, shape

if TYPE_CHECKING:
    from numaproof.reference.pods.pod import Pod

seeds = SubjectBugs("resize")


@shape(Resizing, "check")
def _check_other_pods(
    change: Change, rule: Any, self: Resizing, allocated: Pod, target: Pod
) -> None:
    """Lets `change` replace the node's rules and the pods."""
    node, had, wants = change(self, allocated, target)
    rule(node, had, wants)


@seeds("NODE-RESIZE-001").by(_check_other_pods)
def resize_counts_only_whole_cpus(node: Resizing, allocated: Pod, target: Pod) -> Any:
    """Accepts changes of CPU requests that aren't whole."""
    kept = tuple(
        old if "m" in str(new.requests.get("cpu", 0)) else new
        for old, new in zip(allocated.containers, target.containers, strict=True)
    )
    return node, allocated, replace(target, containers=kept)


@seeds("NODE-RESIZE-001").by(_check_other_pods)
def resize_overlooks_sidecars(node: Resizing, allocated: Pod, target: Pod) -> Any:
    """Accepts changes of sidecars' CPU requests."""
    kept = tuple(
        old if old.sidecar else new
        for old, new in zip(allocated.containers, target.containers, strict=True)
    )
    return node, allocated, replace(target, containers=kept)


@seeds("NODE-RESIZE-001").by(_check_other_pods)
def resize_to_fewer_cpus_is_accepted(node: Resizing, allocated: Pod, target: Pod) -> Any:
    """Accepts fewer CPUs."""
    return node, allocated, allocated if _cpus(target) < _cpus(allocated) else target


def _cpus(pod: Pod) -> int:
    return sum(pod.exclusive_cpus(one) for one in pod.containers)


@seeds("NODE-RESIZE-002").by(_check_other_pods)
def resize_of_pinned_memory_is_accepted(node: Resizing, allocated: Pod, target: Pod) -> Any:
    """Accepts changes of pinned memory."""
    return replace(node, has_static_memory=False), allocated, target


@seeds("NODE-RESIZE-003").by(_check_other_pods)
def resize_needs_both_policies_none(node: Resizing, allocated: Pod, target: Pod) -> Any:
    """Refuses changes of memory because of the CPU Manager's policy, and vice versa."""
    static = node.has_static_cpus or node.has_static_memory
    return replace(node, has_static_cpus=static, has_static_memory=static), allocated, target


@seeds("NODE-RESIZE-003").by(_check_other_pods)
def resize_without_policies_is_infeasible(node: Resizing, allocated: Pod, target: Pod) -> Any:
    """Refuses changes of CPU under any policy."""
    return replace(node, has_static_cpus=True), allocated, target


@seeds("NODE-RESIZE-004").by(_check_other_pods)
def resize_of_burstable_pods_is_infeasible(node: Resizing, allocated: Pod, target: Pod) -> Any:
    """Refuses resizes of Burstable pods like those of Guaranteed pods."""
    return node, allocated, replace(target, qos="Guaranteed")


@seeds("NODE-RESIZE-005").around(Resizing, "providers")
def resize_allocates_again(rule: Any, managers: Any) -> Any:
    """Lets all managers allocate the pod's resources again."""
    return managers


@seeds("NODE-RESIZE-006").around(StartedNode, "resize")
def infeasible_resize_takes_the_cpus_away(
    rule: Any, self: StartedNode, args: messages.ResizeArgs
) -> Any:
    """Releases the CPUs of a pod whose resize is infeasible."""
    try:
        return rule()
    except AdmissionError:
        for container in self.read_pod(args.pod).containers:
            self.cpus.release(args.pod["metadata"]["uid"], container.name)
        raise


@seeds("NODE-RESIZE-006").around(StartedNode, "resize")
def resize_allocates_anew(rule: Any, self: StartedNode, args: messages.ResizeArgs) -> Any:
    """Gives a resized pod other CPUs and memory."""
    rule()
    self.remove(messages.RemoveArgs(args.pod["metadata"]["uid"]))
    return self.admit(messages.AdmitArgs(args.pod))
