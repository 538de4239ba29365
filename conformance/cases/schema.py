"""The form of a case: one documented behaviour, as a table that a person can read.

A case is plain data. It names the machines it runs on by their properties, a configuration, and
steps; what it expects stands beside each step. `docs/cases.md` is the guide to writing one.
"""

# All structures are in this module: with `Machines` in one of its own, Python 3.13 crashed now and
# then at exit, when it collected the types of msgspec 0.22.

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from numaproof.conformance.cases import releases
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.messages import Level, Provider, Told

Quantities = dict[str, str | int]
"""Amounts by resource name, as in a manifest."""

_SHAPE = "a number, or an expression such as ${smt * 2}"
Expression = Annotated[str, msgspec.Meta(pattern=r"^\$\{[^{}]*\}$", description=_SHAPE)]
"""A value that depends on the machine."""

Number = int | Expression
"""A count, or an expression for one."""


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a case file: an unknown key is an error."""


class ContainerSpec(Written, frozen=True):
    """A container by what the managers look at; the rest of the manifest is filled in."""

    requests: Quantities = msgspec.field(default_factory=dict)
    limits: Quantities = msgspec.field(default_factory=dict)
    restartPolicy: Literal["Always"] | None = None  # noqa: N815 - the manifest's own word


class PodSpec(Written, frozen=True):
    """A pod: containers by name, in order; or the `spec` of a manifest as it stands."""

    pod: str
    containers: dict[str, ContainerSpec] = msgspec.field(default_factory=dict)
    init: dict[str, ContainerSpec] = msgspec.field(default_factory=dict)
    resources: dict[str, Quantities] = msgspec.field(default_factory=dict)
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class DeviceSpec(Written, frozen=True):
    """One device that is not merely on some nodes."""

    numa: tuple[Number, ...] | None = None
    healthy: bool = True


Devices = dict[str, tuple[DeviceSpec | tuple[Number, ...] | None, ...] | Expression]
"""The devices of each resource by their NUMA nodes; None where the plugin reports no topology."""


class NoArguments(Written, frozen=True):
    """A step that needs nothing said: ``{}``."""


class MemoryChange(Written, frozen=True):
    """What a NUMA node has since it was changed: all its memory, or its huge pages of one size.

    `bytes` are of memory, or with `hugepages` (the size of a page in KiB) of such pages.
    """

    node: Number
    bytes: Number
    hugepages: Number | None = None


class StartStep(Written, frozen=True):
    """A kubelet start or restart.

    `kubernetes` is the release that runs from here on, for an upgrade or a downgrade of the node.
    `config` is merged over the case's own. `removed_pods` names pods that left while the kubelet
    was down, `offline` CPUs (Linux list format) that the machine has lost since, `memory` what its
    nodes have now where that has changed. `tree` makes the implementation discover the machine from
    its tree. `devices` are what the plugins report then; without them, what they reported last.
    `flags` is a command line that goes with the configuration.
    """

    config: dict[str, Any] = msgspec.field(default_factory=dict)
    flags: tuple[str, ...] = ()
    removed_pods: tuple[str, ...] = msgspec.field(default=(), name="gone")
    offline: str = ""
    memory: tuple[MemoryChange, ...] = ()
    tree: bool = False
    devices: Devices | None = None
    kubernetes: str | None = None


class RemoveStep(Written, frozen=True):
    """A pod, or one container of it, has ended."""

    pod: str
    container: str | None = None


class HintsStep(Written, frozen=True):
    """Asks for hints for a container of a pod, or with None for the pod as a whole."""

    pod: PodSpec | str
    container: str | None = None


class AssignStep(Written, frozen=True):
    """CPU assignment alone, on the machine of the case."""

    available: str
    count: Number
    options: dict[str, str] = msgspec.field(default_factory=dict)


class MergeStep(Written, frozen=True):
    """The Topology Manager's merge alone, without a node; as the protocol's `merge`."""

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
"""A checkpoint by its fields, as `numaproof.conformance.cases.checkpoints.text` takes them."""

FileName = Literal["cpu_manager_state", "memory_manager_state"]
"""The checkpoint files that the harness changes."""


class TamperStep(Written, frozen=True):
    """The harness's own change to a checkpoint file between two starts.

    `how`: ``truncate`` keeps the first half; ``checksum`` makes each wrong; ``policy`` misspells
    static; ``field`` adds an unknown field; ``delete``, ``empty`` and ``garbage`` do that;
    ``space`` adds white space; ``write`` replaces the content by `text`, or by a `checkpoint` of
    these fields with its checksum. A file that is missing or empty is left alone, but for
    ``write``. In a file of two parts, ``old checksum`` and ``old policy`` damage the part for
    earlier releases, ``data`` and ``data checksum`` the other; ``no data`` takes that out.
    """

    file: FileName
    how: Tampering | OfTwoParts
    text: str = ""
    checkpoint: Fields | None = None


# What a step expects


class CPUsExpected(Written, frozen=True):
    """What must hold of a set of CPUs; sets are in the Linux list format.

    `cores`, `sockets`, `numa_nodes` and `uncore_caches` are how many the set touches;
    `per_node` the sorted numbers of its CPUs on the nodes that it touches; `same_as` and
    `disjoint_from_container` name another container as ``POD/CONTAINER``.
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
"""A number of CPUs, a set of them (``shared`` is the shared pool), or what must hold."""


