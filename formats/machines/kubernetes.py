"""Kubernetes objects that describe a node's hardware: Node, NodeResourceTopology and Numatopology.

- A Node has capacities; labels of node-feature-discovery say whether cores have several threads.
- A NodeResourceTopology (topology.node.k8s.io) has capacities and distances by NUMA node. Where
  Koordinator writes it, an annotation has the place of each CPU. Crane has its own form.
- Volcano's Numatopology has the place of each CPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from numaproof.formats.machines.description import (
    CPU,
    Description,
    DescriptionError,
    ListedDevices,
    Node,
)
from numaproof.inputs.plurals import plural
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

KINDS = ("Node", "NodeResourceTopology", "Numatopology")
_OTHER_ITEMS = "save a single one, such as the output of `kubectl get {} NAME -o yaml`"
_PLURALS = {
    "Node": "node",
    "NodeResourceTopology": "noderesourcetopology",
    "Numatopology": "numatopology",
}

_NFD = "feature.node.kubernetes.io"
CPU_TOPOLOGY = "node.koordinator.sh/cpu-topology"
"""Koordinator's annotation with the place of each CPU."""

_CPU_ALLOCS = "node.koordinator.sh/pod-cpu-allocs"
_CPU_POLICY = "kubelet.koordinator.sh/cpu-manager-policy"


def is_object(data: Any) -> bool:
    """Returns whether a document is an object of such a kind, or a list of them."""
    kind = str(data.get("kind")) if isinstance(data, dict) else ""
    if kind == "List":
        return any(map(is_object, _list(data.get("items"))))
    return kind.removesuffix("List") in KINDS


def read(data: Mapping[str, Any]) -> Description:
    """Reads a document that `is_object`.

    Raises:
        DescriptionError: it is a list of several, or incomplete.
    """
    if "items" in data:
        found = [one for one in _list(data["items"]) if isinstance(one, dict)]
        if len(found) != 1:
            kind = str(found[0].get("kind") or "Node") if found else "Node"
            raise DescriptionError(
                f"{plural(len(found), 'object')} in a list, expected one",
                _OTHER_ITEMS.format(_PLURALS.get(kind, "node")),
            )
        data = {"kind": str(data["kind"]).removesuffix("List"), **found[0]}
    reader = _READERS.get(str(data["kind"]))
    if reader is None:
        raise DescriptionError(f"a list with an object of kind {data['kind']}")
    return reader(data)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _amount(value: Any, what: str) -> int:
    try:
        amount = int(quantity.parse(str(value)))
    except (quantity.QuantityError, UnsupportedError) as error:
        raise DescriptionError(f"{what}: {error}") from None
    if amount < 0:
        raise DescriptionError(f"{what}: must not be negative, got {value}")
    return amount


def _cpu_count(value: Any, what: str) -> int:
    count = _amount(value, what)
    if quantity.parse(str(value)) != count:
        raise DescriptionError(f"{what}: {value} is not a whole number of CPUs")
    return count


def _cpus(value: Any) -> Fraction:
    try:
        return quantity.parse(str(value))
    except (quantity.QuantityError, UnsupportedError) as error:
        raise DescriptionError(f"cpu: {error}") from None


