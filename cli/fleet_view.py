"""Formats where pods fit on several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from numaproof.cli.summary_view import workload_text
from numaproof.inputs.documents import dotted_path
from numaproof.inputs.plurals import plural
from numaproof.reports.answers import Grid, GridRow, Remark, Section, grid_text, heading, text_of
from numaproof.simulation.fleet import unplaced_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from numaproof.reports.answers import Mark
    from numaproof.simulation.fleet import FleetSimulation, FleetWorkload, NodeRefusals
    from numaproof.simulation.lint import Crash

MAX_COLUMNS = 6
"""With more nodes, the table has the number of nodes instead of a column for each."""

_MAX_NAMES = 3
_MAX_WORKLOADS = 40
_MAX_NODES = 20


def fleet_parts(simulation: FleetSimulation) -> Iterator[RenderableType]:
    """Yields the answer: a heading, where each workload fits, the nodes, and what isn't placed."""
    count = len(simulation.placements)
    title = f"{simulation.placed_pods} of {plural(count, 'pod')} placed"
    title += f" on {plural(len(simulation.nodes), 'node')}"
    yield heading("good" if simulation.admitted else "bad", title)
    yield grid_text(_workload_grid(simulation))
    yield grid_text(_node_grid(simulation))
    for one in simulation.nodes:
        if one.refusal:
            said = f"{one.refusal.stage}: {one.refusal.message}"
            yield text_of(Section(f"{one.name}: the kubelet does not start", "bad", (said,)))
        if one.ended_pods:
            text = f"a restart of the kubelet would end {', '.join(one.ended_pods)}"
            yield text_of(Section(one.name, "bad", (text,)))
    yield from map(text_of, _crashes(simulation))
    if counts := unplaced_pods(simulation):
        lines = (f"{plural(pods, 'pod')}: {cause}" for cause, pods in counts.most_common())
        yield text_of(Section("Not placed", "bad", tuple(lines)))
    if simulation.not_evaluated:
        remark = Remark("Not evaluated", tuple(map(str, simulation.not_evaluated)))
        yield Group(Text(remark.title, "bold"), *(Text(f"  {line}") for line in remark.lines))


def _crashes(simulation: FleetSimulation) -> Iterator[Section]:
    """Yields the settings with which kubelets can panic or hang, with the nodes that have them."""
    nodes: dict[Crash, list[str]] = {}
    for node in simulation.nodes:
        for crash in node.crashes:
            nodes.setdefault(crash, []).append(node.name)
    for crash, names in nodes.items():
        line = f"{dotted_path(crash.path)} {crash.message} ({crash.fix}; {crash.defect.page})"
        yield Section(f"{_some(names)}: the kubelet can panic or hang", "fair", (line,))


def _workload_grid(simulation: FleetSimulation) -> Grid:
    names = [one.name for one in simulation.nodes if one.refusal is None]
    has_columns = len(names) <= MAX_COLUMNS
    where = tuple(names) if has_columns else ("fits on", "why not elsewhere")
    workloads = simulation.workloads[:_MAX_WORKLOADS]
    rows = []
    for one in workloads:
        cells = _by_node(one, names) if has_columns else _by_count(one, len(names))
        name = workload_text(one.workload, one.pods)
        mark: Mark = "good" if one.placed_pods == one.pods else "bad"
        rows.append(GridRow(mark, (name, *cells, f"{one.placed_pods} of {one.pods}")))
    title = "Where each pod fits, on its own; and how many are placed as one batch"
    if len(workloads) < len(simulation.workloads):
        every = plural(len(simulation.workloads), "workload")
        title += f" ({len(workloads)} of {every}; --json has all)"
    return Grid(title, ("workload", *where, "placed"), tuple(rows))


def _by_node(workload: FleetWorkload, names: Sequence[str]) -> Iterator[str]:
    causes = {name: str(group.cause) for group in workload.refusals for name in group.nodes}
    return (causes.get(name, "fits") for name in names)


def _by_count(workload: FleetWorkload, nodes: int) -> tuple[str, str]:
    fits = f"{len(workload.fits)} of {nodes}"
    if 0 < len(workload.fits) < nodes:
        fits += f": {_some(workload.fits)}"
    return fits, "; ".join(map(_refusal_text, workload.refusals[:_MAX_NAMES]))


def _refusal_text(group: NodeRefusals) -> str:
    return f"{plural(len(group.nodes), 'node')}: {group.cause}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")


def _node_grid(simulation: FleetSimulation) -> Grid:
    used = [one for one in simulation.nodes if one.refusal is None and one.placed_pods]
    started = used or [one for one in simulation.nodes if one.refusal is None]
    rows = tuple(
        GridRow(
            None,
            (one.name, str(one.pods_on_node or ""), str(one.placed_pods), str(one.free_cpus)),
        )
        for one in started[:_MAX_NODES]
    )
    title = "Nodes after the placement"
    if len(rows) < len(simulation.nodes):
        title += f" ({len(rows)} of {len(simulation.nodes)}; --json has all)"
    return Grid(title, ("node", "pods before", "pods placed", "free exclusive CPUs"), rows)
