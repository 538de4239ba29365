"""State directories and listings of pods, as a kubelet and kubectl write them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference.checkpoints.files import checksum
from numaproof.reference.golang import dumping
from numaproof.simulation import device_checkpoint
from numaproof.simulation.admission import begin, node_of
from numaproof.simulation.state_files import DEVICES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numaproof.reference.node import StartedNode
    from numaproof.simulation.admission import Question


def listed_pod(
    name: str, amounts: Mapping[str, Any], *, age: int = 0, shared: bool = False, **more: Any
) -> dict[str, Any]:
    """A running pod with one container; `more` has fields of its metadata and its priority.

    Its uid is ``uid-NAME``. With `shared`, the amounts are requests without limits.
    """
    resources = {"requests": {**amounts}} | ({} if shared else {"limits": {**amounts}})
    spec = {"nodeName": "n1", "containers": [{"name": "main", "resources": resources}]}
    if "priority" in more:
        spec["priority"] = more.pop("priority")
    created = f"2026-01-{28 - age:02}T00:00:00Z"
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": created, **more}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Running"},
    }


def listing(pods: Iterable[Mapping[str, Any]]) -> str:
    """The output of ``kubectl get pods -o json``."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*pods]})


def write_state(folder: Path, question: Question, pods: Iterable[Mapping[str, Any]]) -> None:
    """Writes the checkpoints of a kubelet that has admitted these pods."""
    folder.mkdir()
    reference, _ = begin(question, str(folder))
    for pod in pods:
        manifest: Any = {"metadata": pod["metadata"], "spec": pod["spec"]}
        answer = reference.call("admit", messages.AdmitArgs(manifest))
        assert isinstance(answer, messages.Admitted), answer
    if question.devices:
        (folder / DEVICES).write_bytes(device_file(node_of(reference)))


def device_file(node: StartedNode) -> bytes:
    """The Device Manager's checkpoint, in the kubelet's format."""
    state = node.device_manager.state
    entries = [
        {
            "PodUID": uid,
            "ContainerName": name,
            "ResourceName": resource,
            "DeviceIDs": by_node(state.lists[resource].nodes, ids),
            "AllocResp": base64.b64encode(b"answer").decode(),
        }
        for uid, containers in state.held_devices.items()
        for name, resources in containers.items()
        for resource, ids in resources.items()
    ]
    healthy = {name: sorted(one.healthy) for name, one in state.lists.items()}
    return sealed({"PodDeviceEntries": entries, "RegisteredDevices": healthy})


def by_node(nodes: Mapping[str, int | None], ids: Iterable[str]) -> dict[str, list[str]]:
    """Devices by NUMA node; -1 is for devices without a topology."""
    found: dict[str, list[str]] = {}
    for one in sorted(ids):
        near = nodes[one]
        numbers = [n for n in range(64) if near >> n & 1] if near else [-1]
        for number in numbers:
            found.setdefault(str(number), []).append(one)
    return found


def sealed(data: dict[str, Any]) -> bytes:
    """A Device Manager's checkpoint with the right checksum."""
    typed = device_checkpoint._typed(data, lists=False)
    dump = dumping.dumper_of_fields(device_checkpoint._BY_NODE)(typed)
    number = checksum(f"(checkpoint.checkpointData){dump}")
    return json.dumps({"Data": data, "Checksum": number}).encode()
