"""The kubelet's configuration and command line for a node that exists only in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

NODE = "node"
RUNTIME_SOCKET = "cri.sock"
STATIC_PODS = "static-pods"
"""The folder of the files that describe static pods."""

_VERBOSITY = 2
# pod_workers say when a pod is admitted, cpu_manager which containers its loop skips,
# kubelet_pods when pods that are gone are forgotten.
_VERBOSE = {"pod_workers": 4, "cpu_manager": 5, "kubelet_pods": 3}

_ALONE: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "address": "127.0.0.1",
    "authentication": {
        "anonymous": {"enabled": True},
        "webhook": {"enabled": False},
        "x509": {},
    },
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    # The host's cgroups are not the kubelet's to change.
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "contentType": "application/json",
    "failSwapOn": False,
    "healthzBindAddress": "127.0.0.1",
    "imageGCHighThresholdPercent": 100,
    "kubeAPIQPS": 1000,
    "kubeAPIBurst": 1000,
    "eventRecordQPS": 0,
    "localStorageCapacityIsolation": False,
    "logging": {
        "verbosity": _VERBOSITY,
        "vmodule": [{"filePattern": name, "verbosity": level} for name, level in _VERBOSE.items()],
    },
    "readOnlyPort": 10255,
    "registerNode": True,
    "volumePluginDir": "/var/lib/kubelet/volumeplugins",
}
"""What a kubelet needs to run with a runtime of no containers and an API server of its own."""

_SINCE: dict[str, tuple[tuple[int, int], Any]] = {"failCgroupV1": ((1, 31), False)}

_WITHOUT_CGROUPS: dict[tuple[int, int], tuple[str, ...]] = {
    (1, 36): (
        "InPlacePodLevelResourcesVerticalScaling",
        "PodLevelResources",
        "NodeDeclaredFeatures",
    ),
}
"""A gate with which a kubelet without cgroups for pods panics as soon as a pod with pod-level
resources runs, and the gates it depends on: without them, the kubelet refuses to start.
"""

_RECONCILE_PERIOD = {"cpuManagerReconcilePeriod": "100ms"}
"""So that nobody waits ten seconds for a pass."""


def configuration(
    fields: Mapping[str, Any], release: tuple[int, int], folder: Path, *, own_period: bool
) -> dict[str, Any]:
    """The configuration of a node with what a user wants of the managers.

    Args:
        fields: what the user wants.
        release: the kubelet's minor release.
        folder: the folder of the runtime's socket.
        own_period: whether the reconcile period is the user's or the kubelet's default.
    """
    since = {name: value for name, (first, value) in _SINCE.items() if release >= first}
    gate, *needed = _WITHOUT_CGROUPS.get(release, ("",))
    wanted = fields.get("featureGates") or {}
    if gate and isinstance(wanted, dict) and all(wanted.get(one, True) for one in needed):
        fields = {**fields, "featureGates": {gate: False, **wanted}}
    return {
        **_ALONE,
        **since,
        **({} if own_period else _RECONCILE_PERIOD),
        "containerRuntimeEndpoint": f"unix://{folder / RUNTIME_SOCKET}",
        "staticPodPath": str(folder / STATIC_PODS),
        **fields,
    }


_OWN_FLAGS = frozenset(
    {
        *("config", "config-dir", "kubeconfig", "hostname-override", "cert-dir", "root-dir"),
        *("container-runtime-endpoint", "logging-format", "log-file", "vmodule"),
    }
)
"""Flags that would take the kubelet out of the node on which it is tested, or hide its log."""


def conflict(arguments: Iterable[str]) -> str:
    """Why a user can't add some arguments to the kubelet's; empty if nothing is wrong."""
    for argument in arguments:
        name, _, value = argument.lstrip("-").partition("=")
        if name in _OWN_FLAGS:
            return f"{argument}: numaproof itself sets --{name}; remove it"
        if name == "v" and not (value.isdecimal() and int(value) >= _VERBOSITY):
            return f"{argument}: numaproof reads the log; give --v={_VERBOSITY} or more"
    return ""


def write(folder: Path, config: Mapping[str, Any], port: int) -> tuple[str, ...]:
    """Writes the configuration and a kubeconfig; the kubelet's arguments that name them."""
    config_file, kubeconfig = folder / "config.json", folder / "kubeconfig.json"
    config_file.write_text(json.dumps(config))
    kubeconfig.write_text(json.dumps(_kubeconfig(port)))
    return (
        f"--config={config_file}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NODE}",
        f"--cert-dir={folder / 'pki'}",
    )


def _kubeconfig(port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "kubelet", "user": {}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "kubelet"}}],
        "current-context": "local",
    }
