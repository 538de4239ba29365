"""The schema of cases, which express documented behaviours as readable tables.

Cases are plain data: properties of the machines they run on, a configuration, and steps with
expectations. `docs/cases.md` explains how to write them.
"""

# All classes are in this module: with `Machines` in its own module, Python 3.13 sometimes crashed
# at exit while collecting the types of msgspec 0.22.

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from numaproof.conformance.cases import releases
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import Level, Provider, Told

Quantities = dict[str, str | int]
"""Amounts by resource name, as in manifests."""

_SHAPE = "a number, or an expression such as ${smt * 2}"
Expression = Annotated[str, msgspec.Meta(pattern=r"^\$\{[^{}]*\}$", description=_SHAPE)]
"""A value that depends on the machine."""

Number = int | Expression
"""A number, or an expression for one."""


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a case file; unknown keys are errors."""


class ContainerSpec(Written, frozen=True):
    """The fields of a container that matter to the managers; the rest is generated."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)
    restartPolicy: Literal["Always"] | None = None  # noqa: N815 - the manifest's own word


class PodSpec(Written, frozen=True):
    """A pod: containers by name, in order, or a verbatim `spec`; a file describes `static` pods."""

    pod: str
    containers: dict[str, ContainerSpec] = msgspec.field(default_factory=dict)
    init: dict[str, ContainerSpec] = msgspec.field(default_factory=dict)
    resources: dict[str, Quantities] = msgspec.field(default_factory=dict)
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)
    static: bool = False


class DeviceSpec(Written, frozen=True):
    """A device with properties other than its NUMA nodes; its default `id` is ``dN``."""

    numa: tuple[Number, ...] | None = None
    healthy: bool = True
    id: str = ""


def device_id(number: int, own: str = "") -> str:
    """The id of a resource's device with this number, from 0: its own, or ``dN``."""
    return own or f"d{number}"


Devices = dict[str, tuple[DeviceSpec | tuple[Number, ...] | None, ...] | Expression]
"""The devices of each resource by their NUMA nodes; None if the plugin reports no topology."""


class NoArguments(Written, frozen=True):
    """A step without arguments: ``{}``."""


class MemoryChange(Written, frozen=True):
    """A change to a NUMA node's memory or to its huge pages of one size.

    `bytes` is the new amount of memory or, if `hugepages` (a page size in KiB) is given, of such
    huge pages.
    """

    node: Number
    bytes: Number
    hugepages: Number | None = None


class StartStep(Written, frozen=True):
    """A start or restart of the kubelet.

    `kubernetes` is the release to run from now on, for upgrades and downgrades. `config` is merged
    over the case's configuration. `removed_pods` lists the pods removed while the kubelet was down,
    `offline` lists the CPUs (Linux list format) taken offline since then, and `memory` lists the
    nodes whose memory has changed. If `tree` is set, the implementation discovers the machine from
    its tree. `devices` are the devices that plugins report; by default, those last reported.
    `flags` are command-line flags in addition to the configuration. If `running` is set, only the
    kubelet restarts: the containers of admitted pods run on. `new_pods` were bound to the node in
    the meantime.
    """

    config: dict[str, Any] = msgspec.field(default_factory=dict)
    flags: tuple[str, ...] = ()
    removed_pods: tuple[str, ...] = msgspec.field(default=(), name="gone")
    offline: str = ""
    memory: tuple[MemoryChange, ...] = ()
    tree: bool = False
    devices: Devices | None = None
    kubernetes: str | None = None
    running: bool = False
    new_pods: tuple[PodSpec, ...] = msgspec.field(default=(), name="new")


class RemoveStep(Written, frozen=True):
    """A pod, or one of its containers, ends."""

    pod: str
    container: str | None = None


class EndStep(Written, frozen=True):
    """A container ends by itself, while its pod remains."""

    pod: str
    container: str


class HintsStep(Written, frozen=True):
    """Requests the hints for a container or, if none is named, for the whole pod."""

    pod: PodSpec | str
    container: str | None = None


class AssignStep(Written, frozen=True):
    """Assigns CPUs on the case's machine, without a node."""

    available: str
    count: Number
    options: dict[str, str] = msgspec.field(default_factory=dict)


class MergeStep(Written, frozen=True):
    """Merges hints without a node, like the protocol's `merge`."""

    nodes: tuple[Number, ...]
    policy: str
    providers: tuple[dict[str, Any] | None, ...]
    options: dict[str, str] = msgspec.field(default_factory=dict)
    distances: dict[str, tuple[int, ...]] | None = None


Tampering = Literal[
    "truncate", "checksum", "policy", "field", "delete", "empty", "garbage", "space", "write"
]
OfTwoParts = Literal["old checksum", "old policy", "data", "data checksum", "no data"]

Fields = dict[str, Any]
"""The fields of a checkpoint, as in `numaproof.conformance.cases.checkpoints.text`."""

