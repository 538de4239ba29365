"""Formats many pods' results as a table of workloads and a list of causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.inputs.plurals import plural
from numaproof.reports.answers import Grid, GridRow, Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.reports.answers import Mark
    from numaproof.simulation.refusal_groups import RefusalGroup
    from numaproof.simulation.workload_summary import WorkloadSummary

MAX_IN_FULL = 20
"""With more pods, the text shows workloads and causes instead of containers."""

_HEADS = ("workload", "admitted", "exclusive CPUs", "aligned", "not aligned")
_MAX_WORKLOADS = 40


def workload_grid(workloads: Sequence[WorkloadSummary]) -> Grid:
    """Returns a table of workloads, those with refused pods first if there are too many."""
    shown = sorted(workloads, key=lambda each: each.pods == each.admitted)[:_MAX_WORKLOADS]
    title = "Pods by workload"
    if len(workloads) > len(shown):
        title += f" ({len(shown)} of {len(workloads)}; --json has all)"
    return Grid(title, _HEADS, tuple(map(_row, (one for one in workloads if one in shown))))


def _row(summary: WorkloadSummary) -> GridRow:
    mark: Mark = "fair" if summary.unaligned_pods else "good"
    if summary.admitted < summary.pods:
        mark = "bad"
    cells = (
        workload_text(summary.workload, summary.pods),
        f"{summary.admitted} of {summary.pods}",
        str(summary.exclusive_cpus or ""),
        str(summary.aligned_pods or ""),
        str(summary.unaligned_pods or ""),
    )
    return GridRow(mark, cells)


def workload_text(workload: str, pods: int) -> str:
    """Returns a workload's name; for pods without a controller, how many others are like it."""
    is_pod = workload.startswith("Pod/")
    return f"{workload} and {pods - 1} like it" if is_pod and pods > 1 else workload


def refusal_section(groups: Sequence[RefusalGroup]) -> Section:
    """Returns the causes of refusals, each with an example."""
    return Section("Refused", "bad", tuple(_refusal_lines(groups)))


def _refusal_lines(groups: Sequence[RefusalGroup]) -> Iterator[str]:
    for one in groups:
        yield f"{plural(one.pods, 'pod')}: {one.text} ({one.reason})"
        yield f"  such as {one.example}: {one.summary}"
        yield from (f"  Hint: {advice}." for advice in one.advice)
    if groups:
        yield f"For the steps, use --explain POD, such as --explain {groups[0].example}."
