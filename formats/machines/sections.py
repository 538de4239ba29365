"""Several descriptions in one text, as people paste them into reports.

The output of ``numactl`` and of each form of ``lscpu`` complete each other. All others describe a
machine by themselves, so that there is no telling which of them counts.
"""

from __future__ import annotations

import re
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from numaproof.formats.machines import kubernetes, lscpu, numactl
from numaproof.formats.machines.description import CPU, Description, DescriptionError, Node
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEADS = re.compile(
    rf"(?P<numactl>{numactl.HEAD.pattern})|(?P<table>{lscpu.TABLE_HEAD.pattern})"
    rf"|(?P<parse>{lscpu.PARSE_HEAD.pattern})|(?P<summary>{lscpu.SUMMARY_HEAD.pattern})"
    rf"|(?P<log>^.*Machine: .*NumCores:)|(?P<lstopo><topology\b)"
    rf"|(?P<object>^kind: *(?:{'|'.join(kubernetes.KINDS)})(?:List)? *$)",
    re.MULTILINE,
)
_NAMES = {
    "numactl": "numactl --hardware",
    "table": "lscpu --extended",
    "parse": "lscpu --parse",
    "summary": "lscpu",
    "log": "a kubelet's log",
    "lstopo": "the XML of lstopo",
    "object": "a Kubernetes object",
}
_COMPLETING = ("numactl", "table", "parse", "summary")
_AFTER_ROWS = re.compile(r"(?:\n(?![ \t]*[0-9])[^\n]*)+\Z")
_SEPARATE = "save the description of each machine in a file of its own"


class _Section(NamedTuple):
    kind: str
    line: int
    text: str


def read(text: str) -> Description | None:
    """Returns what all descriptions in a text say; None if it has fewer than two.

    Raises:
        DescriptionError: they contradict or don't complete each other, or one is incomplete.
    """
    found = [*_sections(text)]
    if len(found) < 2:  # noqa: PLR2004
        return None
    first: dict[str, _Section] = {}
    for one in found:
        name = _NAMES[one.kind]
        if one.kind in first:
            line = first[one.kind].line
            raise DescriptionError(f"{name} again, first in line {line}", _SEPARATE, one.line)
        first[one.kind] = one
        if not {*first} <= {*_COMPLETING} and len(first) > 1:
            message = f"{name} next to {_NAMES[found[0].kind]}"
            raise DescriptionError(message, "save only the one that says more", one.line)
    return reduce(_combine, map(_describe, found))


def _sections(text: str) -> Iterator[_Section]:
    """Yields the descriptions in a text; their lines have the numbers of the whole text."""
    starts: list[tuple[str, int]] = []
    fields: set[str] = set()
    for head in _HEADS.finditer(text):
        kind, start = str(head.lastgroup), head.start()
        field = head[0].strip().partition(":")[0]
        is_inside = starts and kind == starts[-1][0]
        if is_inside and (kind == "log" or (kind == "summary" and field not in fields)):
            fields.add(field)
            continue
        fields = {field}
        starts.append((kind, start))
    for (kind, start), (_, end) in pairwise((*starts, ("", len(text)))):
        before = text.count("\n", 0, start)
        yield _Section(kind, before + 1, "\n" * before + text[start:end])


def _describe(section: _Section) -> Description:
    if section.kind == "numactl":
        return numactl.read(section.text)
    is_table = section.kind in ("table", "parse")
    return lscpu.read(_AFTER_ROWS.sub("", section.text) if is_table else section.text)


def _combine(one: Description, other: Description) -> Description:
    """Returns what two texts say about a machine.

    Raises:
        DescriptionError: they contradict each other.
    """
    formats = f"{one.format} and {other.format}"
    both = [{cpu.number: cpu for cpu in text.cpus if cpu.online} for text in (one, other)]
    if both[0].keys() != both[1].keys():
        shown = " and ".join(str(CPUSet(cpus)) for cpus in both)
        raise DescriptionError(f"{formats} show different CPUs: {shown}", _SEPARATE)
    for cpu, (first, second) in (
        (number, (both[0][number], both[1][number])) for number in both[0]
    ):
        if None not in (first.node, second.node) and first.node != second.node:
            nodes = f"{first.node} and {second.node}"
            raise DescriptionError(f"{formats} show CPU {cpu} on the NUMA nodes {nodes}", _SEPARATE)
    offline = [cpu for cpu in (*one.cpus, *other.cpus) if not cpu.online]
    return replace(
        one,
        format=f"{one.format} with {other.format}",
        architecture=one.architecture or other.architecture,
        cpus=(
            *(_place(cpu, both[1][number]) for number, cpu in both[0].items()),
            *{cpu.number: cpu for cpu in offline}.values(),
        ),
        threads_per_core=one.threads_per_core or other.threads_per_core,
        sockets=one.sockets or other.sockets,
        nodes=_nodes(one.nodes, other.nodes),
        distances=one.distances or other.distances,
        caches=one.caches or other.caches,
        l3_count=one.l3_count or other.l3_count,
        # What lscpu notes is about the nodes, which numactl shows.
        notes=next((text.notes for text in (one, other) if text.distances), one.notes),
    )


def _place(one: CPU, other: CPU) -> CPU:
    """Returns a CPU with the place of either; a core has a number of its socket."""
    by_core = one if one.core is not None else other
    return replace(by_core, node=one.node if one.node is not None else other.node)


def _nodes(one: Sequence[Node] | None, other: Sequence[Node] | None) -> tuple[Node, ...] | None:
    if one is None or other is None:
        found = other if one is None else one
        return None if found is None else tuple(found)
    nodes = {node.number: node for node in (*one, *other)}
    nodes |= {node.number: node for node in (*one, *other) if node.memory is not None}
    return tuple(nodes.values())
