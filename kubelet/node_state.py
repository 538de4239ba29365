"""What the kubelet's checkpoint files say about containers."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.kubelet import pods
from numaproof.kubelet.device_plugins import KUBELET_SOCKET
from numaproof.kubelet.pod_resources import PodResources, Resources
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numaproof.kubelet.api_server import Object

_WHOLE_PODS_SINCE = (1, 37)
"""Since this release, podresources reports what a pod's containers share as the pod's."""

_NO_NODE = "-1"
"""In the Device Manager's checkpoint: the node of devices that are close to none."""

_NODES = 64
"""The Topology Manager's masks have as many bits."""

CPU, MEMORY, DEVICES = (
    "cpu_manager_state",
    "memory_manager_state",
    "device-plugins/kubelet_internal_checkpoint",
)
ALLOCATED = "allocated_pods_state"
_NAMES = {
    name.lower(): name
    for name in (
        *("data", "policyName", "defaultCpuSet", "entries", "podEntries"),
        *("PodDeviceEntries", "RegisteredDevices"),
    )
}


@dataclass(frozen=True)
class NodeState:
    """The kubelet's state directory.

    Args:
        folder: the directory that the kubelet sees as `/var/lib/kubelet`.
    """

    folder: Path

    @property
    def plugin_socket(self) -> Path:
        """The socket at which device plugins register."""
        return self.folder / "device-plugins" / KUBELET_SOCKET

    @property
    def plugin_registry(self) -> Path:
        """The folder that the kubelet watches for the sockets of plugins."""
        return self.folder / "plugins_registry"

    @property
    def pod_resources_socket(self) -> Path:
        """The folder of the podresources socket."""
        return self.folder / "pod-resources"

    def read(self, name: str) -> dict[str, Any]:
        """The content of a checkpoint file, of whichever format.

        Empty if there is none, or one that a kubelet that runs can only have ignored.
        """
        with suppress(FileNotFoundError, ValueError):
            content = _with_known_names(json.loads((self.folder / name).read_bytes()))
            # Releases before 1.37 ignore data, and 1.37 ignores data that is empty.
            return _with_known_names(_data(content)) or content
        return {}

    def has_checkpoint(self, name: str) -> bool:
        """Whether there is such a file."""
        return (self.folder / name).exists()

    def uids(self) -> set[str]:
        """The pods that the managers' files name."""
        return set().union(*self._uids_by_file().values())

    def files_naming(self, uid: str) -> set[str]:
        """The managers' files that name a pod."""
        return {name for name, uids in self._uids_by_file().items() if uid in uids}

    def _uids_by_file(self) -> dict[str, set[str]]:
        named = {
            name: {
                uid
                for entries in ("entries", "podEntries")
                for uid in self.read(name).get(entries) or ()
            }
            for name in (CPU, MEMORY)
        }
        return {**named, DEVICES: {one["PodUID"] for one in self._devices()}}

    def cpu_owners(self) -> set[str]:
        """The pods that have CPUs of their own."""
        return self._uids_by_file()[CPU]

    def has_devices(self) -> bool:
        """Whether a device plugin has ever registered."""
        return bool(self.read(DEVICES).get("RegisteredDevices") or self._devices())

    def holds(self, resource: str) -> bool:
        """Whether a container has devices of a resource."""
        return any(one["ResourceName"] == resource for one in self._devices())

    def _devices(self) -> list[dict[str, Any]]:
        return self.read(DEVICES).get("PodDeviceEntries") or []

    def policy(self) -> str:
        """The CPU Manager's policy."""
        return str(self.read(CPU).get("policyName", ""))

    def shared(self) -> CPUSet:
        """The shared pool."""
        return CPUSet.parse(self.read(CPU).get("defaultCpuSet", ""))

    def allocated(self, uid: str) -> pods.Amounts:
        """By container that can be resized: what the kubelet has allocated to a pod."""
        pod = self.read(ALLOCATED).get("entries", {}).get(uid, {})
        resources = pod.get("ContainerResources", {})
        return {name: pods.amounts_of(one) for name, one in resources.items()}

    @contextmanager
    def unusable_pod_folder(self, uid: str) -> Iterator[None]:
        """Puts a file where a pod's folder is, without which a kubelet runs no containers."""
        folder = self.folder / "pods" / uid
        aside = self.folder / f"{uid}.aside"
        folder.rename(aside)
        folder.touch()
        try:
            yield
        finally:
            folder.unlink()
            aside.rename(folder)

    def files(self) -> dict[str, str]:
        """The checkpoint files, verbatim."""
        return {
            name: (self.folder / name).read_text()
            for name in (CPU, MEMORY)
            if self.has_checkpoint(name)
        }

    def containers(
        self,
        pod: Object,
        affinity: Mapping[str, messages.Hint],
        *,
        has_devices: bool,
        quotas: Mapping[str, bool] | None,
    ) -> messages.Containers:
        """What each container of a pod has.

        Args:
            pod: the pod, as the API server has it.
            affinity: by container, the hint that the Topology Manager chose.
            has_devices: whether there are device plugins.
            quotas: by container, whether the runtime limits it; None to leave that out.
        """
        uid = pod["metadata"]["uid"]
        shared = self.shared()
        cpus, memory = ((self.read(one).get("entries") or {}).get(uid, {}) for one in (CPU, MEMORY))
        devices = [one for one in self._devices() if one["PodUID"] == uid]
        found = {}
        for name in pods.names(pod):
            exclusive = CPUSet.parse(cpus.get(name, ""))
            found[name] = messages.Container(
                exclusive or shared,
                exclusive,
                tuple(map(_block, memory.get(name, ()))),
                affinity.get(name, messages.Hint(None, preferred=False)),
                _devices_of(devices, name) if has_devices else None,
                quotas[name] if quotas is not None else None,
            )
        return found

    def pod_resources(
        self, pod: Object, release: tuple[int, int], *, has_whole: bool
    ) -> PodResources:
        """What podresources must report about a pod.

        Since 1.37, it no longer reports the containers' shares of what a pod holds as a whole. With
        PodLevelResourceManagers, it reports what the pod holds: `has_whole`.
        """
        uid = pod["metadata"]["uid"]
        cpus, memory = self.read(CPU), self.read(MEMORY)
        own_cpus = (cpus.get("entries") or {}).get(uid, {})
        own_memory = (memory.get("entries") or {}).get(uid, {})
        devices = [one for one in self._devices() if one["PodUID"] == uid]
        may_share = release >= _WHOLE_PODS_SINCE and bool(pod["spec"].get("resources"))
        containers = {}
        for one in pods.serves(pod):
            name = one["name"]
            has_cpus = not may_share or pods.has_own_cpus(one)
            has_memory = not may_share or pods.has_own_memory(one)
            containers[name] = Resources(
                CPUSet.parse(own_cpus.get(name, "") if has_cpus else ""),
                frozenset(map(_block, own_memory.get(name, ()) if has_memory else ())),
                frozenset(
                    device
                    for entry in devices
                    if entry["ContainerName"] == name
                    for device in _devices_on_nodes(entry)
                ),
            )
        if not has_whole or release < _WHOLE_PODS_SINCE:
            return PodResources(containers)
        whole_cpus = (cpus.get("podEntries") or {}).get(uid, {}).get("cpuSet", "")
        whole_memory = (memory.get("podEntries") or {}).get(uid, {}).get("memoryBlocks", ())
        whole = Resources(CPUSet.parse(whole_cpus), frozenset(map(_block, whole_memory)))
        return PodResources(containers, whole)


