"""The differences between Kubernetes releases, as data.

A release consists of its feature gates, its policy options, the formats of its files, and its
deviations from the rules. Only this table knows about releases; no other code compares version
numbers. Feature gates, its largest part, are in a data file with a column for each release.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numaproof.protocol.releases import NEWEST, RELEASES
from numaproof.reference.cadvisor.cpus import CoreIdentity
from numaproof.reference.cadvisor.discovery import NO_CPU, NodeOrder
from numaproof.reference.config import gates
from numaproof.reference.config.reservation import ReservationRounding
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.cpu.distribution import DistributedAssignment
from numaproof.reference.cpu.policy import CPURules, StaticCPUPolicy
from numaproof.reference.deviations import formats
from numaproof.reference.deviations.defects import OVERRIDES
from numaproof.reference.deviations.deviation import defect_of, deviation_of, name_of
from numaproof.reference.deviations.pods import DefaultsBesideLimits, EmptyPodLevelDecides
from numaproof.reference.metrics import (
    ALIGNED,
    COUNTERS,
    EXCLUSIVE,
    NOT_ALIGNED,
    PER_NODE,
    SHARED_POOL,
)
from numaproof.reference.topology.options import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from _typeshed import DataclassInstance

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.checkpoints.cpu import CPUFormats
    from numaproof.reference.checkpoints.formats import Formats
    from numaproof.reference.config.gates import Gate, Maturity
    from numaproof.reference.pods.pod_level import PodLevel


Rule = TypeVar("Rule")
Changeable = TypeVar("Changeable", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Release:
    """The behaviour of the managers in one release.

    Attributes:
        version: the minor release.
        gates: its feature gates by name.
        gates_refused: the beginning of the message if feature gates are refused. It is empty if the
            kubelet panics instead.
        cpu_options: the static CPU Manager policy's options, with their maturity.
        topology_options: the Topology Manager policies' options, with their maturity.
        hidden_topology_option: the message for a Topology Manager option whose maturity level is
            disabled.
        foreign_memory_policies: Memory Manager policies that exist only on other platforms.
        unknown_fields: configuration fields that the release does not have and ignores.
        pod_level, pod_level_without_gate: the effect of pod-level resources with the
            ``PodLevelResources`` gate on, and with it off.
        cpu_files, memory_files: the formats of the CPU Manager's and the Memory Manager's
            checkpoints.
        under_gates: the attributes that each of these gates changes if it is on, nested for
            attributes of formats.
        without_gates: deviations of earlier releases that return if the gate is off.
        reads_cpus_for_every_policy: whether the CPU Manager reads the machine's CPUs even with
            the ``none`` policy, and refuses to start if it cannot.
        no_cpu: the beginning of discovery's error for a tree without CPUs.
        flag_words: words to replace in errors about flags, and their replacements.
        metrics: the names of the managers' metrics, as in `numaproof.reference.metrics.keep_known`.
        single_pair_flags: flags that accept only one pair, but several pairs in other releases.
        resizes_pods: whether it resizes pods in place by default.
        deviations: the classes that override rules.

    Requirements: CPU-OPT-ALIGNSOCKET-001, CPU-OPT-DISTCORES-001, CPU-OPT-DISTNUMA-001,
    CPU-OPT-FULLPCPUS-001, CPU-OPT-STRICT-001, CPU-OPT-UNCORE-001.
    """

    version: str
    gates: Mapping[str, Gate] = field(repr=False)
    gates_refused: str
    cpu_options: Mapping[str, Maturity]
    topology_options: Mapping[str, Maturity]
    hidden_topology_option: str
    foreign_memory_policies: tuple[str, ...]
    unknown_fields: frozenset[str]
    pod_level: PodLevel
    pod_level_without_gate: PodLevel
    cpu_files: CPUFormats
    memory_files: Formats
    under_gates: Mapping[str, Mapping[str, Any]]
    without_gates: Mapping[str, type]
    reads_cpus_for_every_policy: bool
    no_cpu: str
    flag_words: Mapping[str, str]
    single_pair_flags: frozenset[str]
    metrics: frozenset[str]
    resizes_pods: bool
    deviations: tuple[type, ...]

    def rule(self, base: type[Rule]) -> type[Rule]:
        rule: type = base
        return cast("type[Rule]", with_deviations(rule, self.deviations))

    def round_reservation(self, reserved: Fraction) -> Fraction:
        return self.rule(ReservationRounding)().of(reserved)

    @property
    def by_siblings(self) -> bool:
        """Whether cores are the thread siblings that the kernel lists."""
        return self.rule(CoreIdentity).by_siblings

    def in_order(self, machine: MachineInfo) -> MachineInfo:
        return self.rule(NodeOrder)().of(machine)

    @property
    def cpu_rules(self) -> CPURules:
        return CPURules(
            self.rule(StaticCPUPolicy), self.rule(Assignment), self.rule(DistributedAssignment)
        )

    def enabled_gates(self, decoded_config: Mapping[str, Any]) -> Mapping[str, bool]:
        """Returns whether each of the release's feature gates is on in a configuration.

        Raises:
            GateError: see `numaproof.reference.config.gates.enabled_gates`.
        """
        return gates.enabled_gates(decoded_config, self.gates)

    def pod_level_under(self, gates: Mapping[str, bool]) -> PodLevel:
        """Returns the effect of pod-level resources with these feature gates.

        Requirements: NODE-PODLEVEL-001, NODE-PODLEVEL-005, NODE-PODLEVEL-006.
        """
        on = gates.get("PodLevelResources", False)
        return self.pod_level if on else self.pod_level_without_gate

    def under(self, gates: Mapping[str, bool]) -> Release:
        """Returns the release as it behaves with these feature gates."""
        changed = self
        for gate, changes in self.under_gates.items():
            if gates.get(gate):
                changed = _apply_changes(changed, changes)
        back = tuple(one for gate, one in self.without_gates.items() if not gates.get(gate, True))
        return replace(changed, deviations=(*changed.deviations, *back)) if back else changed


def _apply_changes(whole: Changeable, changes: Mapping[str, Any]) -> Changeable:
    nested = {
        name: _apply_changes(getattr(whole, name), change) if isinstance(change, dict) else change
        for name, change in changes.items()
    }
    return replace(whole, **nested)


@cache
def with_deviations(rule: type, deviations: tuple[type, ...]) -> type:
    """Returns the class of a rule with the deviations that override the rule."""
    # An override precedes the overrides that it builds on, as a class precedes its bases.
    overrides = [one for one in reversed(deviations) if issubclass(rule, _base_rule(one))]
    return _compose_rule((*overrides, rule)) if overrides else rule


@cache
def _compose_rule(bases: tuple[type, ...]) -> type:
    """Combines a rule and its overrides; releases with the same overrides share the class."""
    return type(bases[-1].__name__, bases, {})


def _base_rule(override: type) -> type:
    """Returns the rule that an override deviates from, directly or through another override."""
    return next(base for base in override.__mro__ if "deviation" not in vars(base))


_CPU_OPTIONS = {
    "align-by-socket": "aaaaaaaa",
    "distribute-cpus-across-numa": "aaabbbbb",
    "full-pcpus-only": "bbbsssss",
    "distribute-cpus-across-cores": ".aaaaaaa",
    "prefer-align-cpus-by-uncorecache": "..aabbss",
    "strict-cpu-reservation": "..abbsss",
}
_TOPOLOGY_OPTIONS = {
    "prefer-closest-numa-nodes": "bbssssss",
    "max-allowable-numa-nodes": ".bbbbsss",
}
"""The maturity of each option in 1.30 to 1.37 as a letter; a dot means that it does not exist."""


def _options(maturity_rows: Mapping[str, str], column: int) -> Mapping[str, Maturity]:
    return {
        name: gates.MATURITIES[row[column]]
        for name, row in maturity_rows.items()
        if row[column] != "."
    }


_ROWS: Mapping[str, Mapping[str, Any]] = {
    "1.30": {
        "gates_refused": "failed to set feature gates from initial flags-based config: ",
        "hidden_topology_option": (
            "Topology Manager Policy {Level}-level Options not enabled, "
            'but option "{name}" provided'
        ),
        "foreign_memory_policies": (),
        "unknown_fields": frozenset({"mergeDefaultEvictionSettings"}),
        "pod_level": "ignored",
        "pod_level_without_gate": "ignored",
        "cpu_files": formats.CPU_1_30,
        "memory_files": formats.MEMORY_1_30,
        "under_gates": {},
        "without_gates": {},
        "reads_cpus_for_every_policy": False,
        "no_cpu": "Any CPU is not available",
        "flag_words": {
            "expected integer": "exptected integer",
            "value, expected type=quantity": "value, expected type=quantatity",
            "failed to parse the quantity:": (
                "failed to parse the quantatity, expected quantatity, got"
            ),
        },
        "single_pair_flags": frozenset({"topology-manager-policy-options"}),
        "metrics": COUNTERS,
        "resizes_pods": False,
    },
    "1.31": {"single_pair_flags": frozenset()},
    "1.32": {
        "gates_refused": "",
        "foreign_memory_policies": ("BestEffort",),
        "pod_level": "QoS class",
        "reads_cpus_for_every_policy": True,
        "metrics": COUNTERS
        | {
            EXCLUSIVE,
            SHARED_POOL,
            f"{ALIGNED}{{boundary=numa_node",
            f"{ALIGNED}{{boundary=physical",
        },
    },
    "1.33": {
        "hidden_topology_option": HIDDEN,
        "unknown_fields": frozenset(),
        "metrics": COUNTERS
        | {EXCLUSIVE, SHARED_POOL}
        | {f"{name}{{" for name in (PER_NODE, ALIGNED, NOT_ALIGNED)},
        "resizes_pods": True,
    },
    "1.34": {"pod_level": "shared pool"},
    "1.35": {"flag_words": {}},
    "1.36": {
        "pod_level_without_gate": "shared pool alone",
        "cpu_files": formats.CPU_1_36,
        "memory_files": formats.MEMORY_1_36,
        "under_gates": {
            "PodLevelResourceManagers": {
                "pod_level": "budget",
                "cpu_files": formats.PODS_CPU_1_36,
                "memory_files": formats.PODS_MEMORY_1_36,
            },
        },
        "no_cpu": NO_CPU,
    },
    "1.37": {
        "cpu_files": formats.CPU_1_37,
        "memory_files": formats.MEMORY_1_37,
        "under_gates": {
            "PodLevelResourceManagers": {
                "pod_level": "budget",
                "cpu_files": formats.PODS_CPU_1_37,
                "memory_files": {"keeps_pods": True},
            },
            "InPlacePodVerticalScalingExclusiveCPUs": {"cpu_files": {"keeps_baselines": True}},
        },
        "without_gates": {
            "PodLevelResourcesFixDefaulting": DefaultsBesideLimits,
            "PodLevelResourcesFixKubeletQOSClass": EmptyPodLevelDecides,
        },
    },
}
"""The attributes that each release changes, except gates, options and deviations."""


def _table() -> Iterator[tuple[str, Release]]:
    known: dict[str, Any] = {}
    for column, (version, changes) in enumerate(_ROWS.items()):
        known |= changes
        yield (
            version,
            Release(
                version=version,
                gates=gates.of_release(version),
                cpu_options=_options(_CPU_OPTIONS, column),
                topology_options=_options(_TOPOLOGY_OPTIONS, column),
                deviations=tuple(one for one in OVERRIDES if version in deviation_of(one).releases),
                **known,
            ),
        )


TABLE: Mapping[str, Release] = MappingProxyType(dict(_table()))
"""All releases, oldest first."""


class UnknownReleaseError(ValueError):
    """The table does not have the release."""


def release(
    version: str | None, *, follows_docs: bool = False, exceptions: frozenset[str] = frozenset()
) -> Release:
    """Returns a minor release, the newest by default.

    Args:
        version: the minor release.
        follows_docs: whether to follow the documentation where kubelets of the release break it.
        exceptions: names of defects for which `follows_docs` is inverted, and of changes to leave
            out in favour of the newest release's behaviour.

    Raises:
        UnknownReleaseError: the table does not have the release.
    """
    found = TABLE.get(version or NEWEST)
    if found is None:
        raise UnknownReleaseError(
            f"Kubernetes release {version!r} is not one of {', '.join(RELEASES)}"
        )
    if follows_docs or exceptions:
        kept = tuple(
            one
            for one in found.deviations
            if (name_of(one) in exceptions) == (follows_docs and defect_of(one) is not None)
        )
        return replace(found, deviations=kept)
    return found