class BlockExpected(Written, frozen=True):
    """Memory of one type on a group of nodes, in bytes."""

    numa: tuple[Number, ...]
    size: Number
    type: str = "memory"


Memory = tuple[BlockExpected, ...] | dict[str, Number]
"""Every block, in any order; or the sum in bytes of the blocks of each type, wherever they lie."""


class DevicesExpected(Written, frozen=True):
    """The NUMA nodes of each device that is held, in any order; at level ``placement``."""

    numa: tuple[tuple[Number, ...], ...]


class ContainerExpected(Written, frozen=True):
    """What a container is expected to have; `affinity` is the hint kept for it, in full.

    `devices` are by resource: how many, which ids, or on which nodes. `quota` is whether a CFS
    quota is to limit it, where the case has its starts `tell` it.
    """

    exclusive: CPUs | None = None
    cpus: CPUs | None = None
    affinity: dict[str, Any] | None = None
    memory: Memory | None = None
    devices: dict[str, int | str | tuple[str, ...] | DevicesExpected] | None = None
    quota: bool | None = None


class UpdateExpected(Written, frozen=True):
    """One update that a reconcile pass is expected to send."""

    pod: str
    container: str
    cpus: CPUs | None = None


class Expected(Written, frozen=True):
    """What the answer to a step is expected to be; without it, success is expected.

    `refusal` is the reason of a refused admission or the stage of a refused start; `message`
    its exact text, compared at level ``kubelet`` alone. `checkpoints` are whole files by their
    fields, which a file of two parts says twice; `files` are their text or some of their fields.
    `readmission` gives, for the pods that a restart admits again, the reason why one is refused;
    the others must be admitted. `memory` is what a start reports as allocatable, `hint` and
    `admit` are what a merge comes to. `machine` is what must be in a discovered machine: its
    fields, with `nodes` by node id in the place of `topology`, in them `cores` by lowest CPU, and
    `cpus` of nodes and cores as sets; `node_ids` is the list of the ids of all nodes. `config` are
    fields of the configuration in force, and `pod` what becomes of a refused one, where the case
    has its starts `tell` them.
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


class ExpectedIn(Expected, frozen=True, kw_only=True):
    """What is expected in the releases that `kubernetes` names, such as ``"< 1.36"``.

    `anything` is ``expect: anything`` for these releases alone.
    """

    kubernetes: str
    anything: bool = False

    @property
    def alone(self) -> Expectation:
        """The expectation without the releases it is for."""
        if self.anything:
            return "anything"
        return Expected(**{name: getattr(self, name) for name in Expected.__struct_fields__})


Expectation = Expected | Literal["anything"]
"""What is expected in one release."""


class Step(Written, frozen=True):
    """One step: exactly one of its verbs, and what is expected of the answer.

    ``expect: anything`` leaves the answer to the invariants and to the comparison with the
    reference, as fuzzing does. Where releases answer differently, `expect` is a list, of which
    one item applies to each release.
    """

    start: StartStep | None = None
    admit: PodSpec | str | None = None
    remove: RemoveStep | str | None = None
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
        """The step with what is expected in one release alone.

        Raises:
            LookupError: nothing is expected in that release.
        """
        if not isinstance(self.expect, tuple):
            return self
        for one in self.expect:
            if releases.includes(one.kubernetes, release):
                return msgspec.structs.replace(self, expect=one.alone)
        raise LookupError(f"it does not say what to expect in Kubernetes {release}")

    @property
    def verb(self) -> str:
        """The name of the one verb that this step has."""
        return next(verb for verb in VERBS if getattr(self, verb) is not None)


def open_step(**verb: Any) -> Step:
    """A step that expects anything, by its verb."""
    return Step(expect="anything", **verb)


VERBS = tuple(field for field in Step.__struct_fields__ if field != "expect")


Comparison = int | str
"""A value, or a comparison with one (``">= 2"``)."""


class Machines(Written, frozen=True):
    """Which machines a case runs on: names (globs), properties, or a condition over properties.

    A property is compared with a value (``2``, ``true``) or a comparison (``">= 2"``); the
    properties are those of `numaproof.conformance.cases.machine_properties.Facts`.
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
        """The properties that are asked for, by name."""
        given = {name: getattr(self, name) for name in self.__struct_fields__[2:]}
        return {name: value for name, value in given.items() if value is not None}


class Case(Written, frozen=True):
    """One behaviour, the requirements that state it, and the steps that show it.

    `kubernetes` narrows the releases (``">= 1.34"``); `defect` names the defect of the release
    table that makes a kubelet fail this case; `bugs` the public issues it is about; `devices`
    what the device plugins report from the first start on, and `preferred` which of them each
    plugin would have allocated; `tell` what every start asks to be told of; `machine` is the
    machine itself, in a case file made by fuzzing. With `tree` every start discovers the
    machine in its tree, where the implementation claims `discover`, until a start changes the
    machine.
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
    tell: tuple[Told, ...] = ()
    machine: MachineInfo | None = None
    tree: bool = False
