"""The table of features that an implementation can claim.

As in the Gateway API, a feature is *core* if every cluster uses it and *extended* if
implementations can do without it. Most features are listed in ``features`` of ``hello``. The others
follow from the operations and policies in ``hello`` and must not be listed again.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.protocol.messages import Hello

Support = Literal["core", "extended"]


class Feature(msgspec.Struct, frozen=True):
    """A feature that can be claimed.

    Attributes:
        name: the name in ``hello`` and in reports.
        support: whether the feature is core or extended.
        meaning: what an implementation with the feature does, in one line.
        operations: the operations that the feature needs.
        policies: the managers that the feature needs, each with the policies that provide the
            feature.
        is_named: whether ``features`` lists the feature; if not, it follows from the operations
            and policies.
        since: the protocol version that introduced the feature. Features of version 1 are assumed
            if ``hello`` lists none.
    """

    name: str
    support: Support
    meaning: str
    operations: tuple[str, ...] = ()
    policies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    is_named: bool = True
    since: Literal["1", "1.1", "1.2"] = "1"

    def is_allowed(self, hello: Hello) -> bool:
        """Whether the implementation's operations and policies allow the feature."""
        return all(one in hello.operations for one in self.operations) and all(
            set(getattr(hello.policies, manager)) & set(policies)
            for manager, policies in self.policies
        )


CHECKPOINT_FILES = "checkpoint-files"

_MEANINGS = {
    "init-containers": "app containers reuse the resources of their pod's init containers",
    "sidecars": "sidecars keep their resources as long as their pod exists",
    "container-removal": "`remove` with a `container` frees that container's resources",
    "restart": "after another `start` in the same `state_dir`, pods on the node keep their"
    " resources",
    "configuration-validation": "invalid configurations are refused: malformed values, unknown"
    " policies and options, conflicting options",
    "reconfiguration": "a restart is refused if the stored state doesn't fit the new configuration"
    " or machine",
    "feature-gates": "`featureGates` in the configuration take effect",
    "pod-level-resources": "`spec.resources` determines a pod's QoS class",
    "pod-level-resource-managers": "with the gate `PodLevelResourceManagers`, a pod gets CPUs and"
    " memory as a whole and divides them among its containers",
    "huge-pages": "the Memory Manager reserves and pins `hugepages-SIZE` like memory",
    CHECKPOINT_FILES: "state is stored in `cpu_manager_state` and `memory_manager_state`, in the"
    " kubelet's formats, and damaged files are refused",
    "quota": "`start` can ask whether CFS quota limits each container",
    "effective-configuration": "`start` can ask for the effective configuration, with its defaults",
    "refused-pods": "`start` can ask for the outcome of refused pods: phase, reason, message",
    "flags": "`flags` of `start` take effect as on the kubelet's command line",
    "preferred-devices": "a device plugin can prefer some of its devices",
    "running-restart": "`start` can name containers that run on while only the kubelet restarts",
    "container-end": "containers can end by themselves while their pod remains",
    "failing-plugins": "a device plugin can fail to allocate",
    "static-pods": "pods can come from a file on the node instead of from the API server",
    "metrics": "`start` can ask for the managers' metrics",
    "node-allocatable": "`start` can ask that pods must also fit into the node's allocatable"
    " resources",
    "cpu-manager": "containers of Guaranteed pods get exclusive CPUs",
    "memory-manager": "memory of Guaranteed pods is pinned to NUMA nodes",
    "topology-manager": "the hints of all managers are merged, and a policy admits or refuses the"
    " pod",
    "devices": "device plugins report devices, and pods request them",
    "discovery": "the machine is discovered from a tree with `sys/` and `proc/`",
    "hints": "topology hints are returned for a container or a pod",
    "reconcile": "a single pass of the reconcile loop can be run",
    "resize": "the resources of a pod on the node can be changed in place",
    "merge": "the Topology Manager's merge can be run on its own",
    "assignment": "CPUs can be assigned without any other manager",
    "coverage": "the blocks of code that calls reached can be asked for",
}
"""What an implementation with each feature does, in one line."""

_STATIC = (("cpu", ("static",)),)
_STATIC_MEMORY = (("memory", ("Static",)),)
_ALIGNING = (("topology", ("best-effort", "restricted", "single-numa-node")),)


def _feature(name: str, support: Support, operations: str, **more: Any) -> Feature:
    return Feature(name, support, _MEANINGS[name], tuple(operations.split()), **more)


_TABLE = (
    _feature("init-containers", "core", "admit"),
    _feature("sidecars", "core", "admit"),
    _feature("container-removal", "core", "remove"),
    _feature("restart", "core", "start"),
    _feature("configuration-validation", "core", "start"),
    _feature("reconfiguration", "extended", "start"),
    _feature("feature-gates", "extended", "start"),
    _feature("pod-level-resources", "extended", "admit"),
    _feature("pod-level-resource-managers", "extended", "admit"),
    _feature("huge-pages", "extended", "admit", policies=_STATIC_MEMORY),
    _feature(CHECKPOINT_FILES, "extended", "start"),
    _feature("quota", "extended", "admit", since="1.1"),
    _feature("effective-configuration", "extended", "start", since="1.1"),
    _feature("refused-pods", "extended", "admit", since="1.1"),
    _feature("flags", "extended", "start", since="1.1"),
    _feature("preferred-devices", "extended", "devices", since="1.1"),
    _feature("running-restart", "extended", "start", since="1.2"),
    _feature("failing-plugins", "extended", "devices", since="1.2"),
    _feature("static-pods", "extended", "admit", since="1.2"),
    _feature("metrics", "extended", "state", since="1.2"),
    _feature("node-allocatable", "extended", "start admit", since="1.2"),
    _feature("cpu-manager", "core", "start admit", policies=_STATIC, is_named=False),
    _feature("memory-manager", "extended", "start admit", policies=_STATIC_MEMORY, is_named=False),
    _feature("topology-manager", "extended", "start admit", policies=_ALIGNING, is_named=False),
    _feature("devices", "extended", "devices", is_named=False),
    _feature("discovery", "extended", "discover", is_named=False),
    _feature("hints", "extended", "hints", is_named=False),
    _feature("reconcile", "extended", "reconcile", is_named=False),
    _feature("resize", "extended", "resize", is_named=False, since="1.2"),
    _feature("container-end", "extended", "end", is_named=False, since="1.2"),
    _feature("merge", "extended", "merge", is_named=False),
    _feature("assignment", "extended", "assign", is_named=False),
    _feature("coverage", "extended", "coverage", is_named=False, since="1.2"),
)

FEATURES: Mapping[str, Feature] = MappingProxyType({one.name: one for one in _TABLE})
"""Every feature by name."""

NAMED = tuple(feature.name for feature in FEATURES.values() if feature.is_named)
"""The features that ``features`` of ``hello`` can list."""


def assumed_features(hello: Hello) -> tuple[str, ...]:
    """The features assumed if ``hello`` lists none: all that its other claims allow.

    Checkpoint files are assumed only at level ``kubelet``, and features of later protocol versions
    are never assumed.
    """
    return tuple(
        name
        for name in NAMED
        if FEATURES[name].since == "1"
        and FEATURES[name].is_allowed(hello)
        and (name != CHECKPOINT_FILES or hello.level == "kubelet")
    )


def claimed_features(hello: Hello) -> tuple[str, ...]:
    """The features that an implementation lists, or those assumed if it lists none."""
    return assumed_features(hello) if hello.features is None else hello.features
