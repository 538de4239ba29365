"""What many pods get, summarised by workload."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import msgspec

from numaproof.reference.pods.manifest import read_pod
from numaproof.simulation.alignment import are_aligned
from numaproof.simulation.trials import shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numaproof.protocol import messages
    from numaproof.reference.node import StartedNode
    from numaproof.simulation.admission import PodResult
    from numaproof.simulation.pods import DescribedPod


class WorkloadSummary(msgspec.Struct, frozen=True):
    """What the pods of a workload get.

    Attributes:
        workload: its name; for pods without a controller that request the same, the first pod's.
        pods: the number of its pods.
        admitted: how many of them are admitted.
        exclusive_cpus: the number of CPUs that they have exclusively, in total.
        aligned_pods: how many have all exclusive CPUs, with their memory and devices, on as few
            NUMA nodes as possible.
        unaligned_pods: how many have exclusive CPUs, but not so.
    """

    workload: str
    pods: int
    admitted: int
    exclusive_cpus: int
    aligned_pods: int
    unaligned_pods: int


def workload_names(pods: Iterable[DescribedPod]) -> dict[str, str]:
    """Returns the workload of each pod by the pod's name.

    It is what replicas have in common, or the pod's controller. Other pods that request the same in
    the same namespace are together, under the name of the first.
    """
    alike: dict[tuple[str, str], str] = {}
    names = {}
    for one in pods:
        workload, _, number = one.name.partition("#")
        namespace = one.manifest["metadata"].get("namespace", "")
        if one.controller:
            owner_kind, _, owner = one.controller.partition("/")
            workload = f"{owner_kind}/{namespace}/{owner}"
        elif one.name.startswith("Pod/") and not number:
            requested = shape(read_pod(one.manifest, "budget"))
            workload = alike.setdefault((namespace, requested), one.name)
        names[one.name] = workload
    return names


def summarize_workloads(
    node: StartedNode, names: Mapping[str, str], results: Sequence[PodResult]
) -> tuple[WorkloadSummary, ...]:
    """Summarises the results for pods by workload; `names` are the workloads by pod."""
    members: dict[str, list[PodResult]] = {}
    for one in results:
        members.setdefault(names[one.pod], []).append(one)
    return tuple(_summary(node, name, group) for name, group in members.items())


def _summary(node: StartedNode, name: str, results: Sequence[PodResult]) -> WorkloadSummary:
    held = [one.containers for one in results if one.containers is not None]
    alignments = [are_aligned(node, containers) for containers in held]
    return WorkloadSummary(
        workload=name,
        pods=len(results),
        admitted=len(held),
        exclusive_cpus=sum(map(_exclusive_cpus, held)),
        aligned_pods=alignments.count(True),
        unaligned_pods=alignments.count(False),
    )


def _exclusive_cpus(containers: messages.Containers) -> int:
    """Counts a pod's CPUs; its containers can reuse or share them."""
    return reduce(or_, (one.exclusive.mask for one in containers.values()), 0).bit_count()
