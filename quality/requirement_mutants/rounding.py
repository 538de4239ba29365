"""Mutants that round, use other units, or break ties differently."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.capacity import allocatable
from numaproof.reference.config import eviction, reservation
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory import requests
from numaproof.reference.memory import reservation as memory_reservation
from numaproof.reference.memory.state import MemoryState
from numaproof.reference.pods import quantity
from numaproof.reference.topology.hints import Demand, Supply
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from numaproof.protocol.machine import MachineInfo

seeds = SubjectBugs("memory")

_MIB = 1 << 20
_HUNDREDTH = 10


# Memory in other units


@seeds("MEM-STATIC-009", level="invariants")
def memory_is_compared_in_whole_mebibytes(changes: Changes) -> None:
    """Compares the mebibytes that are requested and free, both rounded down."""

    def floored(demand: Demand) -> Demand:
        needs = tuple(
            replace(
                need,
                amount=need.amount // _MIB * _MIB,
                free=tuple(Supply(one.nodes, one.amount // _MIB * _MIB) for one in need.free),
            )
            for need in demand.needs
        )
        return replace(demand, needs=needs)

    changes.after(MemoryState, "demand", floored)
    changes.around(
        memory_policies,
        "satisfies",
        lambda rule, amounts: rule(
            amounts={kind: size // _MIB * _MIB for kind, size in amounts.items()}
        ),
    )


@seeds("MEM-RESERVE-001").around(memory_policies.StaticMemoryPolicy, "table")
def allocatable_memory_is_whole_mebibytes(rule: Any, total: int) -> Any:
    """Rounds every node's memory down to mebibytes."""
    return rule(total=total // _MIB * _MIB)


@seeds("MEM-STATIC-006").around(requests, "container_amounts")
def requested_memory_is_rounded_up_to_mebibytes(rule: Any) -> Any:
    """Pins whole mebibytes."""
    return {kind: -(-size // _MIB) * _MIB for kind, size in rule().items()}


@seeds("MEM-RESERVE-008").around(memory_reservation, "check_sums")
def sums_of_reservations_are_compared_in_mebibytes(rule: Any, config: Any, machine: Any) -> Any:
    """Compares reserved memory in whole mebibytes."""

    def floored(amounts: Any) -> dict[str, str]:
        return {
            name: str(math.floor(quantity.parse(text)) // _MIB * _MIB) if name == "memory" else text
            for name, text in amounts.items()
        }

    reserved = tuple((node, floored(limits)) for node, limits in config.reserved_memory)
    return rule(
        config=replace(
            config,
            reserved_memory=reserved,
            kube_reserved=floored(config.kube_reserved),
            system_reserved=floored(config.system_reserved),
        )
    )


@seeds("MEM-ERROR-003").around(quantity, "style", lambda rule: "binary")
def sums_have_binary_suffixes() -> None:
    """Writes every sum with a binary suffix."""


@seeds("MEM-ERROR-003").around(quantity, "style", lambda rule: "decimal")
def sums_have_decimal_suffixes() -> None:
    """Writes every sum with a decimal suffix."""


# Shares and sums


@shape(eviction, "of_memory")
def _share(change: Change, rule: Any, thresholds: Any) -> Any:
    """Lets `change` replace a percentage of memory."""
    text = thresholds.get("memory.available", "")
    changed = {"memory.available": change(text)} if "%" in text else {}
    return rule(thresholds={**thresholds, **changed})


@seeds("MEM-RESERVE-007").of(_share, lambda text: f"{int(float(text.rstrip('%')))}%")
def percentages_are_whole() -> None:
    """Rounds percentages down."""


@seeds("CPU-RESERVE-006", level="invariants").around(reservation, "reserved_cpus")
def every_quantity_of_cpus_is_rounded_up(rule: Any, config: Any) -> Fraction:
    """Rounds the CPUs of kubeReserved and systemReserved up before it adds them."""
    if config.named_cpus:
        return Fraction(rule())
    parts = [
        rule(config=replace(config, kube_reserved={})),
        rule(config=replace(config, system_reserved={})),
    ]
    return Fraction(sum(map(math.ceil, parts)))


@seeds("CPU-STATIC-005").around(quantity, "whole_cpus")
def whole_cpus_may_be_a_hundredth_more(rule: Any, text: Any) -> Any:
    """Takes up to ten thousandths beyond a whole number for rounding errors."""
    cpus, rest = divmod(quantity.milli_value(text), 1000)
    return cpus if cpus and rest <= _HUNDREDTH else rule()


@seeds("NODE-ALLOC-001").around(allocatable, "in_units")
def cpus_are_added_up_in_hundredths(rule: Any, resource: str, amount: Fraction) -> Any:
    """Rounds a pod's CPUs up to hundredths."""
    return math.ceil(amount * 100) * 10 if resource == "cpu" else rule()


# Ties


def _tying(changes: Changes, *, with_cpus: bool) -> None:
    """Takes memory from nodes with CPUs, or without, before equally good others."""
    machines: list[MachineInfo] = changes.record_argument(startup, "make_memory_policy", "machine")

    def best(rule: Any, first_choice: int) -> Any:
        found = rule()
        if found is None or first_choice or found.nodes.bit_count() != 1:
            return found
        for node in machines[-1].topology or ():
            choice = 1 << node.node_id
            if bool(node.cores) is with_cpus and rule(first_choice=choice).nodes == choice:
                return rule(first_choice=choice)
        return found

    changes.around(memory_policies.StaticMemoryPolicy, "best", best)


@seeds("MEM-STATIC-008").of(_tying, with_cpus=True)
def nodes_with_cpus_come_first_for_memory() -> None:
    """Takes memory from nodes with CPUs before nodes without."""


@seeds("MEM-STATIC-008").of(_tying, with_cpus=False)
def nodes_without_cpus_come_first_for_memory() -> None:
    """Takes memory from nodes without CPUs before nodes with CPUs."""
