"""The state of a node: its checkpoint files and its pods, and where they disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from numaproof.inputs.documents import value_at
from numaproof.inputs.sizes import size
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.simulation.pods import DescribedPod
from numaproof.simulation.requests import nodes_text
from numaproof.simulation.state_files import CPU, DEVICES, MEMORY, Files, entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.reference.node import StartedNode
    from numaproof.simulation.pods import Reading

_STATUSES = ("initContainerStatuses", "containerStatuses")


class RunningPod(msgspec.Struct, frozen=True):
    """A pod on the node.

    Attributes:
        pod: the pod; its uid is the one by which the kubelet knows it.
        running: the names of its containers that have not ended.
        is_static: whether the kubelet runs it from a file or a URL.
    """

    pod: DescribedPod
    running: tuple[str, ...]
    is_static: bool = False

    @classmethod
    def arriving(cls, pod: DescribedPod) -> RunningPod:
        """Returns a pod that arrives, as it will run: its init containers have ended."""
        return cls(pod, tuple(_containers(pod, {"status": {"phase": "Running"}})))

    @property
    def uid(self) -> str:
        """The uid by which the kubelet knows the pod."""
        return str(self.pod.manifest["metadata"]["uid"])


class NodeState(msgspec.Struct, frozen=True):
    """The state of a node.

    Attributes:
        files: the checkpoints, as a kubelet wrote them.
        pods: the pods on the node, in the order in which the kubelet admits them at a restart.
        folder: the directory of the files, for messages.
    """

    files: Files
    pods: tuple[RunningPod, ...]
    folder: str = ""

    @property
    def names(self) -> dict[str, str]:
        """The names of the pods by uid."""
        return {one.uid: one.pod.name for one in self.pods}


def running_pods(reading: Reading) -> tuple[RunningPod, ...]:
    """Returns the pods of a listing as they run on the node, oldest first."""
    return tuple(map(_running, reading.pods, reading.objects))


def _running(pod: DescribedPod, listing: Mapping[str, Any]) -> RunningPod:
    return RunningPod(pod, tuple(_containers(pod, listing)), messages.is_static(listing))


def _containers(pod: DescribedPod, listing: Mapping[str, Any]) -> Iterator[str]:
    """Yields the containers that have not ended.

    Without a status of its own, an init container of a running pod has ended.
    """
    states = {
        one["name"]: one.get("state")
        for field in _STATUSES
        for one in _list(value_at(listing, ("status", field)))
        if isinstance(one, dict) and isinstance(one.get("name"), str)
    }
    runs = value_at(listing, ("status", "phase")) == "Running"
    spec = pod.manifest["spec"]
    for one in spec.get("initContainers") or ():
        state = states.get(one["name"])
        has_ended = runs if state is None else "terminated" in state
        if not has_ended or one.get("restartPolicy") == "Always":
            yield one["name"]
    for one in spec["containers"]:
        if "terminated" not in (states.get(one["name"]) or ()):
            yield one["name"]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


Disagreement = Literal["not on the node", "not recorded", "changed"]
"""A file records a pod that is not on the node, does not record one that is, or is out of date."""


class StateDifference(msgspec.Struct, frozen=True):
    """A pod about which a checkpoint disagrees with the pods on the node.

    Attributes:
        file: the checkpoint.
        pod: the pod's name, or its uid if it is not on the node.
        problem: how they disagree.
        in_file: what the file records for its containers; empty if it has no record.
        now: what a kubelet that starts from the file gives them; empty if that is nothing.
    """

    file: str
    pod: str
    problem: Disagreement
    in_file: str
    now: str

    def __str__(self) -> str:
        """Returns the difference as a sentence."""
        starts = "at its start, the kubelet gives it"
        if self.problem == "not on the node":
            return (
                f"{self.file}: {self.pod} has {self.in_file}, but is not among the pods on the"
                " node: the kubelet releases it"
            )
        if self.problem == "not recorded":
            return f"{self.file}: no record of {self.pod}: {starts} {self.now}"
        return f"{self.file}: {self.pod} has {self.in_file}: {starts} {self.now or 'nothing'}"


def differences(state: NodeState, node: StartedNode) -> Iterator[StateDifference]:
    """Yields the pods about which the files and a node started from them disagree.

    Pods that the node refused are skipped. Without files, there is nothing to disagree with.
    """
    if not state.files:
        return
    recorded = {
        (file, uid): {name: _entry_text(file, one) for name, one in containers.items()}
        for file, uid, containers in entries(state.files)
    }
    now = {(file, uid): containers for file, uid, containers in _holdings(node)}
    names = state.names
    for file, uid in dict.fromkeys((*recorded, *now)):
        before, after = recorded.get((file, uid), {}), now.get((file, uid), {})
        if uid not in names:
            yield StateDifference(file, f"pod {uid}", "not on the node", _text(before), "")
        elif uid in node.pods and before != after:
            problem: Disagreement = "changed" if before else "not recorded"
            yield StateDifference(file, names[uid], problem, _text(before), _text(after))


def _holdings(node: StartedNode) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yields what pods hold by file, in words."""
    for uid, cpus in node.cpus.state.exclusive.items():
        yield CPU, uid, {name: _cpus_text(CPUSet.from_mask(one)) for name, one in cpus.items()}
    for uid, memory in node.memory.state.entries.items():
        yield (
            MEMORY,
            uid,
            {
                name: _blocks_text(
                    (NUMASet.from_mask(one.nodes), one.kind, one.size) for one in blocks
                )
                for name, blocks in memory.items()
            },
        )
    for uid, devices in node.device_manager.state.held_devices.items():
        yield DEVICES, uid, {name: _devices_text(one) for name, one in devices.items()}


def _entry_text(file: str, entry: Any) -> str:
    """Describes the entry of a container in a checkpoint that a kubelet can read."""
    if file == CPU:
        return _cpus_text(CPUSet.parse(entry))
    if file == MEMORY:
        blocks = ((NUMASet(one["numaAffinity"]), one["type"], one["size"]) for one in entry or ())
        return _blocks_text(blocks)
    return _devices_text(
        {
            resource: ids if isinstance(ids, list) else [one for row in ids.values() for one in row]
            for resource, ids in entry.items()
            if ids
        }
    )


def _cpus_text(cpus: CPUSet) -> str:
    return f"CPUs {cpus}"


def _blocks_text(blocks: Iterable[tuple[NUMASet, str, int]]) -> str:
    return ", ".join(
        f"{size(amount)} of {kind} on {nodes_text(numa)}" for numa, kind, amount in blocks
    )


def _devices_text(devices: Mapping[str, Iterable[str]]) -> str:
    return ", ".join(
        f"{name} {' '.join(sorted(set(ids)))}" for name, ids in sorted(devices.items())
    )


def _text(containers: Mapping[str, str]) -> str:
    return "; ".join(f"{text} for {name}" for name, text in sorted(containers.items()) if text)