def _data(content: Mapping[str, Any]) -> Any:
    """The data of a file, unless they are text that isn't JSON."""
    data = content.get("data")
    with suppress(ValueError):
        return json.loads(data) if isinstance(data, str) else data
    return None


def _with_known_names(value: Any) -> dict[str, Any]:
    """An object with its fields as a kubelet writes them: it reads them in any case."""
    if not isinstance(value, dict):
        return {}
    fields: dict[str, Any] = value
    return {_NAMES.get(name.lower(), name): one for name, one in fields.items()}


def _devices_on_nodes(entry: dict[str, Any]) -> Iterator[tuple[str, str, int | None]]:
    for node, names in entry["DeviceIDs"].items():
        for name in names:
            yield entry["ResourceName"], name, None if node == _NO_NODE else int(node)


def _block(block: dict[str, Any]) -> messages.MemoryBlock:
    return messages.MemoryBlock(NUMASet(block["numaAffinity"]), block["type"], block["size"])


def _devices_of(entries: list[dict[str, Any]], container: str) -> dict[str, tuple[str, ...]]:
    return {
        one["ResourceName"]: tuple(sorted(set().union(*one["DeviceIDs"].values())))
        for one in entries
        if one["ContainerName"] == container
    }


def hint(text: str) -> messages.Hint:
    """A hint of the Topology Manager, as it is logged."""
    value = json.loads(text)
    mask = value["NUMANodeAffinity"]
    nodes = None if mask is None else NUMASet(n for n in range(_NODES) if mask >> n & 1)
    return messages.Hint(nodes, preferred=value["Preferred"])
