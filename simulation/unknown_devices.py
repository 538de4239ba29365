"""The devices of pods on a node that no option and no file of the node's state describes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod import PodError
from numaproof.simulation.requests import extended_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol.messages import DeviceResource
    from numaproof.simulation.pods import DescribedPod


def requested_devices(pod: DescribedPod) -> frozenset[str]:
    """Returns the resources of the devices that a pod requests; none if the pod is invalid."""
    try:
        return frozenset(extended_resources(read_pod(pod.manifest)))
    except PodError:
        return frozenset()


def have_devices(pods: Iterable[DescribedPod], devices: Iterable[DeviceResource]) -> bool:
    """Whether a pod requests one of the node's devices."""
    known = {one.resource for one in devices}
    return any(known & requested_devices(pod) for pod in pods)


def unknown_devices(
    pods: Iterable[DescribedPod], devices: Iterable[DeviceResource]
) -> dict[str, int]:
    """Counts the pods that request devices other than the node's, by resource."""
    known = {one.resource for one in devices}
    return dict(Counter(name for pod in pods for name in sorted(requested_devices(pod) - known)))


def unknown_text(counts: Mapping[str, int]) -> str:
    """Returns what is not known, and the options that supply it."""
    of = ", ".join(f"{name} of {plural(pods, 'pod')}" for name, pods in counts.items())
    options = " ".join(f"--devices {name}=COUNT@NODES" for name in counts)
    return f"devices unknown, so not evaluated: {of}; add {options}"
