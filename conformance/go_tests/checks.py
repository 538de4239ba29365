"""Go statements that compare what the kubelet's managers report with an expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.schema import CPUsExpected
from numaproof.conformance.go_tests.literals import cpu_set
from numaproof.conformance.go_tests.syntax import block
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.conformance.cases.schema import ContainerExpected, CPUs, Expected

_COUNTED = {
    "count": ("got.Size()", "CPUs"),
    "cores": ("topo.CPUDetails.KeepOnly(got).Cores().Size()", "cores"),
    "sockets": ("topo.CPUDetails.KeepOnly(got).Sockets().Size()", "sockets"),
    "numa_nodes": ("topo.CPUDetails.KeepOnly(got).NUMANodes().Size()", "NUMA nodes"),
    "uncore_caches": ("topo.CPUDetails.KeepOnly(got).UncoreCaches().Size()", "uncore caches"),
}

_COMPARED = {
    "equals": ("!got.Equals({})", "CPUs {}"),
    "within": ("!got.IsSubsetOf({})", "only CPUs {}"),
    "contains": ("!{}.IsSubsetOf(got)", "at least CPUs {}"),
    "disjoint_from": ("!got.Intersection({}).IsEmpty()", "none of CPUs {}"),
}


class NotExpressibleError(ValueError):
    """A case can't be written as a Go test; the message says why."""


_ELSEWHERE = {
    "quota": "is set by package kuberuntime, whose fake container manager has no exclusive CPUs"
}


def only(expected: Expected | ContainerExpected, *fields: str) -> None:
    """Checks that an expectation has no other fields.

    Raises:
        NotExpressibleError: it has.
    """
    for name, default in zip(expected.__struct_fields__, expected.__struct_defaults__, strict=True):
        if name not in fields and getattr(expected, name) not in (default, {}):
            raise NotExpressibleError(f"`{name}` {_ELSEWHERE.get(name, 'is not supported')}")


def cpus(expected: CPUs, holder: str, assign: Callable[[str, str], str]) -> Iterator[str]:
    """Yields statements that check the CPUs in the variables ``got`` and ``topo``.

    Args:
        expected: the expectation.
        holder: the CPUs' holder in messages, such as ``app``.
        assign: returns the assignment of a value to a variable.

    Raises:
        NotExpressibleError: a condition refers to another container.
    """
    match expected:
        case int():
            expected = CPUsExpected(count=expected)
        case str():
            expected = CPUsExpected(equals=expected)
    for name, value in msgspec.structs.asdict(expected).items():
        if value is None:
            continue
        if name in _COUNTED:
            counted, what = _COUNTED[name]
            yield unless(f"{counted} != {value}", f"{value} {what}", holder)
        elif name in _COMPARED:
            condition, what = _COMPARED[name]
            if value == "shared":
                raise NotExpressibleError("the shared pool as an expectation is not supported")
            chosen = CPUSet.parse(value)
            yield unless(condition.format(cpu_set(chosen)), what.format(chosen), holder)
        elif name == "whole_cores":
            whole = "topo.CPUDetails.CPUsInCores(topo.CPUDetails.KeepOnly(got).Cores().List()...)"
            yield unless(f"{'!' if value else ''}got.Equals({whole})", "whole cores", holder)
        elif name == "per_node":
            yield assign("perNode", "[]int{}")
            yield from _per_node(value, holder)
        else:
            raise NotExpressibleError(f"`{name}` is not supported")


def _per_node(counts: tuple[int, ...], holder: str) -> Iterator[str]:
    yield block(
        "for _, node := range topo.CPUDetails.KeepOnly(got).NUMANodes().List()",
        "onNode := topo.CPUDetails.CPUsInNUMANodes(node).Intersection(got)",
        "perNode = append(perNode, onNode.Size())",
    )
    yield "sort.Ints(perNode)"
    wanted = ", ".join(map(str, sorted(counts)))
    yield unless(f"!reflect.DeepEqual(perNode, []int{{{wanted}}})", f"{wanted} per node", holder)


def unless(wrong: str, description: str, holder: str) -> str:
    """Returns a statement that fails the test if the condition `wrong` holds."""
    return block(f"if {wrong}", f't.Errorf("{holder} has CPUs %q, want {description}", got)')
