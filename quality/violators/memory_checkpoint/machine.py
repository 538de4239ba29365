"""Violators of the requirements of the memory checkpoint: what it holds, and whether it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference.checkpoints import files, memory
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


@seeds("MEM-CHECKPOINT-010")
def missing_machine_state_is_worked_out(changes: Changes) -> None:
    """A plausible author works the machine state out of the entries where there is none."""
    _static_restored(
        changes,
        lambda policy, state: (
            _worked_out(policy, state.entries) if state.entries and not state.nodes else state
        ),
    )


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
