"""The types of the messages in version 1 of the conformance protocol.

Messages defined by the protocol are strict: an unknown field is an error. Objects defined by
Kubernetes and cAdvisor (pods, configuration, ``MachineInfo``) are open. In JSON, a CPU set is a
string in the Linux list format, and a NUMA set is a sorted list; in memory, both have types from
`numaproof.protocol.sets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOL_VERSION = 1

Level = Literal["invariants", "admission", "placement", "kubelet"]
"""How closely answers are compared; each level includes the ones before it."""

LEVELS: tuple[Level, ...] = ("invariants", "admission", "placement", "kubelet")

Stage = Literal["config", "discovery", "topology", "devices", "cpu", "memory"]
"""The stage at which a start was refused."""

InForce = dict[str, str | bool | dict[str, str]]
"""The fields of a KubeletConfiguration that concern the managers, with their defaults."""

Pod = dict[str, Any]
"""A v1.Pod manifest; open."""

SOURCE = "kubernetes.io/config.source"
"""The annotation with the source of a pod: ``api``, or ``file`` or ``http`` for static pods."""


def is_static(pod: Mapping[str, Any]) -> bool:
    """Whether a pod comes from a file or a URL instead of from the API server."""
    annotations = (pod.get("metadata") or {}).get("annotations")
    source = annotations.get(SOURCE) if isinstance(annotations, dict) else None
    return source not in (None, "api")


Told = Literal["quota", "effective-configuration", "refused-pods", "metrics"]
"""Optional parts of answers, sent if `start` requests them; named like features."""

TOLD: tuple[Told, ...] = get_args(Told)

KubeletConfiguration = dict[str, Any]
"""A KubeletConfiguration (kubelet.config.k8s.io/v1beta1) without apiVersion and kind; open."""


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all messages that the protocol defines, and of their parts."""


# Parts


class Device(Strict, frozen=True):
    """A device; `numa` is None if the plugin reports no topology."""

    id: str
    numa: NUMASet | None
    healthy: bool = True


PLUGIN_FAILURE = "the plugin failed"
"""The error of a device plugin that fails to allocate."""


class DeviceResource(Strict, frozen=True):
    """A device plugin's report: a resource name and its devices.

    `preferred` lists device ids in the plugin's order of preference, if it has one (version 1.1).
    If `fails` is true, the plugin answers every request to allocate with an error (version 1.2).
    """

    resource: str
    ids: tuple[Device, ...]
    preferred: tuple[str, ...] = ()
    fails: bool = False


class Hint(Strict, frozen=True):
    """A topology hint; `numa` is None for "no affinity"."""

    numa: NUMASet | None
    preferred: bool


ProviderHints = dict[str, tuple[Hint, ...] | None]
"""Hints by resource: None means no preference; an empty list means that no nodes are suitable."""


class MemoryBlock(Strict, frozen=True):
    """Memory of one type (``memory`` or ``hugepages-SIZE``) on a group of nodes, in bytes."""

    numa: NUMASet
    type: str
    size: int


class Container(Strict, frozen=True):
    """A container's resources: the CPUs it may run on, its exclusive CPUs, memory and affinity.

    `devices` (ids by resource) is None if no device plugin is configured. `quota` tells whether the
    container runtime limits the container by CFS quota; it is None unless `start` requests it
    (version 1.1).
    """

    cpus: CPUSet
    exclusive: CPUSet
    memory: tuple[MemoryBlock, ...]
    affinity: Hint
    devices: dict[str, tuple[str, ...]] | None = None
    quota: bool | None = None


Containers = dict[str, Container]


# Arguments of the operations


class HelloArgs(Strict, frozen=True):
    """`protocol` holds the oldest and newest versions that the harness supports."""

    protocol: tuple[int, int]
    harness: str


class StartArgs(Strict, frozen=True):
    """Exactly one of `machine` and `root` is set. `pods` are the pods still on the node.

    `flags` are kubelet command-line flags that complement `config`; `tell` lists the optional
    parts to include in answers until the next start (both version 1.1). If only the kubelet
    restarts, `running` has the names of the containers that run, by the uids of their pods in
    `pods`; it is None after a reboot. With `check_node`, pods must also fit into the node's
    allocatable resources (both version 1.2).
    """

    config: KubeletConfiguration
    state_dir: str
    kubernetes: str | None = None
    machine: MachineInfo | None = None
    root: str | None = None
    devices: tuple[DeviceResource, ...] = ()
    pods: tuple[Pod, ...] = ()
    flags: tuple[str, ...] = ()
    tell: tuple[Told, ...] = ()
    running: dict[str, tuple[str, ...]] | None = None
    check_node: bool = False


class AdmitArgs(Strict, frozen=True):
    """Asks whether the pod can run on the node."""

    pod: Pod


class ResizeArgs(Strict, frozen=True):
    """The pod, which is on the node, now wants these resources (version 1.2)."""

    pod: Pod


class RemoveArgs(Strict, frozen=True):
    """The pod, or only the named container, has terminated."""

    uid: str
    container: str | None = None


class EndArgs(Strict, frozen=True):
    """A container has ended by itself, while its pod remains (version 1.2)."""

    uid: str
    container: str


class DevicesArgs(Strict, frozen=True):
    """Device plugins report new lists of devices."""

    devices: tuple[DeviceResource, ...]


class HintsArgs(Strict, frozen=True):
    """`container` is None for the hints of the pod as a whole."""

    pod: Pod
    container: str | None


class NoArgs(Strict, frozen=True):
    """An operation without arguments."""


