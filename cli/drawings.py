"""Shows a machine: a table of its NUMA nodes and a drawing."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from numaproof.protocol.machine import HugePages, MachineInfo

_MIB = 1 << 20


def show_machine(machine: MachineInfo) -> None:
    """Prints the totals, a table of the NUMA nodes and a drawing of the machine."""
    from numaproof.reports.drawing import draw_text
    from numaproof.reports.terminal import PLAIN_WIDTH, ShownConsole, as_plain, encodable, is_live

    click.echo(
        f"{plural(machine.num_cores, 'CPU')}, {plural(machine.num_physical_cores, 'core')}, "
        f"{plural(machine.num_sockets, 'socket')} by cAdvisor's count; "
        f"{machine.memory_capacity // _MIB} MiB of memory\n"
    )
    nodes = _nodes(machine)
    if is_live(sys.stdout, os.environ):
        width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
        console = ShownConsole(width=width)
        console.print(nodes)
        console.print(draw_text(machine, width=width, color=True))
    else:
        drawing = draw_text(machine, width=PLAIN_WIDTH)
        click.echo(encodable(f"{as_plain(nodes)}\n\n{drawing}", sys.stdout))


def _nodes(machine: MachineInfo) -> Table:
    from rich import box
    from rich.table import Table

    from numaproof.conformance.cases.machine_properties import Facts

    facts = Facts(machine)
    heads = ("node", "CPUs", "cores", "memory MiB", "huge pages", "distances")
    table = Table(*heads, box=box.SIMPLE)
    for node in sorted(machine.topology or (), key=lambda node: node.node_id):
        table.add_row(
            str(node.node_id),
            str(facts.nodes[node.node_id]) or "none",
            str(len(node.cores or ())),
            str(node.memory // _MIB),
            _huge_pages(node.hugepages or ()),
            _distances(node.distances or ()),
        )
    return table


def _huge_pages(pools: Sequence[HugePages]) -> str:
    """The huge pages of a node, such as ``512 x 2 MiB``, without the sizes it has none of."""
    from numaproof.reports.layout import bytes_text

    pools = [one for one in pools if one.num_pages]
    sizes = (f"{one.num_pages} x {bytes_text(one.page_size * 1024)}" for one in pools)
    return ", ".join(sizes) or "none"


_MOST_DISTANCES = 64
"""Distances of a node that are listed; a table of 1,024 by 1,024 helps nobody."""


def _distances(listed: Sequence[int]) -> str:
    """The distances in order, or for many nodes how many there are of each."""
    if len(listed) <= _MOST_DISTANCES:
        return " ".join(map(str, listed))
    return ", ".join(f"{count}x{value}" for value, count in sorted(Counter(listed).items()))