def _reserved_cpus(
    amounts: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> float | None:
    """Returns what is missing from capacities in what is allocatable; None if that is unknown.

    Nothing is allocatable where a kubelet gives no container exclusive CPUs.
    """
    if not amounts or not all("cpu" in one for pair in amounts for one in pair):
        return None
    capacity, allocatable = (
        sum(_cpus(one["cpu"]) for one in part) for part in zip(*amounts, strict=True)
    )
    return float(capacity - allocatable) if allocatable else None


_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage", "pods", "storage"})


def _hugepages(resources: Mapping[str, Any]) -> dict[int, int]:
    """The huge pages among resources, by page size in KiB."""
    pages = {}
    for name, value in resources.items():
        if name.startswith("hugepages-"):
            size = _amount(name.removeprefix("hugepages-"), name)
            if size >= 1 << 10:
                pages[size >> 10] = _amount(value, name) // size
    return pages


def _devices(
    resources_by_node: Mapping[int, Mapping[str, Any]] | Mapping[None, Mapping[str, Any]],
) -> Iterator[ListedDevices]:
    """Yields the device plugins' resources; None is the machine as a whole."""
    found: dict[str, dict[int | None, int]] = {}
    for number, resources in resources_by_node.items():
        for name, value in resources.items():
            if name in _NATIVE or name.startswith(("hugepages-", "attachable-volumes-")):
                continue
            if count := _amount(value, name):
                found.setdefault(name, {})[number] = count
    for name, counts in found.items():
        groups = ",".join(
            str(count) if number is None else f"{count}@{number}"
            for number, count in counts.items()
        )
        yield ListedDevices(resource=name, count=sum(counts.values()), groups=groups)


def _node(data: Mapping[str, Any]) -> Description:
    status, labels = _mapping(data.get("status")), _labels(data)
    capacity = _mapping(status.get("capacity"))
    info = _mapping(status.get("nodeInfo"))
    if "cpu" not in capacity:
        raise DescriptionError(
            "a Node without status.capacity.cpu",
            "save the output of `kubectl get node NAME -o yaml`",
        )
    smt = labels.get(f"{_NFD}/cpu-hardware_multithreading")
    machine_type = labels.get("node.kubernetes.io/instance-type")
    return Description(
        format="a Node",
        architecture={"amd64": "x86_64"}.get(
            str(info.get("architecture")), str(info.get("architecture") or "")
        ),
        cpu_count=_cpu_count(capacity["cpu"], "status.capacity.cpu"),
        threads_per_core=1 if smt == "false" else None,
        likely_threads=2 if smt == "true" else 1,
        likely_nodes=2 if labels.get(f"{_NFD}/memory-numa") == "true" else 1,
        memory=_amount(capacity["memory"], "status.capacity.memory")
        if "memory" in capacity
        else None,
        hugepages=_hugepages(capacity) or None,
        devices=tuple(_devices({None: capacity})),
        reserved_cpus=_reserved_cpus([(capacity, _mapping(status.get("allocatable")))]),
        kubelet=str(info.get("kubeletVersion") or ""),
        notes=(f"is a {machine_type}: its provider documents the rest",) if machine_type else (),
    )


def _labels(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(data.get("metadata")).get("labels"))


def _node_resource_topology(data: Mapping[str, Any]) -> Description:
    zones = {
        int(found[1]): zone
        for zone in map(_mapping, _list(data.get("zones")))
        if zone.get("type", "Node") == "Node"
        if (found := re.search(r"([0-9]{1,4})$", str(zone.get("name"))))
    }
    cpus = tuple(_koordinator_cpus(data))
    if not zones and not cpus:
        raise DescriptionError(
            "a NodeResourceTopology without zones of type Node",
            "save the output of `kubectl get noderesourcetopology NAME -o yaml`",
        )
    resources = {number: _zone_resources(zone) for number, zone in sorted(zones.items())}
    if not cpus and not any("cpu" in found for found in resources.values()):
        raise DescriptionError("a NodeResourceTopology whose zones have no cpu")
    return Description(
        format="a NodeResourceTopology",
        cpus=cpus,
        nodes=tuple(
            Node(number=number)
            for number in sorted({cpu.node or 0 for cpu in cpus} - resources.keys())
        )
        + tuple(
            Node(
                number=number,
                cpus=_cpu_count(found.get("cpu", 0), f"zone {number}: cpu"),
                memory=_amount(found["memory"], f"zone {number}: memory")
                if "memory" in found
                else None,
                hugepages=_hugepages(found) or None,
            )
            for number, found in resources.items()
        ),
        distances=_costs(zones) if zones else None,
        reserved_cpus=_reserved_cpus([*map(_amounts, zones.values())]),
        settings=dict(_settings(data)),
        devices=tuple(_devices(resources)),
        notes=tuple(_in_use(data, [zone for _, zone in sorted(zones.items())])),
    )


def _zone_resources(zone: Mapping[str, Any]) -> dict[str, Any]:
    """The capacities in a zone; the first versions of exporters have only what is allocatable."""
    found = zone.get("resources")
    if isinstance(found, dict):  # Crane's NodeResourceTopology
        return {**_mapping(found.get("allocatable")), **_mapping(found.get("capacity"))}
    return {
        str(one.get("name")): next(
            (one[key] for key in ("capacity", "allocatable", "available") if key in one), 0
        )
        for one in map(_mapping, _list(found))
    }


def _amounts(zone: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The capacities in a zone, and what is allocatable."""
    found = [*map(_mapping, _list(zone.get("resources")))]
    capacity, allocatable = (
        {str(one.get("name")): one[key] for one in found if key in one}
        for key in ("capacity", "allocatable")
    )
    return capacity, allocatable


_MAX_SHOWN = 4


def _in_use(data: Mapping[str, Any], zones: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a note about what is in use, which isn't part of the machine."""
    uses = []
    for zone in zones:
        for one in map(_mapping, _list(zone.get("resources"))):
            name, available = f"{zone.get('name')}: {one.get('name')}", one.get("available")
            all_ = one.get("allocatable", one.get("capacity"))
            if None not in (available, all_) and _amount(available, name) < _amount(all_, name):
                uses.append(f"{name} {available} of {all_} available")
    pods = _annotation(data, _CPU_ALLOCS, tuple[_PodCPUs, ...]) or ()
    uses += [f"a pod with exclusive CPUs {pod.cpuset}" for pod in pods]
    if uses:
        more = len(uses) - _MAX_SHOWN
        shown = ", ".join(uses[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")
        yield (
            f"shows a node in use ({shown}); it is treated as empty: for its pods, collect the node"
            " with `kubectl numaproof`"
        )


_POLICIES = {
    "SingleNUMANode": "single-numa-node",
    "Restricted": "restricted",
    "BestEffort": "best-effort",
    "None": "none",
}
_POLICY = re.compile(rf"({'|'.join(_POLICIES)})(?:(Container|Pod)Level)?")


def _settings(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the fields of the kubelet's configuration that exporters and Koordinator show."""
    for text in map(str, _list(data.get("topologyPolicies"))):
        if found := _POLICY.fullmatch(text):
            yield "topologyManagerPolicy", _POLICIES[found[1]]
            if found[2]:
                yield "topologyManagerScope", found[2].lower()
    for one in map(_mapping, _list(data.get("attributes"))):
        if one.get("name") in ("topologyManagerPolicy", "topologyManagerScope"):
            yield str(one["name"]), str(one.get("value"))
    policy = _annotation(data, _CPU_POLICY, _CPUPolicy)
    if policy is not None:
        yield "cpuManagerPolicy", policy.policy or "none"
        if policy.reserved:
            yield "reservedSystemCPUs", policy.reserved


def _costs(zones: Mapping[int, Mapping[str, Any]]) -> tuple[tuple[int, ...], ...] | None:
    order = sorted(zones)
    names = {str(zones[number].get("name")): number for number in order}
    rows = []
    for number in order:
        costs = {
            names.get(str(one.get("name"))): one.get("value")
            for one in map(_mapping, _list(zones[number].get("costs")))
        }
        row = [costs.get(other) for other in order]
        if not all(isinstance(value, int) and 0 <= value <= 255 for value in row):  # noqa: PLR2004 - a byte
            return None
        rows.append(tuple(int(value) for value in row if value is not None))
    return tuple(rows)


class _Place(msgspec.Struct, frozen=True):
    """A CPU in Koordinator's annotation, or, without an id, in Volcano's object."""

    id: int = 0
    node: int = 0
    socket: int = 0
    core: int = 0
    numa: int = 0


class _CPUTopology(msgspec.Struct, frozen=True):
    detail: tuple[_Place, ...] = ()


class _PodCPUs(msgspec.Struct, frozen=True):
    cpuset: str = ""


class _CPUPolicy(msgspec.Struct, frozen=True, rename={"reserved": "reservedCPUs"}):
    policy: str = ""
    reserved: str = ""


_A = TypeVar("_A")


def _annotation(data: Mapping[str, Any], name: str, type_: type[_A]) -> _A | None:
    """Returns an annotation of Koordinator; None if there is none.

    Raises:
        DescriptionError: it has other contents.
    """
    text = _mapping(_mapping(data.get("metadata")).get("annotations")).get(name)
    try:
        return None if text is None else msgspec.json.decode(str(text), type=type_)
    except (msgspec.MsgspecError, RecursionError):
        raise DescriptionError(f"the annotation {name} is not Koordinator's") from None


def _koordinator_cpus(data: Mapping[str, Any]) -> Iterator[CPU]:
    topology = _annotation(data, CPU_TOPOLOGY, _CPUTopology)
    for one in topology.detail if topology else ():
        yield CPU(number=one.id, node=one.node, socket=one.socket, core=one.core)


def _numatopology(data: Mapping[str, Any]) -> Description:
    spec = _mapping(data.get("spec"))
    detail, policies = _mapping(spec.get("cpuDetail")), _mapping(spec.get("policies"))
    reserved = _mapping(spec.get("resReserved"))
    try:
        places = msgspec.convert(detail, dict[int, _Place], strict=False)
    except msgspec.ValidationError as error:
        raise DescriptionError(f"spec.cpuDetail: {error}") from None
    if not places:
        raise DescriptionError("a Numatopology without spec.cpuDetail")
    return Description(
        format="a Numatopology",
        cpus=tuple(
            CPU(number=cpu, node=place.numa, socket=place.socket, core=place.core)
            for cpu, place in places.items()
        ),
        nodes=tuple(Node(number=node) for node in sorted({one.numa for one in places.values()})),
        reserved_cpus=float(_cpus(reserved["cpu"])) if "cpu" in reserved else None,
        settings={
            field: str(policies[name])
            for name, field in _VOLCANO_POLICIES.items()
            if name in policies
        },
    )


_VOLCANO_POLICIES = {
    "CPUManagerPolicy": "cpuManagerPolicy",
    "TopologyManagerPolicy": "topologyManagerPolicy",
}


_READERS = {
    "Node": _node,
    "NodeResourceTopology": _node_resource_topology,
    "Numatopology": _numatopology,
}