FileName = Literal["cpu_manager_state", "memory_manager_state"]
"""The checkpoint files that cases may edit."""


class TamperStep(Written, frozen=True):
    """An edit of a checkpoint file between two starts.

    `how`: ``truncate`` keeps the first half, ``checksum`` makes all checksums wrong, ``policy``
    misspells `static`, ``field`` adds an unknown field, ``space`` adds white space, ``empty`` and
    ``delete`` do what they say, and ``garbage`` writes bytes that are not JSON. ``write`` replaces
    the contents with `text`, or with a `checkpoint` of the given fields and its checksum. Only
    ``write`` changes missing or empty files. In files with two parts, ``old checksum`` and ``old
    policy`` damage the part for earlier releases, ``data`` and ``data checksum`` damage the other
    part, and ``no data`` removes it.
    """

    file: FileName
    how: Tampering | OfTwoParts
    text: str = ""
    checkpoint: Fields | None = None


# What steps expect


class CPUsExpected(Written, frozen=True):
    """Conditions on a CPU set; sets are in the Linux list format.

    `cores`, `sockets`, `numa_nodes` and `uncore_caches` count those that contain at least one CPU
    of the set. `per_node` lists the number of the set's CPUs on each node that has any, sorted.
    `same_as`, `disjoint_from_container` and `within_container` refer to another container as
    ``POD/CONTAINER``.
    """

    equals: str | None = None
    count: Number | None = None
    at_least: Number | None = None
    within: str | None = None
    contains: str | None = None
    disjoint_from: str | None = None
    whole_cores: bool | None = None
    cores: Number | None = None
    sockets: Number | None = None
    numa_nodes: Number | None = None
    uncore_caches: Number | None = None
    per_node: tuple[Number, ...] | None = None
    same_as: str | None = None
    disjoint_from_container: str | None = None
    within_container: str | None = None


CPUs = int | str | CPUsExpected
"""A number of CPUs, a set (``shared`` is the shared pool), or conditions."""


class BlockExpected(Written, frozen=True):
    """Memory of one type on a group of nodes, in bytes."""

    numa: tuple[Number, ...]
    size: Number
    type: str = "memory"


Memory = tuple[BlockExpected, ...] | dict[str, Number]
"""All blocks, in any order; or the total bytes by memory type."""


class DevicesExpected(Written, frozen=True):
    """The NUMA nodes of each device, in any order; checked at level ``placement`` and above."""

    numa: tuple[tuple[Number, ...], ...]


class ContainerExpected(Written, frozen=True):
    """The expected resources of a container; `affinity` is its complete topology hint.

    `devices` gives, for each resource, the number, ids or nodes of the devices. `quota` is whether
    CFS quota limits the container; the case's `tell` must request it.
    """

    exclusive: CPUs | None = None
    cpus: CPUs | None = None
    affinity: dict[str, Any] | None = None
    memory: Memory | None = None
    devices: dict[str, int | str | tuple[str, ...] | DevicesExpected] | None = None
    quota: bool | None = None


class UpdateExpected(Written, frozen=True):
    """An expected update in a reconcile pass."""

    pod: str
    container: str
    cpus: CPUs | None = None


class Expected(Written, frozen=True):
    """The expected answer to a step; by default, success.

    `refused` is the reason for a refused admission or the stage of a refused start. `message` is
    the exact text of the refusal, compared only at level ``kubelet``. `checkpoints` gives all
    fields of each file; files with two parts contain them twice. `files` gives the text or some
    fields of each file. `readmission` lists the pods that must be refused when they are admitted
    again after a restart, with the reasons; all other pods must be admitted. `memory` is the
    allocatable memory that a start reports. `hint` and `admit` are the result of a merge.

    `metrics` are some of the managers' metrics; those with labels that are missing are zero.

    `machine` lists expected fields of a discovered machine, with `nodes` by node id instead of
    `topology`, their `cores` by lowest CPU, the `cpus` of nodes and cores as sets, and the ids of
    all nodes as `node_ids`. `config` lists fields of the effective configuration, and `pod` is the
    status of a refused pod; both require the case's `tell`. `preempted` lists the pods that must
    leave the node to make room, in order and by name, each with its expected `reason` and
    `message`.
    """

    refused: str | None = None
    message: str | None = None
    all: CPUs | None = None
    allocatable: CPUs | None = None
    readmission: dict[str, str] = msgspec.field(default_factory=dict)
    shared: CPUs | None = None
    containers: dict[str, ContainerExpected] = msgspec.field(default_factory=dict)
    pods: dict[str, dict[str, ContainerExpected]] | None = None
    files: dict[str, str | dict[str, Any]] = msgspec.field(default_factory=dict)
    checkpoints: dict[FileName, Fields] = msgspec.field(default_factory=dict)
    updates: tuple[UpdateExpected, ...] | None = None
    hints: dict[Provider, Any] | None = None
    cpus: CPUs | None = None
    machine: dict[str, Any] | None = None
    memory: Memory | None = None
    hint: dict[str, Any] | None = None
    admit: bool | None = None
    config: dict[str, Any] | None = None
    pod: dict[str, str] | None = None
    metrics: dict[str, Number] | None = None
    preempted: dict[str, dict[str, str]] | None = None


