"""Go literals of machines, pods and hints, as the kubelet's tests write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.conformance.go_tests.syntax import composite, inline, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numaproof.protocol.machine import MachineInfo, Node
    from numaproof.protocol.messages import Device, Hint, Pod
    from numaproof.protocol.sets import CPUSet

_RESOURCES = {
    "cpu": "v1.ResourceCPU",
    "memory": "v1.ResourceMemory",
    "ephemeral-storage": "v1.ResourceEphemeralStorage",
}

CONTAINERS = (("initContainers", "InitContainers"), ("containers", "Containers"))
"""The lists of containers in a pod's manifest and in Go."""


def cpu_set(cpus: CPUSet) -> str:
    return f"cpuset.New({', '.join(map(str, sorted(cpus)))})"


def cpu_topology(machine: MachineInfo) -> str:
    """Returns the ``CPUTopology`` that the kubelet derives from a machine."""
    nodes = machine.topology or ()
    cores = [(node, core) for node in nodes for core in node.cores or ()]
    details = {}
    for node, core in cores:
        caches = core.uncore_caches
        for cpu in core.thread_ids or ():
            details[cpu] = {
                "CoreID": min(core.thread_ids or ()),
                "SocketID": core.socket_id,
                "NUMANodeID": node.node_id,
                "UncoreCacheID": caches[0].id if caches else core.socket_id,
            }
    counted = {name: len({one[name] for one in details.values()}) for name in _COUNTED}
    rows = [
        (str(cpu), inline("", [(name, str(number)) for name, number in one.items()]))
        for cpu, one in sorted(details.items())
    ]
    return composite(
        "&topology.CPUTopology",
        [
            ("NumCPUs", str(machine.num_cores)),
            ("NumCores", str(len(cores))),
            ("NumUncoreCache", str(counted["UncoreCacheID"])),
            ("NumSockets", str(machine.num_sockets)),
            ("NumNUMANodes", str(counted["NUMANodeID"])),
            ("CPUDetails", composite("topology.CPUDetails", rows)),
        ],
    )


_COUNTED = ("NUMANodeID", "UncoreCacheID")


def nodes_with_memory(machine: MachineInfo) -> str:
    """Returns a ``MachineInfo`` with the memory of its NUMA nodes."""
    nodes = composite(
        "[]cadvisorapi.Node", [_node(one, memory=True) for one in machine.topology or ()]
    )
    return composite("&cadvisorapi.MachineInfo", [("Topology", nodes)])


def nodes_with_distances(nodes: Iterable[Node]) -> str:
    """Returns the NUMA nodes that the Topology Manager needs."""
    return composite("[]cadvisorapi.Node", [_node(one) for one in nodes])


def _node(node: Node, *, memory: bool = False) -> str:
    fields = [("Id", str(node.node_id))]
    if memory:
        pages = [
            inline("", [("PageSize", str(one.page_size)), ("NumPages", str(one.num_pages))])
            for one in node.hugepages or ()
        ]
        fields.append(("Memory", str(node.memory)))
        if pages:
            fields.append(("HugePages", inline("[]cadvisorapi.HugePagesInfo", pages)))
    elif node.distances:
        fields.append(("Distances", inline("[]uint64", map(str, node.distances))))
    return inline("", fields)


def pod(manifest: Pod) -> str:
    """Returns a ``*v1.Pod``; like the API server, it sets missing requests to the limits."""
    name, uid = (quote(manifest["metadata"][key]) for key in ("name", "uid"))
    spec = manifest["spec"]
    fields = []
    if spec.get("resources"):
        fields.append(("Resources", _requirements("&v1.ResourceRequirements", spec["resources"])))
    for key, field in CONTAINERS:
        if spec.get(key):
            listed = [_container(one) for one in spec[key]]
            fields.append((field, composite("[]v1.Container", listed)))
    meta = inline("metav1.ObjectMeta", [("Name", name), ("UID", uid)])
    return composite("&v1.Pod", [("ObjectMeta", meta), ("Spec", composite("v1.PodSpec", fields))])


def _container(container: Mapping[str, Any]) -> str:
    fields = [("Name", quote(container["name"]))]
    if container.get("resources"):
        held = _requirements("v1.ResourceRequirements", container["resources"])
        fields.append(("Resources", held))
    if container.get("restartPolicy"):
        fields.append(("RestartPolicy", "ptr.To(v1.ContainerRestartPolicyAlways)"))
    return composite("", fields)


def _requirements(head: str, resources: Mapping[str, Mapping[str, str]]) -> str:
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    lists = [("Requests", requests), ("Limits", limits)]
    return composite(head, [(name, _resource_list(amounts)) for name, amounts in lists if amounts])


def _resource_list(amounts: Mapping[str, str]) -> str:
    entries = [
        (_RESOURCES.get(name, quote(name)), f"resource.MustParse({quote(str(amount))})")
        for name, amount in amounts.items()
    ]
    return inline("v1.ResourceList", entries)


def hint(value: Hint, mask: str) -> str:
    fields = []
    if value.numa is not None:
        nodes = ", ".join(map(str, sorted(value.numa)))
        fields.append(("NUMANodeAffinity", f"{mask}({nodes})"))
    return inline("", [*fields, ("Preferred", str(value.preferred).lower())])


def hints(by_resource: Mapping[str, Sequence[Hint] | None], mask: str, package: str) -> str:
    """Returns a provider's hints.

    Args:
        by_resource: the hints.
        mask: the function that creates a bit mask.
        package: the prefix of the type, if it is in another package.
    """
    kind = f"[]{package}TopologyHint"
    entries: list[tuple[str, str]] = []
    for name, listed in sorted(by_resource.items()):
        made = [hint(one, mask) for one in listed or ()]
        empty = "nil" if listed is None else "{}"
        entries.append((quote(name), composite("", made) if made else empty))
    return composite(f"map[string]{kind}", entries)


def device(value: Device) -> str:
    """Returns a device as its plugin reports it."""
    fields = [
        ("ID", quote(value.id)),
        ("Health", "pluginapi.Healthy" if value.healthy else "pluginapi.Unhealthy"),
    ]
    if value.numa is not None:
        nodes = [inline("", [("ID", str(node))]) for node in sorted(value.numa)]
        topology = inline("[]*pluginapi.NUMANode", nodes)
        fields.append(("Topology", inline("&pluginapi.TopologyInfo", [("Nodes", topology)])))
    return inline("", fields)
