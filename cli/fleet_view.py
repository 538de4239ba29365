"""Formats where pods fit on several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from numaproof.cli.simulate_view import start_story
from numaproof.cli.summary_view import workload_text
from numaproof.inputs.documents import dotted_path
from numaproof.inputs.plurals import plural
from numaproof.reports.answers import (
    Grid,
    GridRow,
    Remark,
    Section,
    grid_text,
    heading,
    story_text,
    text_of,
)
from numaproof.simulation.fleet import unplaced_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from numaproof.reports.answers import Mark, Story
    from numaproof.simulation.causes import Cause
    from numaproof.simulation.fleet import FleetNode, FleetSimulation, FleetWorkload
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
    stopped = [one.name for one in simulation.nodes if one.refusal]
    nodes = plural(len(simulation.nodes), "node")
    if stopped:
        nodes = f"{len(simulation.nodes) - len(stopped)} of {nodes}"
        nodes += f": the kubelet of {_some(stopped)} does not start"
    title += f" on {nodes}"
    yield heading("good" if simulation.admitted else "bad", title)
    yield grid_text(_workload_grid(simulation))
    if refusals := tuple(_refusal_lines(simulation)):
        yield text_of(Section("Where pods don't fit", "fair", refusals))
    yield grid_text(_node_grid(simulation))
    yield from map(story_text, _refused_starts(simulation))
    for one in simulation.nodes:
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


def _refused_starts(simulation: FleetSimulation) -> Iterator[Story]:
    """Yields why kubelets don't start, with the nodes that have the same reason."""
    nodes: dict[tuple[str, str], list[FleetNode]] = {}
    for one in simulation.nodes:
        if one.refusal:
            fixes = " ".join(error.fix for error in one.errors)
            nodes.setdefault((f"{one.refusal.stage}: {one.refusal.message}", fixes), []).append(one)
    for alike in nodes.values():
        names = _some([one.name for one in alike])
        assert alike[0].refusal is not None
        title = f"{names}: the kubelet does not start"
        yield start_story(title, alike[0].refusal, alike[0].errors)


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
    has_columns = len(simulation.nodes) <= MAX_COLUMNS
    where = tuple(one.name for one in simulation.nodes) if has_columns else ("fits on",)
    workloads = simulation.workloads[:_MAX_WORKLOADS]
    rows = []
    for one in workloads:
        cells = _by_node(one, simulation.nodes) if has_columns else (_count(one, simulation),)
        name = workload_text(one.workload, one.pods)
        mark: Mark = "good" if one.placed_pods == one.pods else "bad"
        rows.append(GridRow(mark, (name, *cells, f"{one.placed_pods} of {one.pods}")))
    title = "Where each pod fits, on its own; and how many are placed as one batch"
    if len(workloads) < len(simulation.workloads):
        every = plural(len(simulation.workloads), "workload")
        title += f" ({len(workloads)} of {every}; --json has all)"
    return Grid(title, ("workload", *where, "placed"), tuple(rows))


def _by_node(workload: FleetWorkload, nodes: Sequence[FleetNode]) -> Iterator[str]:
    for node in nodes:
        if node.refusal:
            yield "not started"
        else:
            unsure = ", memory unknown" if node.unknown_memory else ""
            yield f"fits{unsure}" if node.name in workload.fits else "no"


def _count(workload: FleetWorkload, simulation: FleetSimulation) -> str:
    nodes = len(simulation.nodes)
    fits = f"{len(workload.fits)} of {nodes}"
    if 0 < len(workload.fits) < nodes:
        fits += f": {_some(workload.fits)}"
    return fits


def _refusal_lines(simulation: FleetSimulation) -> Iterator[str]:
    """Yields the workloads in the table that do not fit on some nodes, by cause."""
    groups: dict[tuple[str, Cause], list[str]] = {}
    for one in simulation.workloads[:_MAX_WORKLOADS]:
        for group in one.refusals:
            count = len(group.nodes)
            nodes = _some(group.nodes) if count <= _MAX_NAMES else plural(count, "node")
            name = workload_text(one.workload, one.pods)
            groups.setdefault((nodes, group.cause), []).append(name)
    for (nodes, cause), names in groups.items():
        yield f"{nodes}: {cause} ({_some(names)})"


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
