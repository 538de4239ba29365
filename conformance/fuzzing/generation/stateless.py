"""Generates calls that need no started node: merges of hints, and CPU assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.schema import AssignStep, MergeStep
from numaproof.conformance.fuzzing.generation.focus import MAX_MERGES
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.cpu.options import ACROSS_NUMA, FULL_CORES
from numaproof.reference.topology.options import CLOSEST

if TYPE_CHECKING:
    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices

_RESOURCES = ("cpu", "memory", "vendor.example/nic", "vendor.example/gpu")


def merge(choices: Choices, capabilities: Capabilities) -> MergeStep:
    """Generates a merge of up to four providers on up to five nodes."""
    nodes = tuple(range(choices.integer(1, 5)))
    options: dict[str, str] = {}
    distances = None
    if CLOSEST in capabilities.hello.options.topology and choices.chance(3):
        options[CLOSEST] = "true"
        distances = _distances(choices, len(nodes))
    return MergeStep(
        nodes=nodes,
        policy=choices.pick(capabilities.hello.policies.topology or ("none",)),
        providers=_providers(choices, len(nodes)),
        options=options,
        distances=distances,
    )


def _distances(choices: Choices, count: int) -> dict[str, tuple[int, ...]]:
    table = [[10] * count for _ in range(count)]
    for left in range(count):
        for right in range(left + 1, count):
            table[left][right] = table[right][left] = choices.pick((12, 11, 21, 32))
    return {str(node): tuple(row) for node, row in enumerate(table)}


def _providers(choices: Choices, nodes: int) -> tuple[dict[str, Any] | None, ...]:
    """Generates providers, with few enough combinations of hints for a kubelet to merge quickly."""
    made: list[dict[str, Any] | None] = []
    product = 1
    for number in range(choices.integer(0, 4)):
        kind = choices.pick(
            ("hints", "hints", "hints", "hints", "no preference", "nowhere", "null")
        )
        resource = _RESOURCES[number]
        if kind == "hints":
            room = max(1, min((1 << nodes) - 1, MAX_MERGES // product))
            hints = _hints(choices, nodes, room)
            product *= len(hints)
            made.append({resource: hints})
        else:
            others: dict[str, Any] = {"no preference": {resource: None}, "nowhere": {resource: []}}
            made.append(others.get(kind))
    return tuple(made)


def _hints(choices: Choices, nodes: int, most: int) -> list[dict[str, Any]]:
    """Generates different sets of nodes, usually preferred if they are the smallest."""
    sets = choices.some(range(1, 1 << nodes), 1, min(most, 6))
    narrowest = min(mask.bit_count() for mask in sets)
    odd = choices.chance(3)
    return [
        {
            "numa": [*NUMASet.from_mask(mask)],
            "preferred": choices.chance(2) if odd else mask.bit_count() == narrowest,
        }
        for mask in sets
    ]


def assign(choices: Choices, facts: Facts, capabilities: Capabilities) -> AssignStep:
    """Generates an assignment that avoids partly used cores if they would cause an endless loop."""
    options = choices.some(capabilities.cpu_options(), 0, 2)
    # The two options may conflict.
    if not capabilities.makes("feature configuration-validation"):
        options = options[:1]
    cores = list(facts.cores)
    if {FULL_CORES, ACROSS_NUMA} <= set(options):
        if len({len(core) for core in cores}) > 1:
            options = [FULL_CORES]
        taken = CPUSet.union(choices.some(cores, 0, len(cores) - 1))
    else:
        taken = CPUSet(choices.some([*facts.all], 0, min(len(facts.all) - 1, 8)))
    available = facts.all - taken
    return AssignStep(
        available=str(available),
        count=choices.integer(1, len(available) + choices.pick((0, 0, 1))),
        options=dict.fromkeys(options, "true"),
    )
