"""Why a restarted kubelet refuses a pod: what its files record for the pod does not fit the pod."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.errors import AllocationError
from numaproof.reference.memory.requests import container_amounts
from numaproof.simulation.explaining import Explanation, explain
from numaproof.simulation.requests import CPU as CPU_RESOURCE
from numaproof.simulation.requests import amount, extended_resources_of, mask_text
from numaproof.simulation.state_files import CPU, DEVICES, MEMORY, entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.reference.node import StartedNode
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.simulation.state_files import Files

_OTHER_TIME = (
    "the files and the pods may be from different times: collect both again; if the node really is"
    " in this state, drain it before its kubelet restarts"
)
_DESPITE_ROOM = (
    "the restarting kubelet refuses the pod, although the node has room for it once its resources"
    " are released"
)
_DRAIN = "drain the node before its kubelet restarts"


class _Record(NamedTuple):
    """What a file records for a container; `nodes` is a mask, 0 for devices without topology."""

    file: str
    resource: str
    amount: int
    nodes: int
    text: str


def explain_readmission(
    node: StartedNode, pod: Pod, files: Files, names: Mapping[str, str]
) -> Explanation:
    """Explains why a kubelet that started from `files` refuses a pod that was on the node.

    `names` are the pods' names by uid, where they differ.
    """
    records = {
        (container, one.resource): one
        for file, uid, containers in entries(files)
        if uid == pod.uid
        for container, entry in containers.items()
        for one in _records(node, file, entry)
    }
    if wrong := tuple(_mismatches(node, pod, records, files)):
        return Explanation("; ".join(wrong), (), (_OTHER_TIME,))
    if apart := tuple(_apart(pod, records)):
        return Explanation("; ".join(apart), (), (_DRAIN,))
    found = explain(node, pod, names)
    return found if found.cause else Explanation(_DESPITE_ROOM, (), (_DRAIN,))


def _records(node: StartedNode, file: str, entry: Any) -> Iterator[_Record]:
    if file == CPU:
        cpus = CPUSet.parse(entry)
        on = (1 << number for number, all_ in node.setup.topology.nodes.items() if all_ & cpus.mask)
        yield _Record(file, CPU_RESOURCE, len(cpus), reduce(or_, on, 0), f"CPUs {cpus}")
    elif file == MEMORY:
        for kind in sorted({one["type"] for one in entry or ()}):
            blocks = [one for one in entry if one["type"] == kind]
            size = sum(one["size"] for one in blocks)
            nodes = reduce(or_, (NUMASet(one["numaAffinity"]).mask for one in blocks))
            yield _Record(file, kind, size, nodes, amount(kind, size))
    elif file == DEVICES:
        lists = node.device_manager.state.lists
        for resource, found in entry.items():
            rows = found.values() if isinstance(found, dict) else (found,)
            ids = sorted({one for row in rows for one in row or ()})
            # For a restart, the nodes count that the plugin reports now.
            near = lists[resource].nodes if resource in lists else {}
            on = (near.get(one) or 0 for one in ids)
            text = f"{resource} {' '.join(ids)}"
            yield _Record(file, resource, len(ids), reduce(or_, on, 0), text)


def _mismatches(
    node: StartedNode, pod: Pod, records: Mapping[tuple[str, str], _Record], files: Files
) -> Iterator[str]:
    """Yields the resources whose recorded amount is not the requested one."""
    recorded = {container for container, _ in records}
    for container in pod.containers:
        for file, resource, count in _requests(node, pod, container):
            record = records.get((container.name, resource))
            if record is None and file in files and container.name in recorded:
                text = f"requests {amount(resource, count)}"
                yield f"{file} has no {resource} for container {container.name}, which {text}"
            elif record is not None and record.amount != count:
                yield (
                    f"{record.file} has {record.text} for container {container.name}, which"
                    f" requests {amount(resource, count)}"
                )


def _requests(
    node: StartedNode, pod: Pod, container: PodContainer
) -> Iterator[tuple[str, str, int]]:
    """Yields what a container requests, with the file that records it."""
    if node.setup.cpu and (cpus := pod.exclusive_cpus(container)):
        yield CPU, CPU_RESOURCE, cpus
    if node.setup.memory and pod.qos == "Guaranteed":
        try:
            sizes = container_amounts(pod, container)
        except AllocationError:
            sizes = {}
        yield from ((MEMORY, kind, size) for kind, size in sizes.items() if size)
    served = node.device_manager.state.serves
    for resource, count in extended_resources_of(container).items():
        if served(resource):
            yield DEVICES, resource, count


def _apart(pod: Pod, records: Mapping[tuple[str, str], _Record]) -> Iterator[str]:
    """Yields the containers whose recorded resources are on different NUMA nodes."""
    for container in pod.containers:
        held = [one for (name, _), one in records.items() if name == container.name and one.nodes]
        if len({one.nodes for one in held}) > 1:
            where = ", ".join(f"{one.text} on {mask_text(one.nodes)}" for one in held)
            yield f"the files have resources of container {container.name} apart: {where}"