class ExpectedIn(Expected, frozen=True, kw_only=True):
    """The expected answer in a range of releases, such as ``"< 1.36"``.

    `anything` means ``expect: anything`` for these releases.
    """

    kubernetes: str
    anything: bool = False

    @property
    def alone(self) -> Expectation:
        """The expectation, without its range of releases."""
        if self.anything:
            return "anything"
        return Expected(**{name: getattr(self, name) for name in Expected.__struct_fields__})


Expectation = Expected | Literal["anything"]
"""The expectation for one release."""


class Step(Written, frozen=True):
    """A step: exactly one verb, and the expected answer.

    With ``expect: anything``, the answer is judged only by the invariants and by comparison with
    the reference, as in fuzzing. If releases differ, `expect` is a list of expectations for ranges
    of releases.
    """

    start: StartStep | None = None
    admit: PodSpec | str | None = None
    resize: PodSpec | None = None
    remove: RemoveStep | str | None = None
    end: EndStep | None = None
    state: NoArguments | None = None
    reconcile: NoArguments | None = None
    hints: HintsStep | None = None
    assign: AssignStep | None = None
    discover: NoArguments | None = None
    tamper: TamperStep | None = None
    devices: Devices | None = None
    merge: MergeStep | None = None
    expect: Expectation | tuple[ExpectedIn, ...] = Expected()

    def on(self, release: str) -> Step:
        """The step with only the expectation for a release.

        Raises:
            LookupError: there is no expectation for that release.
        """
        if not isinstance(self.expect, tuple):
            return self
        for one in self.expect:
            if releases.includes(one.kubernetes, release):
                return msgspec.structs.replace(self, expect=one.alone)
        raise LookupError(f"there is no expectation for Kubernetes {release}")

    @property
    def verb(self) -> str:
        """The name of the step's verb."""
        return next(verb for verb in VERBS if getattr(self, verb) is not None)


def open_step(**verb: Any) -> Step:
    """A step with this verb that accepts any answer."""
    return Step(expect="anything", **verb)


VERBS = tuple(field for field in Step.__struct_fields__ if field != "expect")


Comparison = int | str
"""A value, or a comparison such as ``">= 2"``."""


class Machines(Written, frozen=True):
    """The machines that a case runs on, selected by names (globs), properties or a condition.

    A property must equal a value (``2``, ``true``) or satisfy a comparison (``">= 2"``). For the
    properties, see `numaproof.conformance.cases.machine_properties.Facts`.
    """

    names: tuple[str, ...] = ()
    where: str = ""
    cpus: Comparison | None = None
    cores: Comparison | None = None
    sockets: Comparison | None = None
    numa_nodes: Comparison | None = None
    cpu_nodes: Comparison | None = None
    memory_only_nodes: Comparison | None = None
    uncore_caches: Comparison | None = None
    smt: Comparison | None = None
    cpus_per_node: Comparison | None = None
    cpus_per_socket: Comparison | None = None
    cpus_per_uncore_cache: Comparison | None = None
    uniform: bool | None = None
    dense: bool | None = None
    memory_nodes: Comparison | None = None
    hugepage_sizes: Comparison | None = None
    equidistant: bool | None = None

    def comparisons(self) -> dict[str, Comparison]:
        """The required values of properties, by name."""
        given = {name: getattr(self, name) for name in self.__struct_fields__[2:]}
        return {name: value for name, value in given.items() if value is not None}


class Case(Written, frozen=True):
    """A documented behaviour, its requirements and the steps that test it.

    `kubernetes` restricts the releases (``">= 1.34"``), `defect` is the named defect that makes a
    kubelet fail the case, and `bugs` are related public issues. `devices` are the devices that
    plugins report from the first start on, and `preferred` are those that each plugin would prefer
    to allocate. The plugins of the resources in `failing` fail to allocate until a step reports
    their devices again. `tell` lists the optional fields that every start requests. With
    `check_node`, pods must also fit into the node's allocatable resources. `machine` is the machine
    itself, in case files from fuzzing. If `tree` is set and the implementation claims `discover`,
    starts discover the machine from its tree until a start changes the machine.
    """

    id: str
    title: str
    requirements: tuple[str, ...]
    steps: tuple[Step, ...]
    level: Level = "admission"
    machines: Machines = Machines()
    kubernetes: str = ""
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    let: dict[str, str | int] = msgspec.field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    defect: str | None = None
    devices: Devices = msgspec.field(default_factory=dict)
    preferred: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    failing: tuple[str, ...] = ()
    tell: tuple[Told, ...] = ()
    check_node: bool = False
    machine: MachineInfo | None = None
    tree: bool = False
