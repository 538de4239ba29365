"""What differs between Kubernetes releases, as data.

This table is the only place that knows releases; the feature gates, its largest part, are a data
file with a column for each. Everything else
asks a `Release` what holds in it, and no algorithm compares version numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numaproof.reference.cadvisor.discovery import NO_CPU
from numaproof.reference.departures.defects import DEFECTS
from numaproof.reference.kubelet import gates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.kubelet.gates import Gate, Maturity
    from numaproof.reference.pods.pod_level import PodLevel


@dataclass(frozen=True, slots=True)
class Release:
    """One release as the managers behave in it.

    Attributes:
        version: the minor release.
        gates: its feature gates by name.
        cpu_options: the options of the static CPU Manager policy and how mature they are.
        topology_options: the options of the Topology Manager's policies, likewise.
        uncore_takes_odd_requests: whether a request that is no multiple of a core's threads can
            be met within a part of an uncore cache.
        pod_level, pod_level_without_gate: what resources of a pod as a whole do with the gate
            ``PodLevelResources`` on, and off.
        pod_entries: whether checkpoints keep what pods have as a whole, too.
        checkpoint_attempts: the formats that a CPU Manager checkpoint is tried as, in order.
        cpu_checkpoint_type: what a CPU Manager checkpoint's structure is called; besides, all
            releases take the checksum of the name that 1.33 has for it.
        migration_error: how a failure to move a version 1 checkpoint on begins.
        memory_takes_no_checksum: whether a Memory Manager checkpoint without checksum is taken
            as it is.
        memory_checkpoint_type: what a Memory Manager checkpoint's structure is called, likewise.
        device_nodes_only: whether hints for devices are looked for among the nodes that a device
            of the resource is near to, in ascending order, instead of all in the machine's order.
        no_cpu: how discovery begins its complaint about a tree without CPUs.
        defects: the names of the defects that it has and that end with an answer.
    """

    version: str
    gates: Mapping[str, Gate] = field(repr=False)
    cpu_options: Mapping[str, Maturity]
    topology_options: Mapping[str, Maturity]
    uncore_takes_odd_requests: bool
    pod_level: PodLevel
    pod_level_without_gate: PodLevel
    pod_entries: bool
    checkpoint_attempts: tuple[str, ...]
    cpu_checkpoint_type: str
    migration_error: str
    memory_takes_no_checksum: bool
    memory_checkpoint_type: str
    device_nodes_only: bool
    no_cpu: str
    defects: frozenset[str]

    def has(self, defect: str) -> bool:
        """Whether this release behaves as the named defect describes."""
        return defect in self.defects

    def under(self, gates: Mapping[str, bool]) -> Release:
        """The release as it behaves with these feature gates."""
        changed: dict[str, Any] = {}
        for gate, changes in _UNDER_GATES.items():
            if gates.get(gate):
                changed |= changes
        return replace(self, **changed) if changed else self


_UNDER_GATES: Mapping[str, Mapping[str, Any]] = {
    "PodLevelResourceManagers": {
        "pod_level": "budget",
        "pod_entries": True,
        "checkpoint_attempts": ("V3", "", "V1"),
    },
}
"""What a gate changes in a release that has it."""


_OPTIONS_1_33: dict[str, Maturity] = {
    "align-by-socket": "alpha",
    "distribute-cpus-across-cores": "alpha",
    "distribute-cpus-across-numa": "beta",
    "full-pcpus-only": "stable",
    "prefer-align-cpus-by-uncorecache": "alpha",
    "strict-cpu-reservation": "beta",
}
_OPTIONS_1_34: dict[str, Maturity] = {
    **_OPTIONS_1_33,
    "prefer-align-cpus-by-uncorecache": "beta",
}
_OPTIONS_1_35: dict[str, Maturity] = {**_OPTIONS_1_34, "strict-cpu-reservation": "stable"}
_OPTIONS_1_36: dict[str, Maturity] = {
    **_OPTIONS_1_35,
    "prefer-align-cpus-by-uncorecache": "stable",
}

_TOPOLOGY_OPTIONS_1_33: dict[str, Maturity] = {
    "prefer-closest-numa-nodes": "stable",
    "max-allowable-numa-nodes": "beta",
}
_TOPOLOGY_OPTIONS_1_35: dict[str, Maturity] = {
    **_TOPOLOGY_OPTIONS_1_33,
    "max-allowable-numa-nodes": "stable",
}


def _defects(version: str) -> frozenset[str]:
    return frozenset(
        defect.name for defect in DEFECTS if defect.answers and version in defect.releases
    )


_1_33 = Release(
    version="1.33",
    gates=gates.of_release("1.33"),
    cpu_options=_OPTIONS_1_33,
    topology_options=_TOPOLOGY_OPTIONS_1_33,
    uncore_takes_odd_requests=False,
    pod_level="QoS class",
    pod_level_without_gate="ignored",
    pod_entries=False,
    checkpoint_attempts=("V1", ""),
    cpu_checkpoint_type="state.CPUManagerCheckpoint",
    migration_error="error migrating v1 checkpoint state to v2 checkpoint state",
    memory_takes_no_checksum=False,
    memory_checkpoint_type="state.MemoryManagerCheckpoint",
    device_nodes_only=False,
    no_cpu="Any CPU is not available",
    defects=_defects("1.33"),
)
_1_34 = replace(
    _1_33,
    version="1.34",
    gates=gates.of_release("1.34"),
    cpu_options=_OPTIONS_1_34,
    uncore_takes_odd_requests=True,
    pod_level="shared pool",
    defects=_defects("1.34"),
)
_1_35 = replace(
    _1_34,
    version="1.35",
    gates=gates.of_release("1.35"),
    cpu_options=_OPTIONS_1_35,
    topology_options=_TOPOLOGY_OPTIONS_1_35,
    defects=_defects("1.35"),
)
_1_36 = replace(
    _1_35,
    version="1.36",
    gates=gates.of_release("1.36"),
    cpu_options=_OPTIONS_1_36,
    pod_level_without_gate="shared pool alone",
    checkpoint_attempts=("", "V1"),
    cpu_checkpoint_type="state.CPUManagerCheckpointV2",
    migration_error="failed to migrate checkpoint from v1 to v2",
    memory_takes_no_checksum=True,
    memory_checkpoint_type="state.MemoryManagerCheckpointV1",
    device_nodes_only=True,
    no_cpu=NO_CPU,
    defects=_defects("1.36"),
)

TABLE: Mapping[str, Release] = MappingProxyType(
    {release.version: release for release in (_1_33, _1_34, _1_35, _1_36)}
)
RELEASES = tuple(TABLE)
"""The minor releases, oldest first."""

NEWEST = RELEASES[-1]


class UnknownReleaseError(ValueError):
    """No such release in the table."""


def release(version: str | None, *, documented: bool = False) -> Release:
    """The release by its minor version, the newest for None; `documented` without its defects.

    Raises:
        UnknownReleaseError: the table has no such release.
    """
    found = TABLE.get(version or NEWEST)
    if found is None:
        raise UnknownReleaseError(
            f"Kubernetes release {version!r} is not one of {', '.join(RELEASES)}"
        )
    return replace(found, defects=frozenset()) if documented else found
