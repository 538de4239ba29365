"""cAdvisor's `MachineInfo` as JSON, which a kubelet serves as ``/spec`` and `discover` prints.

It is what a kubelet discovers. Earlier versions lack some fields.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from numaproof.formats.machines.description import DescriptionError, Gap, MachineText
from numaproof.inputs.plurals import plural
from numaproof.protocol.machine import MachineInfo

FORMAT = "a MachineInfo"


def is_machine_info(data: Any) -> bool:
    """Returns whether JSON is a `MachineInfo`."""
    return isinstance(data, dict) and "num_cores" in data and "topology" in data


def read(file: str, data: Any) -> MachineText:
    """Reads JSON that `is_machine_info`.

    Raises:
        DescriptionError: a field has a wrong type, or there are no CPUs.
    """
    try:
        machine = msgspec.convert(_with_cache_ids(data), MachineInfo)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DescriptionError(f"{FORMAT}: {error}") from None
    nodes = data["topology"] or ()
    cores = [core for node in nodes for core in node.get("cores") or ()]
    fields = {
        "distances": all("distances" in node for node in nodes),
        "hugepages": all("hugepages" in node for node in nodes),
        "caches": all("uncore_caches" in core or "caches" in core for core in cores),
        "sockets": all("socket_id" in core for core in cores),
    }
    if not fields["sockets"]:
        machine = _with_sockets(machine)
    return complete(file, FORMAT, machine, frozenset(name for name, has in fields.items() if has))


def _with_cache_ids(value: Any) -> Any:
    """The value with an id for each cache, which earlier versions lack."""
    if isinstance(value, list):
        return [_with_cache_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {name: _with_cache_ids(one) for name, one in value.items()}
    return {"id": 0, **found} if found.keys() >= {"level", "size", "type"} else found


def _with_sockets(machine: MachineInfo) -> MachineInfo:
    """The machine with each node as a socket, as earlier versions have it."""
    nodes = tuple(
        replace(
            node,
            cores=node.cores
            and tuple(replace(core, socket_id=node.node_id) for core in node.cores),
        )
        for node in machine.topology or ()
    )
    return replace(machine, topology=nodes, num_sockets=machine.num_sockets or len(nodes))


def complete(file: str, form: str, machine: MachineInfo, fields: frozenset[str]) -> MachineText:
    """Checks a machine, and names what its source has no `fields` for.

    Raises:
        DescriptionError: it has no CPUs, one of them twice, fewer than it counts, or sizes that
            are negative.
    """
    nodes = machine.topology or ()
    cpus = [cpu for node in nodes for core in node.cores or () for cpu in core.thread_ids or ()]
    if not cpus:
        raise DescriptionError(f"{form} without CPUs")
    if min(cpus) < 0 or len(set(cpus)) != len(cpus):
        raise DescriptionError(f"{form} with a CPU that occurs twice or is negative")
    _require_whole(form, machine, len(cpus))
    gaps = tuple(gap for gap in _GAPS if gap.subject not in fields)
    return MachineText(file=file, format=form, machine=machine, missing=gaps)


def _require_whole(form: str, machine: MachineInfo, cpus: int) -> None:
    """Raises an error if a machine lost nodes or CPUs, or has negative sizes."""
    nodes = machine.topology or ()
    pools = [*(machine.hugepages or ()), *(pool for node in nodes for pool in node.hugepages or ())]
    sizes = [machine.memory_capacity, *(node.memory for node in nodes)]
    sizes += [size for pool in pools for size in (pool.page_size, pool.num_pages)]
    if (least := min(sizes)) < 0:
        raise DescriptionError(f"{form} with the negative size {least}")
    counts = {len(node.distances) for node in nodes if node.distances}
    if counts - {len(nodes)}:
        message = f"{form} with {plural(len(nodes), 'NUMA node')} but distances to {max(counts)}"
        raise DescriptionError(message, _WHOLE)
    # Of a machine without NUMA nodes, cAdvisor counts CPUs that are offline also.
    has_nodes = any(node.memory or node.distances for node in nodes)
    if machine.num_cores < cpus or (has_nodes and machine.num_cores > cpus):
        message = f"{form} that counts {plural(machine.num_cores, 'CPU')} but lists {cpus}"
        raise DescriptionError(message, _WHOLE)


_WHOLE = "use the whole output"

_GAPS = (
    Gap("sockets", "each core's socket", "that each NUMA node is one"),
    Gap("hugepages", "each NUMA node's huge pages", "none"),
    Gap("distances", "the distances between NUMA nodes", "none"),
    Gap("caches", "caches", "none"),
)
