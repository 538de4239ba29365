"""Compares the memory and devices that a case expects with those that a container was given."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.schema import DevicesExpected
from numaproof.conformance.judging.finding import Finding
from numaproof.inputs.plurals import numbered
from numaproof.protocol import lists
from numaproof.protocol.mismatch import shown
from numaproof.protocol.sets import NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numaproof.conformance.cases.schema import Memory
    from numaproof.protocol.messages import DeviceResource, Level, MemoryBlock

Nodes = tuple[int, ...]


def memory_problems(
    rule: str, wanted: Memory | None, given: Iterable[MemoryBlock], level: Level
) -> Iterator[Finding]:
    """What is wrong with memory blocks.

    Args:
        rule: what blocks they are.
        wanted: blocks in any order, compared at level ``placement``; or bytes by type.
        given: the blocks of the answer.
        level: how much counts.
    """
    blocks = list(given)
    if wanted is None:
        return
    if isinstance(wanted, dict):
        sums: Counter[str] = Counter()
        for block in blocks:
            sums[block.type] += block.size
        if dict(sums) != wanted:
            yield differs(rule, wanted, dict(sums))
    elif applies("placement", level):
        has = sorted((block.type, tuple(block.numa), block.size) for block in blocks)
        want = sorted((one.type, _ids(one.numa), int(one.size)) for one in wanted)
        if has != want:
            twice = lists.repeated(has)
            yield Finding("expectation", rule, "", _blocks(want), _blocks(has), remark=twice)


def device_problems(
    resource: str,
    wanted: int | str | tuple[str, ...] | DevicesExpected,
    given: tuple[str, ...],
    nodes: Mapping[str, Nodes],
    level: Level,
) -> Iterator[Finding]:
    """What is wrong with a container's devices of one resource.

    Args:
        resource: the resource.
        wanted: how many, the ids, or the nodes of each.
        given: the ids of the answer.
        nodes: where the devices are, by id.
        level: which devices they are counts from ``placement`` on.
    """
    if isinstance(wanted, int | str):
        if len(given) != int(wanted):
            counts = amount(wanted, "devices"), amount(len(given), "devices")
            yield Finding("expectation", resource, "", *counts)
    elif applies("placement", level):
        if isinstance(wanted, DevicesExpected):
            has = sorted(nodes.get(one, ()) for one in given)
            want = sorted(_ids(one) for one in wanted.numa)
            if has != want:
                yield Finding("expectation", resource, "", _nodes(want), _nodes(has))
        elif sorted(given) != sorted(wanted):
            yield differs(resource, sorted(wanted), sorted(given), lists.repeated(given))


def differs(rule: str, expected: object, actual: object, remark: str = "") -> Finding:
    """The finding that a value is another than the expected one."""
    return Finding("expectation", rule, "", shown(expected), shown(actual), remark=remark)


def amount(count: int | str, things: str) -> str:
    """``1 CPU``, ``2 CPUs``: a count of things, which are given in the plural."""
    return f"{count} {things.removesuffix('s') if str(count) == '1' else things}"


def _blocks(blocks: Iterable[tuple[str, Nodes, int]]) -> str:
    listed = (f"{amount(size, 'bytes')} of {kind} on {_on(nodes)}" for kind, nodes, size in blocks)
    return "; ".join(listed) or "no memory"


def _nodes(devices: Sequence[Nodes]) -> str:
    """The nodes of each of some devices."""
    if not devices:
        return "no devices"
    return f"device{'' if len(devices) == 1 else 's'} on {'; '.join(map(_on, devices))}"


def _on(nodes: Nodes) -> str:
    return numbered("NUMA node", NUMASet(nodes))


def nodes_of(resource: str, devices: Iterable[DeviceResource]) -> dict[str, Nodes]:
    """The NUMA nodes of each device of a resource, by id; none where no topology is reported."""
    return {
        device.id: tuple(device.numa or ())
        for one in devices
        if one.resource == resource
        for device in one.ids
    }


def _ids(numbers: Iterable[int | str]) -> Nodes:
    return tuple(sorted(map(int, numbers)))
