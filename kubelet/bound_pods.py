"""A pod on the node: what the kubelet made of it, according to the API server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numaproof.kubelet import pods
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numaproof.kubelet.api_server import Object, Store

_STATUSES = ("initContainerStatuses", "containerStatuses")


@dataclass
class BoundPod:
    """A pod on the node.

    Attributes:
        store: the API server's objects. Those of static pods are mirror pods, which the kubelet
            makes and removes.
        static_pods: the folder of the files that describe static pods.
        manifest: the pod, with its current resources.
        refusal: why the kubelet rejected it; None if it did not.
        affinity: by container, the hint that the Topology Manager chose.
        is_admitted: whether the kubelet has admitted it.
        is_answered: whether an `admit` has been answered since the kubelet started.
        is_initialized: whether its init containers end as soon as they run. Until then they run
            on, so that the pod keeps what it was admitted with.
        completions: the containers that have ended by themselves, for good.
        victims: the names of the pods that the kubelet has preempted for it, until they are
            reported.
    """

    store: Store
    static_pods: Path
    manifest: Object
    refusal: messages.AdmissionRefused | None = None
    affinity: dict[str, messages.Hint] = field(default_factory=dict)
    is_admitted: bool = False
    is_answered: bool = False
    is_initialized: bool = False
    completions: set[str] = field(default_factory=set)
    victims: Sequence[str] = ()

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return str(self.manifest["metadata"]["uid"])

    @property
    def name(self) -> str:
        """Its namespace and name, as the kubelet logs them."""
        return pods.full_name(self.manifest)

    def current(self) -> Object:
        """The pod as the API server has it now; empty if it has left."""
        return self.store.get("pods", *pods.place(self.manifest)) or {}

    def is_decided(self) -> bool:
        """Whether the kubelet has admitted or rejected it.

        The event of a rejection comes at once. The status may come seconds later, when the kubelet
        is sure that no container of the pod runs.
        """
        event = None if self.is_admitted else self._warning()
        if event is not None:
            self.refusal = messages.AdmissionRefused(event["reason"], event["message"])
        return self.is_admitted or self.refusal is not None

    def outcome(self) -> messages.RefusedPod | None:
        """The status of a failed pod and the message of its event; None until both are there."""
        status, event = self.current().get("status", {}), self._warning()
        if event is None or status.get("phase") != "Failed":
            return None
        return messages.RefusedPod(
            status["phase"], status.get("reason", ""), status.get("message", ""), event["message"]
        )

    def _warning(self) -> Object | None:
        """The warning about the pod as a whole, if there is one."""
        return next(self._warnings(), None)

    def _warnings(self) -> Iterator[Object]:
        for one in self.store.list("events"):
            of = one["involvedObject"]
            if (
                one.get("type") == "Warning"
                and of.get("uid") == self.uid
                and not of.get("fieldPath")
            ):
                yield one

    def pending_resize(self) -> Object | None:
        """The condition of a pod that doesn't get the resources that it requests."""
        conditions = self.current()["status"]["conditions"]
        return next((one for one in conditions if one["type"] == "PodResizePending"), None)

    def container_states(self) -> dict[str, Object]:
        """By container: its state in the pod's status."""
        return {one["name"]: one.get("state", {}) for one in self._container_statuses()}

    def running_ids(self) -> set[str]:
        """The ids of the containers that run according to the pod's status."""
        return {
            one["containerID"].rpartition("/")[2]
            for one in self._container_statuses()
            if "running" in one.get("state", {})
        }

    def _container_statuses(self) -> Iterator[Object]:
        status = self.current().get("status", {})
        for kind in _STATUSES:
            yield from status.get(kind) or ()

    @property
    def is_static(self) -> bool:
        """Whether the kubelet runs it from a file."""
        return messages.is_static(self.manifest)

    @property
    def _file(self) -> Path:
        return self.static_pods / f"{self.uid}.json"

    def bind(self) -> None:
        """Lets the kubelet know about the pod."""
        if self.is_static:
            # The kubelet ignores files whose names begin with a dot.
            aside = self._file.with_name(f".{self.uid}")
            aside.write_text(json.dumps(pods.manifest_of_static(self.manifest)))
            aside.rename(self._file)
        else:
            self.store.put("pods", self.manifest)

    def request_deletion(self) -> None:
        """Asks the kubelet to end the pod at once."""
        if self.is_static:
            self._file.unlink(missing_ok=True)
            return
        pod = self.current()
        if pod:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            pod["metadata"]["deletionGracePeriodSeconds"] = 0
            self.store.put("pods", pod)

    def discard(self) -> None:
        """Takes a pod that has failed off the node, as its owner does, with its events."""
        self._file.unlink(missing_ok=True)
        for event in [*self._warnings()]:
            self.store.delete("events", *pods.place(event))
        self.store.delete("pods", *pods.place(self.manifest))
