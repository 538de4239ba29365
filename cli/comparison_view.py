"""Formats a comparison of configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.inputs.documents import dotted_path
from numaproof.inputs.plurals import plural
from numaproof.reports.answers import Grid, GridRow, Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.simulation.comparison import ComparedVariant
    from numaproof.simulation.configuration_check import ConfigurationFinding

_HEADS = (
    "configuration",
    "admitted",
    "refused",
    "exclusive CPUs",
    "aligned",
    "not aligned",
    "cores split",
    "whole nodes left",
)
_MAX_PODS = 5


def comparison_grid(variants: Sequence[ComparedVariant], *, has_pods: bool) -> Grid:
    """Returns a row for each configuration; the best are marked.

    `has_pods` is whether pods were on the node.
    """
    title = "Configurations (✓ is the best)"
    if has_pods:
        title += "; all but the first are for the node started anew, its pods oldest first"
    return Grid(title, _HEADS, tuple(map(_row, variants)))


def _row(variant: ComparedVariant) -> GridRow:
    if variant.refusal:
        return GridRow("bad", (variant.name, "does not start", *[""] * (len(_HEADS) - 2)))
    counts = (
        variant.admitted,
        variant.refused,
        variant.exclusive_cpus,
        variant.aligned_pods,
        variant.unaligned_pods,
        variant.split_cores,
        variant.whole_nodes,
    )
    return GridRow("good" if variant.is_best else None, (variant.name, *map(str, counts)))


def fix_texts(errors: Iterable[ConfigurationFinding]) -> Iterator[str]:
    """Yields how to fix the errors in a configuration, with their fields."""
    for one in errors:
        yield ": ".join(filter(None, (dotted_path(one.path), one.fix)))


def difference_sections(variants: Sequence[ComparedVariant]) -> Iterator[Section]:
    """Yields what the first configuration refuses, and how each other one differs from it.

    For those with which the kubelet does not start, it yields why.
    """
    for one in variants:
        is_first = one is variants[0]
        if one.refusal:
            fixes = (f"Fix: {text}" for text in fix_texts(one.errors))
            said = f"{one.refusal.stage}: {one.refusal.message}"
            yield Section(one.name, "bad", (said, *fixes))
        elif lines := (*_crash_lines(one), *(_refused_lines(one) if is_first else _lines(one))):
            yield Section(one.name, "bad" if is_first and one.refused else "fair", lines)


def _crash_lines(variant: ComparedVariant) -> Iterator[str]:
    for crash in variant.crashes:
        yield f"the kubelet can panic or hang: {dotted_path(crash.path)} {crash.message}"


def _refused_lines(variant: ComparedVariant) -> Iterator[str]:
    if variant.refused:
        yield f"refuses {plural(variant.refused, 'pod')}"
    yield from _cause_lines(variant)


def _cause_lines(variant: ComparedVariant) -> Iterator[str]:
    for each in variant.causes:
        yield f"  {plural(each.pods, 'pod')}: {each.text}"
        yield f"    such as {each.example}: {each.summary}"


def _lines(variant: ComparedVariant) -> Iterator[str]:
    for verb, pods in (("also admits", variant.gains), ("does not admit", variant.losses)):
        if pods:
            names = ", ".join(pods[:_MAX_PODS]) + (", …" if len(pods) > _MAX_PODS else "")
            yield f"{verb} {plural(len(pods), 'pod')}: {names}"
    if variant.losses:
        yield from _cause_lines(variant)
