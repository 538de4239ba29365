"""Bottlerocket's settings, in TOML.

(Bottlerocket documentation, "settings.kubernetes".)
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from numaproof.formats.configurations.configuration import (
    Configuration,
    camel_case,
    nothing,
    scalar,
)
from numaproof.inputs.documents import (
    Document,
    DocumentError,
    MergedDocument,
    PathTuple,
    parts,
    value_at,
)
from numaproof.inputs.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_PRODUCT = "a Bottlerocket configuration"
_AT = ("settings", "kubernetes")
_RENAMED = {
    "cluster-dns-ip": "clusterDNS",
    "cpu-cfs-quota-enforced": "cpuCFSQuota",
    "event-qps": "eventRecordQPS",
    "image-gc-high-threshold-percent": "imageGCHighThresholdPercent",
    "image-gc-low-threshold-percent": "imageGCLowThresholdPercent",
    "kube-api-qps": "kubeAPIQPS",
    "kube-api-burst": "kubeAPIBurst",
    "memory-manager-reserved-memory": "reservedMemory",
    "registry-qps": "registryPullQPS",
    "reserved-cpus": "reservedSystemCPUs",
    "shutdown-grace-period-for-critical-pods": "shutdownGracePeriodCriticalPods",
    "single-process-oom-kill": "singleProcessOOMKill",
}
_SAME = (
    *("allowed-unsafe-sysctls", "cluster-domain", "container-log-max-files"),
    *("container-log-max-size", "cpu-manager-policy", "cpu-manager-policy-options"),
    *("cpu-manager-reconcile-period", "event-burst", "eviction-hard"),
    *("eviction-max-pod-grace-period", "eviction-soft", "eviction-soft-grace-period"),
    *("kube-reserved", "max-pods", "memory-manager-policy", "pod-pids-limit"),
    *("provider-id", "registry-burst", "seccomp-default", "serialize-image-pulls"),
    *("shutdown-grace-period", "system-reserved", "topology-manager-policy"),
    *("topology-manager-policy-options", "topology-manager-scope"),
)
"""Settings whose names are those of the kubelet's fields, written with dashes."""

_OF_OTHERS = (
    *("api-server", "authentication-mode", "bootstrap-token", "cloud-provider"),
    *(
        "cluster-certificate",
        "cluster-name",
        "ids-per-pod",
        "memory-swap-behavior",
        "credential-providers",
        "device-ownership-from-security-context",
    ),
    *("hostname-override", "hostname-override-source", "log-level", "node-ip", "node-labels"),
    *("node-taints", "pod-infra-container-image", "server-certificate", "server-key"),
    *("server-tls-bootstrap", "standalone-mode", "static-pods"),
)
"""Settings that do not end up in the kubelet's configuration file."""

_HEADER = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_SETTINGS = re.compile(r"^\s*(\[+\s*settings\s*[.\]]|settings\.)", re.MULTILINE)
_STEP = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def is_toml(text: str) -> bool:
    """Whether a text has Bottlerocket's settings."""
    first = next((line for line in text.splitlines() if not re.match(r"\s*(#|$)", line)), "")
    is_table = _HEADER.fullmatch(first.partition("#")[0].rstrip()) is not None
    return (is_table or _KEY.match(first) is not None) and _SETTINGS.search(text) is not None


def read(text: str, file: str, first: int = 1) -> Iterator[Configuration]:
    """Yields the configuration in a text that starts in line `first` of a file.

    Raises:
        DocumentError: the text is not TOML, or has no settings for Kubernetes.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+)", str(error))
        line = first - 1 + int(at[1]) if at else first
        raise DocumentError(file, line, "", f"not TOML: {error}") from None
    document = _document(data, _lines(text), file, first)
    if not isinstance(value_at(data, _AT), dict):
        raise nothing(document, _PRODUCT, _AT)
    yield read_settings(document)


def read_settings(document: Document) -> Configuration:
    """Returns the configuration in a mapping with ``settings.kubernetes``."""
    fields: dict[str, Document] = {}
    errors, left = [], [f"settings.{name}" for name in document.data["settings"]]
    left.remove("settings.kubernetes")
    known = {*_RENAMED, *_SAME}
    for name, part in parts(document.below(_AT)).items():
        fix = suggestion(name, known)
        if name in known:
            fields[camel_case(name, _RENAMED)] = _as_field(name, part)
        elif name not in _OF_OTHERS and fix.startswith("did you mean"):
            errors.append(document.error((*_AT, name), "unknown field", fix))
        else:
            left.append(name)
    found = Configuration(
        _PRODUCT,
        "settings.kubernetes",
        MergedDocument(document, fields),
        errors=tuple(errors),
        adds_defaults="Bottlerocket",
    )
    return found.note((), f"left out {', '.join(left)}") if left else found


def _as_field(name: str, part: Document) -> Document:
    """Returns a setting as a field of the KubeletConfiguration, whose shape can differ."""
    value = part.data
    if name.endswith("policy-options") and isinstance(value, list):
        return scalar(part, {str(option): "true" for option in value})
    if name == "memory-manager-reserved-memory" and isinstance(value, dict):
        return scalar(
            part,
            [
                {
                    "numaNode": int(node) if node.isdecimal() else node,
                    "limits": {kind: one for kind, one in limits.items() if kind != "enabled"},
                }
                for node, limits in value.items()
                if isinstance(limits, dict) and limits.get("enabled", True)
            ],
        )
    if name == "cluster-dns-ip" and isinstance(value, str):
        return scalar(part, [value])
    return part


def _lines(text: str) -> Mapping[PathTuple, int]:
    """Returns the lines of tables and keys, from 0."""
    found: dict[PathTuple, int] = {}
    table: PathTuple = ()
    for number, line in enumerate(text.splitlines()):
        if header := _HEADER.match(line):
            table = _steps(header[1])
            for length in range(1, len(table) + 1):
                found.setdefault(table[:length], number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_steps(key[1])), number)
    return found


def _steps(name: str) -> PathTuple:
    return tuple(step.strip("\"'") for step in _STEP.findall(name))


def _document(data: Any, lines: Mapping[PathTuple, int], file: str, first: int) -> Document:
    def place(value: Any, path: PathTuple, parent: int) -> tuple[int, dict[str, Any]]:
        line = lines.get(path, parent)
        below = value.items() if isinstance(value, dict) else ()
        return line, {name: place(one, (*path, name), line) for name, one in below}

    return Document(file, place(data, (), 0), data, before=first - 1)
