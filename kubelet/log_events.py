"""What a kubelet's log says has happened."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.formats.machines import kubelet_log
from numaproof.kubelet.node_state import hint
from numaproof.kubelet.process import parse_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numaproof.protocol import messages

DEVICES_PROCESSED = "Processed device updates for resource"
PLUGIN_LEFT = "Mark all resources Unhealthy for resource"
CLEANUP_BEGINS = "Clean up pod workers for terminated pods"
CLEANUP_ENDS = "Clean up orphaned pod directories"
_FIRST_SYNC = "Pod is being synced for the first time"
_SYNCED = "Processing pod event done"
_WORKER_ENDED = "Pod has been terminated and is no longer known"
_REMOVED = "SyncLoop REMOVE"
_EVICTED = "Pod evicted successfully"
_OF_WORKERS = (_EVICTED, _FIRST_SYNC, _SYNCED)
_SKIPPED = "skipping container; ID not found in pod status"


@dataclass
class LogEvents:
    """The events of one kubelet process.

    Attributes:
        on_admission: called with the uid of a pod that was admitted, and the names of the pods that
            were preempted for it.
        on_affinity: called with the names of a pod and a container, and the hint that the Topology
            Manager chose.
        machine: the line about the machine; empty until the kubelet has discovered it.
        device_updates: how often something happened to the devices of a resource.
        skips: how often the reconcile loop has skipped a container, by pod.
        leaving: the names of the pods that are gone, which the kubelet has yet to notice.
        workers: the uids of the pods that the kubelet knows.
        synced_pods: the uids of the pods at which it has looked.
        cleanups: how often it began and ended to clean up after pods.
    """

    on_admission: Callable[[str, Sequence[str]], None]
    on_affinity: Callable[[str, str, messages.Hint], None]
    machine: str = ""
    device_updates: Counter[tuple[str, str]] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    leaving: set[str] = field(default_factory=set)
    workers: set[str] = field(default_factory=set)
    synced_pods: set[str] = field(default_factory=set)
    cleanups: Counter[str] = field(default_factory=Counter)
    _victims: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Notes what a line of the log says."""
        line = parse_line(text)
        if line is None:
            return
        values = line.values
        match line.message:
            case "Topology Affinity" if "bestHint" in values:
                chosen = hint(values["bestHint"])
                self.on_affinity(values.get("pod", ""), values.get("containerName", ""), chosen)
            case message if message in _OF_WORKERS or message.startswith(_WORKER_ENDED):
                self._note_worker(message, values)
            case message if message in (DEVICES_PROCESSED, PLUGIN_LEFT):
                resource = values.get("resourceName", values.get("resource", ""))
                self.device_updates[message, resource] += 1
            case message if message == _REMOVED:
                self.leaving -= {*json.loads(values.get("pods", "[]"))}
            case message if message in (CLEANUP_BEGINS, CLEANUP_ENDS):
                self.cleanups[message] += 1
            case message if message.endswith(_SKIPPED):
                self.skips[values.get("pod", "")] += 1
            case message if message.startswith(kubelet_log.LINE):
                self.machine = message

    def _note_worker(self, message: str, values: dict[str, str]) -> None:
        """Notes what the worker of a pod has done; evictions are for the pod that comes next."""
        uid = values.get("podUID", "")
        if message == _EVICTED:
            self._victims.append(values.get("pod", ""))
        elif message == _SYNCED:
            self.synced_pods.add(uid)
        elif message != _FIRST_SYNC:
            self.workers.discard(uid)
        else:
            self.workers.add(uid)
            if values.get("updateType") == "create":
                victims, self._victims = self._victims, []
                self.on_admission(uid, victims)
