"""Violators of the requirements of the memory checkpoint: what it holds, and whether it fits."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.kubelet.checkpoints import files, memory
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.state import MemoryState, reserved
from quality.checkpoint_changes import parsed
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.reference.memory.state import Block, NodeMemory

seeds = SubjectBugs("memory-checkpoint")


# Entries that do not fit


def _fits(nodes: Mapping[int, NodeMemory], block: Block) -> bool:
    return all(
        node in nodes and block.kind in nodes[node].tables
        for node in NUMASet.from_mask(block.nodes)
    )


def _worked_out(policy: StaticMemoryPolicy, entries: Mapping[str, Any]) -> MemoryState:
    """The state of the machine with these entries, as far as they fit."""
    nodes = dict(policy.empty)
    for containers in entries.values():
        for blocks in containers.values():
            for block in blocks:
                if _fits(nodes, block):
                    nodes = reserved(nodes, block, block.size)
    return MemoryState(nodes, entries)


def _static_restored(
    changes: Changes, change: Callable[[StaticMemoryPolicy, MemoryState], MemoryState]
) -> None:
    """Lets the static policy start from what `change` makes of a state without pods as a whole."""
    changes.around(
        StaticMemoryPolicy,
        "restore",
        lambda original, self, state: original(self, state if state.pods else change(self, state)),
    )


def _dropping(changes: Changes, unfit: Callable[[Mapping[int, NodeMemory], Block], bool]) -> None:
    """Lets a start drop the blocks that are `unfit` for its machine."""

    def change(policy: StaticMemoryPolicy, state: MemoryState) -> MemoryState:
        if not state.nodes or not any(unfit(policy.empty, one) for *_, own in state for one in own):
            return state
        kept = {
            (uid, name): tuple(block for block in blocks if not unfit(policy.empty, block))
            for uid, name, blocks in state
        }
        entries: dict[str, dict[str, Any]] = {}
        for (uid, name), blocks in kept.items():
            if blocks:
                entries.setdefault(uid, {})[name] = blocks
        return _worked_out(policy, entries)

    _static_restored(changes, change)


@seeds("MEM-CHECKPOINT-010")
def missing_machine_state_is_worked_out(changes: Changes) -> None:
    """A plausible author works the machine state out of the entries where there is none."""
    _static_restored(
        changes,
        lambda policy, state: (
            _worked_out(policy, state.entries) if state.entries and not state.nodes else state
        ),
    )


@seeds("MEM-CHECKPOINT-010")
def blocks_on_unknown_nodes_are_dropped(changes: Changes) -> None:
    """A plausible author takes back what lies on a node that is gone."""
    _dropping(
        changes,
        lambda nodes, block: any(node not in nodes for node in NUMASet.from_mask(block.nodes)),
    )


@seeds("MEM-CHECKPOINT-010")
def blocks_of_unknown_types_are_dropped(changes: Changes) -> None:
    """A plausible author takes back huge pages of a size that nodes no longer have."""
    _dropping(
        changes,
        lambda nodes, block: any(
            node in nodes and block.kind not in nodes[node].tables
            for node in NUMASet.from_mask(block.nodes)
        ),
    )


def _agreeing(changes: Changes, change: Callable[[NodeMemory, NodeMemory], NodeMemory]) -> None:
    """Lets the file's node be compared as `change` makes it of itself and the expected one."""

    def agree(original: Any, self: StaticMemoryPolicy, real: Any, expected: Any) -> Any:
        if real.keys() == expected.keys():
            real = {node: change(own, expected[node]) for node, own in real.items()}
        return original(self, real, expected)

    changes.around(StaticMemoryPolicy, "agree", agree)


@seeds("MEM-CHECKPOINT-011")
def number_of_assignments_is_not_compared(changes: Changes) -> None:
    """A plausible author compares amounts of memory alone."""
    _agreeing(changes, lambda own, real: dataclasses.replace(own, assignments=real.assignments))