class MergeArgs(Strict, frozen=True):
    """`distances` has a row for each node id (as a string), in the order of `nodes`."""

    nodes: tuple[int, ...]
    policy: str
    providers: tuple[ProviderHints | None, ...]
    options: dict[str, str] = msgspec.field(default_factory=dict)
    distances: dict[str, tuple[int, ...]] | None = None
    kubernetes: str | None = None


class AssignArgs(Strict, frozen=True):
    """Asks for `count` of the CPUs in `available`, without involving any other manager."""

    machine: MachineInfo
    available: CPUSet
    count: int
    options: dict[str, str] = msgspec.field(default_factory=dict)
    kubernetes: str | None = None


class DiscoverArgs(Strict, frozen=True):
    """`root` is a directory that contains ``sys/`` and ``proc/``."""

    root: str
    kubernetes: str | None = None


# Results of the operations


class Policies(Strict, frozen=True):
    """The policies that an implementation supports."""

    cpu: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    topology: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()


class Options(Strict, frozen=True):
    """The policy options that an implementation supports."""

    cpu: tuple[str, ...] = ()
    topology: tuple[str, ...] = ()


class Hello(Strict, frozen=True):
    """Describes an implementation and its claims; the harness tests only what is claimed.

    `features` lists the supported features; if it is omitted, all features that the other claims
    allow are assumed. `discovers` lists the fields that `discover` fills in (version 1.1); if it is
    omitted, all fields are assumed. `build` identifies the build in reports, in any terms.
    """

    protocol: int
    name: str
    version: str
    language: str
    kubernetes: tuple[str, ...]
    level: Level
    operations: tuple[str, ...]
    policies: Policies
    options: Options
    features: tuple[str, ...] | None = None
    discovers: tuple[str, ...] | None = None
    choices: dict[str, str] = msgspec.field(default_factory=dict)
    homepage: str | None = None
    issues: str | None = None
    build: dict[str, str] | None = None


class StartedCPUs(Strict, frozen=True):
    """All CPUs of the machine, and those available for exclusive assignment."""

    all: CPUSet
    allocatable: CPUSet


class Started(Strict, frozen=True):
    """The managers are running. `memory` is the allocatable memory by node and type.

    `config` is the effective configuration, including defaults; it is None unless `start` requests
    it (version 1.1).
    """

    cpus: StartedCPUs
    memory: tuple[MemoryBlock, ...]
    config: InForce | None = None


class PreemptedPod(Strict, frozen=True):
    """A pod that left the node to make room, and the reason and message of its status."""

    uid: str
    reason: str
    message: str


class Admitted(Strict, frozen=True):
    """The pod is admitted. `containers` has its init and app containers by name.

    `preempted` are the pods that left the node to make room for a critical one, in that order; it
    is empty unless `start` sets `check_node` (version 1.2).
    """

    containers: Containers
    preempted: tuple[PreemptedPod, ...] = ()


class Done(Strict, frozen=True):
    """The operation has no result."""


class State(Strict, frozen=True):
    """The managers' assignments; `files` holds the checkpoint files verbatim.

    `metrics` are the managers' metrics by name, with labels as in ``name{label=value}``; a metric
    with labels is left out if it is zero. It is None unless `start` requests it, and until the pods
    of a restart have been admitted again (version 1.2).
    """

    shared: CPUSet
    pods: dict[str, Containers]
    files: dict[str, str] = msgspec.field(default_factory=dict)
    metrics: dict[str, int] | None = None


Provider = Literal["cpu", "memory", "devices"]
"""A manager that provides hints."""


class NodeHints(Strict, frozen=True):
    """The hints of each provider, in the provider's own order.

    `devices` is None if no device plugin is configured.
    """

    cpu: ProviderHints
    memory: ProviderHints
    devices: ProviderHints | None = None


class CPUUpdate(Strict, frozen=True):
    """An update of a container's CPUs, as sent to the container runtime."""

    uid: str
    container: str
    cpus: CPUSet


class Reconciled(Strict, frozen=True):
    """The updates of one pass, in the order in which they are sent."""

    updates: tuple[CPUUpdate, ...]


class Coverage(Strict, frozen=True):
    """The names of the blocks of the program's code that ran since the last such call."""

    blocks: tuple[str, ...]


class Merged(Strict, frozen=True):
    """The merged hint and whether the policy admits it."""

    hint: Hint
    admit: bool


class Assigned(Strict, frozen=True):
    """The assigned CPUs."""

    cpus: CPUSet


# Answers other than a result


class StartRefused(Strict, frozen=True):
    """A start, or an `assign` with invalid options, was refused at `stage`."""

    stage: Stage
    message: str


class RefusedPod(Strict, frozen=True):
    """The status of a refused pod, and the message of its event."""

    phase: str
    reason: str
    message: str
    event: str


class AdmissionRefused(Strict, frozen=True):
    """A pod or a request was refused; `reason` is the documented reason.

    `pod` is the resulting status of the pod; it is None unless `start` requests it (version 1.1).
    """

    reason: str
    message: str
    pod: RefusedPod | None = None


Refusal = StartRefused | AdmissionRefused


class Unsupported(Strict, frozen=True):
    """The implementation does not support this operation, policy or option."""

    what: str


class Fault(Strict, frozen=True):
    """The implementation failed while answering."""

    message: str
    trace: str = ""


Args = (
    HelloArgs
    | StartArgs
    | AdmitArgs
    | ResizeArgs
    | RemoveArgs
    | EndArgs
    | DevicesArgs
    | HintsArgs
    | NoArgs
    | MergeArgs
    | AssignArgs
    | DiscoverArgs
)

Result = (
    Hello
    | Started
    | Admitted
    | Done
    | State
    | NodeHints
    | Reconciled
    | Merged
    | Assigned
    | MachineInfo
    | Coverage
)

Answer = Result | Refusal | Unsupported | Fault
"""An implementation's answer to a request."""
