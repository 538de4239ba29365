"""A pod that prints a node's ``/sys``, ``/proc`` and state files, and is then deleted.

It sees these three folders read-only, has no capabilities or service account, and requests no
resources. Its output is read with ``kubectl logs``, which needs fewer permissions than
``kubectl exec``, and works through every proxy.
"""

from __future__ import annotations

import json
import math
import secrets
import shlex
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from numaproof.collection.interrupts import no_interrupts
from numaproof.collection.kubectl import Kubectl, KubectlError
from numaproof.collection.node_script import KUBELET, PROC, SYS, script

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

IMAGE = "docker.io/library/busybox:stable"
"""The default image. The script needs `sh`, `grep`, `xargs`, `sed`, `gzip` and `base64`."""

KUBELET_FOLDER = "/var/lib/kubelet"

_CANNOT_START = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""Reasons for which a container waits until somebody changes something."""


@dataclass(frozen=True)
class DebugPod:
    """The pod for a node.

    Attributes:
        node: the node's name.
        image: its image.
        namespace: its namespace; empty for the current one of kubectl.
        kubelet_folder: the kubelet's ``--root-dir``.
        name: its name.
    """

    node: str
    image: str = IMAGE
    namespace: str = ""
    kubelet_folder: str = KUBELET_FOLDER
    name: str = field(default_factory=lambda: f"numaproof-{secrets.token_hex(4)}")

    def manifest(self, timeout: float) -> Mapping[str, Any]:
        """Returns the pod, which ends by itself after `timeout` seconds."""
        folders = {SYS: "/sys", PROC: "/proc", KUBELET: self.kubelet_folder}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "labels": {"app.kubernetes.io/managed-by": "numaproof"},
            },
            "spec": {
                "activeDeadlineSeconds": math.ceil(timeout),
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "nodeName": self.node,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "read",
                        "image": self.image,
                        "command": ["sh", "-c", script()],
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]},
                            "readOnlyRootFilesystem": True,
                            "runAsUser": 0,
                            "seLinuxOptions": {"type": "spc_t"},
                        },
                        "volumeMounts": [
                            {"name": name.strip("/"), "mountPath": name, "readOnly": True}
                            for name in folders
                        ],
                    }
                ],
                "volumes": [
                    {
                        "name": name.strip("/"),
                        "hostPath": {"path": path, "type": "Directory"},
                    }
                    for name, path in folders.items()
                ],
            },
        }

    def manifest_text(self, timeout: float) -> str:
        """Returns the manifest as YAML."""
        return yaml.dump(self.manifest(timeout), Dumper=_Dumper, sort_keys=False, width=96)

    def create_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that create the pod, with the manifest as input."""
        return ("create", "--filename=-", "--validate=false", *self._namespace)

    def status_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that print the pod."""
        return ("get", "pod", self.name, "--output=json", *self._namespace)

    def logs_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that print the pod's output."""
        return ("logs", self.name, *self._namespace)

    def delete_arguments(self) -> tuple[str, ...]:
        """Returns the arguments of kubectl that delete the pod."""
        options = ("--ignore-not-found", "--wait=false")
        return ("delete", "pod", self.name, *options, *self._namespace)

    @property
    def _namespace(self) -> tuple[str, ...]:
        return (f"--namespace={self.namespace}",) if self.namespace else ()


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def run(
    kubectl: Kubectl,
    pod: DebugPod,
    warn: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> bytes:
    """Creates a pod, waits for its end, and returns its output; always deletes the pod.

    Args:
        kubectl: its time limit is also that of the pod.
        pod: the pod.
        warn: called with a message if the pod can't be deleted.
        pause: waits for a number of seconds.

    Raises:
        KubectlError: the pod can't be created, doesn't start, fails or takes too long.
    """
    may_exist = True
    try:
        try:
            kubectl.run(pod.create_arguments(), pod.manifest_text(kubectl.timeout))
        except KubectlError as error:
            may_exist = error.cause == "unreachable"
            raise
        _wait(kubectl, pod, pause)
        return kubectl.run(pod.logs_arguments())
    finally:
        if may_exist:
            with no_interrupts():
                _delete(kubectl, pod, warn)


def _delete(kubectl: Kubectl, pod: DebugPod, warn: Callable[[str], None]) -> None:
    try:
        kubectl.run(pod.delete_arguments())
    except KubectlError as error:
        command = shlex.join(kubectl.command(pod.delete_arguments()))
        warn(f"the pod {pod.name} could not be deleted: {error.message} (run {command})")


_INTERVAL = 1.0
"""Seconds between two looks at the pod."""


def _wait(kubectl: Kubectl, pod: DebugPod, pause: Callable[[float], None]) -> None:
    """Waits until the pod has succeeded.

    Raises:
        KubectlError: it failed, can't start, or takes too long.
    """
    end = time.monotonic() + kubectl.timeout
    while True:
        status = _status(kubectl.run(pod.status_arguments()))
        phase = status.get("phase")
        if phase == "Succeeded":
            return
        reason, message = _container_reason(status)
        said = ": ".join(filter(None, (reason, message)))
        if phase == "Failed":
            raise KubectlError("failed", f"the debug pod failed: {said or 'without a reason'}")
        if reason in _CANNOT_START:
            fix = "name an image that the node can pull with --image"
            raise KubectlError("failed", f"the debug pod can't start: {said}", fix)
        if time.monotonic() >= end:
            waits = f", which waits: {said}" if said else ""
            message = f"the debug pod did not end within {kubectl.timeout:g} s{waits}"
            raise KubectlError("failed", message, "raise --timeout")
        pause(_INTERVAL)


def _status(output: bytes) -> Mapping[str, Any]:
    try:
        status = json.loads(output)["status"]
    except (ValueError, KeyError, TypeError):
        return {}
    return status if isinstance(status, dict) else {}


def _container_reason(status: Mapping[str, Any]) -> tuple[str, str]:
    """Returns why the container waits or ended, or why the node refused the pod."""
    places: list[Any] = [status]
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        places += [state.get("waiting"), state.get("terminated")]
    for place in reversed(places):
        if place and place.get("reason"):
            return str(place["reason"]), str(place.get("message") or "").strip()
    return "", ""