@seeds("MEM-CHECKPOINT-011")
def groups_of_nodes_are_not_compared(changes: Changes) -> None:
    """A plausible author compares what each node has, not whom it is used with."""
    _agreeing(changes, lambda own, real: dataclasses.replace(own, cells=real.cells))


def _same_tables(changes: Changes, fields: tuple[str, ...]) -> None:
    def change(own: NodeMemory, real: NodeMemory) -> NodeMemory:
        tables = {
            kind: table._replace(**{name: getattr(real.tables[kind], name) for name in fields})
            if kind in real.tables
            else table
            for kind, table in own.tables.items()
        }
        return dataclasses.replace(own, tables=tables)

    _agreeing(changes, change)


@seeds("MEM-CHECKPOINT-011")
def memory_in_use_is_not_compared(changes: Changes) -> None:
    """A plausible author compares what the machine has, not how much of it is in use."""
    _same_tables(changes, ("reserved", "free"))


@seeds("MEM-CHECKPOINT-011")
def memory_kept_for_the_system_is_not_compared(changes: Changes) -> None:
    """A plausible author takes the reservation from the configuration, whatever the file says."""
    _same_tables(changes, ("system", "allocatable"))


# What is written


def _rewritten(changes: Changes, change: Callable[[dict[str, Any]], object]) -> None:
    """Lets `change` work on the fields that are written, in ``data`` and besides."""

    def dump(original: Any, *args: Any, **named: Any) -> bytes:
        document = parsed(original(*args, **named))
        change(document)
        if "data" in document:
            data = parsed(document["data"].encode())
            change(data)
            text = files.encode(data).decode()
            document.update(data=text, dataChecksum=files.checksum(f"(string){text}"))
        return files.encode(document)

    changes.around(memory, "dump", dump)


@seeds("MEM-CHECKPOINT-003")
def memory_checkpoint_orders_nodes_by_number(changes: Changes) -> None:
    """A plausible author writes the nodes in the order of their ids, 2 before 10."""

    def arrange(document: dict[str, Any]) -> None:
        nodes = document["machineState"]
        document["machineState"] = {node: nodes[node] for node in sorted(nodes, key=int)}

    _rewritten(changes, arrange)


@seeds("MEM-CHECKPOINT-003")
def memory_checkpoint_puts_memory_before_huge_pages(changes: Changes) -> None:
    """A plausible author begins with what every node has."""

    def arrange(document: dict[str, Any]) -> None:
        for node in document["machineState"].values():
            tables = node["memoryMap"]
            node["memoryMap"] = {"memory": tables["memory"], **tables}

    _rewritten(changes, arrange)


@seeds("MEM-CHECKPOINT-003")
def memory_checkpoint_has_empty_entries(changes: Changes) -> None:
    """A plausible author writes an empty map where there are no entries."""

    def with_entries(document: dict[str, Any]) -> None:
        if "entries" not in document:
            fields = list(document.items())
            fields.insert(2, ("entries", {}))
            document.clear()
            document.update(fields)

    _rewritten(changes, with_entries)


@seeds("MEM-CHECKPOINT-003")
def memory_checkpoint_leaves_out_a_reservation_of_nothing(changes: Changes) -> None:
    """A plausible author leaves fields out that are zero."""

    def leave_out(document: dict[str, Any]) -> None:
        for node in document["machineState"].values():
            for table in node["memoryMap"].values():
                if not table["systemReserved"]:
                    del table["systemReserved"]

    _rewritten(changes, leave_out)


@seeds("MEM-CHECKPOINT-003")
def memory_policy_none_has_a_null_machine_state(changes: Changes) -> None:
    """A plausible author writes null where there is no machine state."""

    def nothing(document: dict[str, Any]) -> None:
        document["machineState"] = document["machineState"] or None

    _rewritten(changes, nothing)
