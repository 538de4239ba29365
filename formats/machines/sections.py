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


def read(text: str, least: int = 2) -> Description | None:
    """Returns what all descriptions in a text say; None if it has fewer than `least`.

    Raises:
        DescriptionError: they contradict or don't complete each other, or one is incomplete.
    """
    found = [*_sections(text)]
    if len(found) < least:
        return None
    lines: dict[str, int] = {}
    for section in found:
        name = _NAMES[section.kind]
        if section.kind in lines:
            message = f"{name} again, first in line {lines[section.kind]}"
            raise DescriptionError(message, _SEPARATE, section.line)
        lines[section.kind] = section.line
        if len(lines) > 1 and not lines.keys() <= {*_COMPLETING}:
            message = f"{name} next to {_NAMES[found[0].kind]}"
            raise DescriptionError(message, "save only what says more", section.line)
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


def _combine(first: Description, second: Description) -> Description:
    """Returns what two texts say about a machine.

    Raises:
        DescriptionError: they contradict each other.
    """
    formats = f"{first.format} and {second.format}"
    both = [{cpu.number: cpu for cpu in text.cpus if cpu.online} for text in (first, second)]
    if both[0].keys() != both[1].keys():
        shown = " and ".join(str(CPUSet(cpus)) for cpus in both)
        raise DescriptionError(f"{formats} show different CPUs: {shown}", _SEPARATE)
    for number, cpu in both[0].items():
        nodes = (cpu.node, both[1][number].node)
        if None not in nodes and nodes[0] != nodes[1]:
            where = f"on the NUMA nodes {nodes[0]} and {nodes[1]}"
            raise DescriptionError(f"{formats} show CPU {number} {where}", _SEPARATE)
    offline = [cpu for cpu in (*first.cpus, *second.cpus) if not cpu.online]
    return replace(
        first,
        format=f"{first.format} with {second.format}",
        architecture=first.architecture or second.architecture,
        cpus=(
            *(_place(cpu, both[1][number]) for number, cpu in both[0].items()),
            *{cpu.number: cpu for cpu in offline}.values(),
        ),
        threads_per_core=first.threads_per_core or second.threads_per_core,
        sockets=first.sockets or second.sockets,
        nodes=_nodes(first.nodes, second.nodes),
        distances=first.distances or second.distances,
        caches=first.caches or second.caches,
        l3_count=first.l3_count or second.l3_count,
        # What lscpu notes is about the nodes, which numactl shows.
        notes=next((text.notes for text in (first, second) if text.distances), first.notes),
    )


def _place(first: CPU, second: CPU) -> CPU:
    """Returns a CPU with the place of either; cores are numbered by the text that has them."""
    by_core = first if first.core is not None else second
    return replace(by_core, node=first.node if first.node is not None else second.node)


def _nodes(first: Sequence[Node] | None, second: Sequence[Node] | None) -> tuple[Node, ...] | None:
    """Returns the nodes of either text; their memory is that of the text which shows it."""
    if first is None and second is None:
        return None
    both = (*(first or ()), *(second or ()))
    nodes = {node.number: node for node in both}
    nodes |= {node.number: node for node in both if node.memory is not None}
    return tuple(nodes.values())
