"""Mutants of the CPU and Memory Managers' checkpoints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import NUMASet
from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu, files, formats, memory
from numaproof.reference.checkpoints.files import CheckpointError, CheckpointFile
from numaproof.reference.checkpoints.formats import (
    Format,
    Formats,
    TwoPartFormat,
    UnreadableError,
)
from numaproof.reference.config import cpulist
from numaproof.reference.config.cpulist import CPUListError
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from numaproof.reference.errors import StartError
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.memory.requests import MEMORY
from numaproof.reference.memory.state import MemoryState, NodeMemory, reserve_block
from numaproof.reference.node import StartedNode
from quality.seeding import Change, Changes, SubjectBugs, shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.reference.cpu.state import CPUState
    from numaproof.reference.memory.state import Block

seeds = SubjectBugs("checkpoints")


# Reading and writing files


def parse_fields(content: bytes) -> dict[str, Any]:
    """Returns the fields of a checkpoint, or none if it isn't a JSON object."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@shape(Format, "read")
def format_read(structure: str, read: Change, rule: Any, self: Format, content: bytes) -> Any:
    """Lets `read` read files without ``data`` whose structure name starts with `structure`."""
    if self.structure.startswith(structure):
        return read(rule, self, content)
    return rule()


@shape(TwoPartFormat, "read")
def two_parts_read(manager: str, read: Change, rule: Any, self: Any, content: bytes) -> Any:
    """Lets `read` read a manager's file that has ``data``."""
    if self.manager == manager:
        return read(rule, self, content)
    return rule()


def older_part(changes: Changes, manager: str, seal: Callable[..., dict[str, Any]]) -> None:
    """Lets `seal` compute the checksum of the part for earlier releases.

    `seal` is called with the original function, the format and the state's fields.
    """
    writing = changes.record_argument(TwoPartFormat, "write", "self", inside=True)

    def seal_older_part(rule: Any, self: Format, content: Any) -> Any:
        own = any(one.manager == manager for one in writing)
        return seal(rule, self, content) if own else rule()

    changes.around(Format, "with_checksum", seal_older_part)


def hashed_by_present_name(rule: Any, self: Format, content: Any) -> Any:
    """Computes a part's checksum with the structure's current name."""
    return rule(replace(self, takes_checksum_of=(self.structure,)), content)


# The CPU Manager's file


@shape(cpu, "dump")
def rewrite(change: Callable[[dict[str, Any]], object], rule: Any) -> bytes:
    """Lets `change` edit the fields before they are written; updates ``dataChecksum``."""
    document = parse_fields(rule())
    change(document)
    if "data" in document:
        document["dataChecksum"] = files.checksum(f"(string){document['data']}")
    return files.encode(document)


@shape(Formats, "read")
def change_content(change: Callable[[Format, dict[str, Any]], object], rule: Any, self: Any) -> Any:
    """Lets `change` edit the format and content read from the CPU Manager's file."""
    found_as, found = rule()
    if isinstance(self, cpu.CPUFormats):
        change(found_as, found)
    return found_as, found


# Written content


@seeds("CPU-CHECKPOINT-002").around(StartedNode, "save")
def cpu_checkpoint_leaves_out_init_containers(rule: Any, self: StartedNode) -> None:
    """Omits init containers, because they end before the app containers start."""
    kept = self.cpus.state
    passing = [
        (pod.uid, one.name)
        for pod in self.pods.values()
        for one in pod.containers
        if one.runs_to_completion and kept.of(pod.uid, one.name) is not None
    ]
    if passing:
        entries = {
            uid: {name: own for name, own in containers.items() if (uid, name) not in passing}
            for uid, containers in kept.exclusive.items()
        }
        left = {uid: containers for uid, containers in entries.items() if containers}
        free = union(kept.of(*place) or 0 for place in passing)
        free &= ~union(cpus for own in left.values() for cpus in own.values())
        self.cpus.state = replace(kept, shared=kept.shared | free, exclusive=left)
    rule()
    self.cpus.state = kept


# The part for earlier releases


@seeds("CPU-CHECKPOINT-026").by(older_part, "cpu manager")
def older_cpu_fields_hold_pod_entries(rule: Any, self: Format, content: Any) -> Any:
    """Writes pod-level entries into the part for earlier releases."""
    more = cpu.version_3("state.CPUManagerCheckpointV3")
    return rule(more if content.get("podEntries") else self, content)


@seeds("CPU-CHECKPOINT-026").of(older_part, "cpu manager", hashed_by_present_name)
def older_cpu_fields_are_hashed_by_their_new_name() -> None:
    """Hashes the part for earlier releases with the structure's current name."""


# When the file is written


def _at_start(changes: Changes, skips: Callable[[Any], bool]) -> None:
    """Doesn't create a file at startup if `skips` is true for the state."""
    starting = changes.record_argument(startup, "start_cpus", "setup", inside=True)

    def write(rule: Any, self: CheckpointFile[Any], state: Any) -> None:
        if not (starting and self.read() is None and skips(state)):
            rule()

    changes.around(CheckpointFile, "write", write)


@seeds("CPU-CHECKPOINT-012").of(_at_start, lambda state: not state.shared and not state.exclusive)
def policy_none_creates_no_cpu_checkpoint() -> None:
    """Assumes that only the static policy has state."""


@seeds("CPU-CHECKPOINT-020").after(StartedNode, "admit")
def admission_without_cpus_writes_the_cpu_checkpoint(admitted: Any, self: StartedNode) -> Any:
    """Writes the file after every admission."""
    self.cpus.file.write(self.cpus.state)
    return admitted


# Content


def _is_list(text: str) -> bool:
    try:
        cpulist.parse(text)
    except CPUListError:
        return False
    return True


@seeds("CPU-CHECKPOINT-015").around(cpu, "parse_cpus")
def cpu_lists_may_have_spaces(rule: Any, text: Any) -> Any:
    """Ignores spaces in CPU lists."""
    return rule(text=text.replace(" ", ""))


@seeds("CPU-CHECKPOINT-015").by(change_content)
def policy_none_reads_no_default_cpu_set(_: Any, content: dict[str, Any]) -> None:
    """Ignores the default CPU set under the none policy, even if it is invalid."""
    if content["policyName"] == "none" and not _is_list(content["defaultCpuSet"]):
        content["defaultCpuSet"] = ""


@seeds("CPU-CHECKPOINT-017").around(StaticCPUPolicy, "restore")
def one_reserved_cpu_in_the_default_set_will_do(rule: Any, self: Any, state: CPUState) -> Any:
    """Accepts a default set that contains any of the reserved CPUs instead of all of them."""
    there = self.reserved & state.shared
    if there and not self.options.strict:
        self = replace(self, reserved=there)
    return rule(self=self)


@seeds("CPU-CHECKPOINT-017").around(StaticCPUPolicy, "restore")
def reserved_cpus_may_be_in_a_container(rule: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
    """Accepts reserved CPUs anywhere in the state, even in a container."""
    if not self.options.strict and state.shared and not self.reserved & ~state.all_cpus():
        self = replace(self, reserved=0)
    return rule(self=self)


@seeds("CPU-CHECKPOINT-018").around(StaticCPUPolicy, "restore")
def overlap_of_later_containers_is_not_seen(rule: Any, state: CPUState) -> Any:
    """Checks only the first container of each pod for overlaps."""
    later = union(cpus for own in state.exclusive.values() for cpus in [*own.values()][1:])
    if not state.shared & later:
        return rule()
    rule(state=replace(state, shared=state.shared & ~later))
    return state


# Format versions


_FIRST = "state.CPUManagerCheckpointV1"


# The first format


@seeds("CPU-CHECKPOINT-013", kubernetes="1.36").around(Format, "takes")
def first_cpu_format_is_not_verified(rule: Any, self: Any) -> Any:
    """Accepts files in the first format without verifying their checksum."""
    return self.structure == _FIRST or rule()


@seeds("CPU-CHECKPOINT-013", kubernetes="1.36").by(change_content)
def first_cpu_format_is_read_and_forgotten(file_format: Format, content: dict[str, Any]) -> None:
    """Reads files in the first format but starts with an empty state."""
    if file_format.structure == _FIRST:
        content.update(defaultCpuSet="", entries={})


class _AllRunning(dict[str, tuple[str, str]]):
    """A map of running containers that contains every id."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> tuple[str, str]:
        return key, "unknown"


@seeds("CPU-CHECKPOINT-014", kubernetes="1.36").around(cpu, "restore")
def unknown_container_of_first_cpu_format_is_dropped(rule: Any, running: Any) -> Any:
    """Drops containers that no longer run instead of refusing the file."""
    return rule(running=_AllRunning(running))


# Pod-level entries, written by 1.36


def _with_formats(changes: Changes, change: Callable[[cpu.CPUFormats], cpu.CPUFormats]) -> None:
    """Reads and writes files in the formats that `change` returns."""
    changes.around(cpu, "dump", lambda rule, formats: rule(formats=change(formats)))
    changes.around(cpu, "restore", lambda rule, formats: rule(formats=change(formats)))


# The ``data`` field


@shape(TwoPartFormat, "takes", Changes.after)
def _accept_unsealed(manager: str, is_taken: Any, self: Any, content: Any) -> Any:
    """Accepts a manager's file if the checksum of ``data`` is missing."""
    return is_taken or (self.manager == manager and content["data"] and not content["dataChecksum"])


@seeds("CPU-CHECKPOINT-023").of(_accept_unsealed, "cpu manager")
def missing_cpu_data_checksum_is_taken() -> None:
    """Makes the checksum of ``data`` optional, like the other one."""


@seeds("CPU-CHECKPOINT-024").around(Formats, "read")
def first_cpu_format_is_still_known(rule: Any, self: Formats, content: bytes) -> Any:
    """Still accepts the first format, as earlier releases did."""
    try:
        return rule()
    except CheckpointError:
        if not isinstance(self, cpu.CPUFormats):
            raise
        first = cpu.version_1()
        try:
            return first, {**first.read(content), "podEntries": None}
        except UnreadableError:
            pass
        raise


@seeds("CPU-CHECKPOINT-024").by(_with_formats)
def cpu_checkpoint_without_data_is_refused(cpu_formats: cpu.CPUFormats) -> Any:
    """Refuses files without ``data``."""
    return replace(cpu_formats, attempts=cpu_formats.attempts[:1])


@seeds("CPU-CHECKPOINT-024").by(_with_formats)
def cpu_checkpoint_with_pod_entries_is_refused(cpu_formats: cpu.CPUFormats) -> Any:
    """Refuses files that 1.36 wrote with pod-level entries."""
    return replace(cpu_formats, attempts=(cpu_formats.attempts[0], *cpu_formats.attempts[2:]))


# Baselines


@seeds("CPU-CHECKPOINT-025").after(cpu, "restore")
def restart_makes_new_baselines(state: Any) -> Any:
    """Resets each container's baseline to its CPUs on restart."""
    return state and replace(state, baselines=None if state.baselines is None else state.exclusive)


# Reading


SPACE = b" \t\r\n"
KNOWN = frozenset(
    {"policyname", "defaultcpuset", "entries", "podentries", "checksum", "data", "datachecksum"}
)


# Unknown fields and white space


def _unknown(content: bytes) -> list[str]:
    return [name for name in parse_fields(content) if name.lower() not in KNOWN]


@seeds("CPU-CHECKPOINT-010").around(cpu, "restore")
def unknown_field_of_cpu_checkpoint_is_refused(rule: Any, content: bytes) -> Any:
    """Refuses unknown fields."""
    for name in _unknown(content):
        raise CheckpointError(f'json: unknown field "{name}"')
    return rule()


@seeds("CPU-CHECKPOINT-010").by(format_read, "state.CPU")
def unknown_field_counts_in_the_cpu_checksum(rule: Any, self: Format, content: bytes) -> Any:
    """Includes unknown fields in the checksum."""
    found = rule(self, content)
    if found["checksum"] and _unknown(content):
        raise UnreadableError(formats.CORRUPTED, found)
    return found


@seeds("CPU-CHECKPOINT-011").around(cpu, "restore")
def newline_after_cpu_checkpoint_is_refused(rule: Any, content: bytes) -> Any:
    """Refuses white space after the JSON document."""
    if content.strip(SPACE) and content[-1:] in SPACE:
        raise CheckpointError(r"invalid character '\n' after top-level value")
    return rule()


# Malformed checkpoints


@seeds("CPU-CHECKPOINT-009").around(Formats, "read")
def wrong_type_names_the_format_before_the_last(rule: Any, self: Formats, content: bytes) -> Any:
    """Reports the error of the second-to-last format instead of the last."""
    try:
        return rule()
    except CheckpointError as error:
        if not isinstance(self, cpu.CPUFormats) or "cannot unmarshal" not in str(error):
            raise
        try:
            self.attempts[-2].read(content)
        except UnreadableError as earlier:
            raise CheckpointError(str(earlier)) from None
        raise


@seeds("CPU-CHECKPOINT-009").by(format_read, "state.CPU")
def cpu_checksum_may_be_a_text(rule: Any, self: Format, content: bytes) -> Any:
    """Accepts a checksum written as a string."""
    document = parse_fields(content)
    text = document.get("checksum")
    if isinstance(text, str) and text.isdecimal():
        return rule(self, files.encode({**document, "checksum": int(text)}))
    return rule(self, content)


@seeds("CPU-CHECKPOINT-009").by(format_read, "state.CPU")
def list_of_cpu_entries_counts_as_none(rule: Any, self: Format, content: bytes) -> Any:
    """Treats a list of entries as an empty map."""
    document = parse_fields(content)
    if isinstance(document.get("entries"), list):
        return rule(self, files.encode({**document, "entries": {}}))
    return rule(self, content)


# The Memory Manager's file


def with_formats(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Reads files in the formats that `change` returns."""
    changes.around(memory, "restore", lambda rule, formats: rule(formats=change(formats)))


@shape(Format, "takes")
def _takes(also: Callable[[Format, Any], bool], rule: Any, self: Any, content: Any) -> Any:
    """Accepts files without ``data`` for which `also` is true."""
    return rule() or (self.structure.startswith("state.Memory") and also(self, content))


# The checksum


@seeds("MEM-CHECKPOINT-001").of(_takes, lambda _, content: not content["entries"])
def wrong_memory_checksum_without_entries_is_taken() -> None:
    """Doesn't verify the checksum of a file without entries."""


@seeds("MEM-CHECKPOINT-005").around(memory, "restore")
def null_machine_state_is_refused(rule: Any, content: bytes) -> Any:
    """Refuses null as the machine state."""
    document = parse_fields(content)
    text = document.get("data")
    inside = parse_fields(text.encode()) if isinstance(text, str) else {}
    if ("machineState", None) in (inside or document).items():
        raise CheckpointError("json: cannot unmarshal null into Go value of type state.NUMANodeMap")
    return rule()


@seeds("MEM-CHECKPOINT-006", kubernetes="1.35").of(
    _takes, lambda _, content: not content["checksum"]
)
def memory_checksum_may_be_missing_before_its_time() -> None:
    """Lets the checksum be missing one release early, as in the CPU Manager's file."""


_NEW_NAME = "state.MemoryManagerCheckpointV1"


@seeds("MEM-CHECKPOINT-007", kubernetes="1.36").around(Format, "takes")
def own_name_of_1_36_is_not_taken(rule: Any, self: Format) -> Any:
    """Hashes with the structure's old name only, so 1.36 can't read its own files."""
    if self.structure == _NEW_NAME:
        self = replace(self, takes_checksum_of=("state.MemoryManagerCheckpoint",))
    return rule(self=self)


def _takes_new_name(changes: Changes) -> None:
    _takes(
        changes,
        lambda self, content: content["checksum"] == files.checksum(self.dump(_NEW_NAME, content)),
    )


@seeds("MEM-CHECKPOINT-007").of(_takes_new_name)
def name_of_1_36_is_still_taken() -> None:
    """Still accepts checksums computed with the name from 1.36."""


@seeds("MEM-CHECKPOINT-007", kubernetes="1.35").of(_takes_new_name)
def name_of_1_36_is_taken_before_its_time() -> None:
    """Accepts both structure names in every release."""


# Other kinds of files


@seeds("MEM-CHECKPOINT-004").by(with_formats)
def memory_checkpoint_with_pod_entries_is_refused(memory_formats: Any) -> Any:
    """Refuses files that 1.36 wrote with pod-level entries."""
    return replace(
        memory_formats,
        attempts=tuple(one for one in memory_formats.attempts if "V2" not in one.structure),
    )


@seeds("MEM-CHECKPOINT-004").around(startup, "start")
def missing_memory_checkpoint_is_refused_with_pods(rule: Any, args: Any) -> Any:
    """Refuses to start without a file if pods are already on the node."""
    static = args.config.get("memoryManagerPolicy") == "Static"
    there = Path(args.state_dir, memory.FILE_NAME).exists()
    node = rule()
    if static and args.pods and not there:
        raise StartError("memory", "could not restore state from checkpoint: no such file")
    return node


@seeds("MEM-CHECKPOINT-009").around(memory, "restore")
def static_memory_policy_takes_the_checkpoint_of_none(rule: Any, policy: str) -> Any:
    """Lets the Static policy start from a file written by the None policy."""
    try:
        return rule()
    except CheckpointError as error:
        if policy != "Static" or "differs from state checkpoint policy" not in str(error):
            raise
        rule(policy="None")
        return MemoryState()


# Changed machines


@shape(StaticMemoryPolicy, "restore")
def _machine(change: Change, rule: Any, self: StaticMemoryPolicy, state: MemoryState) -> Any:
    """Lets `change` edit the restored NUMA nodes before the static policy checks them."""
    if state.nodes:
        nodes = change(self, dict(state.nodes))
        if nodes != state.nodes:
            state = replace(state, nodes=dict(sorted(nodes.items())))
    return rule(state=state)


@seeds("MEM-CHECKPOINT-002").of(_machine, lambda policy, nodes: {**policy.empty, **nodes})
def memory_of_new_nodes_is_not_compared() -> None:
    """Compares only the NUMA nodes in the file."""


def _with_pages_of(policy: StaticMemoryPolicy, nodes: dict[int, NodeMemory]) -> Any:
    """Replaces tables of huge pages by those of the machine if nothing is allocated from them."""
    return {
        node: replace(
            memory,
            tables={
                kind: policy.empty[node].tables.get(kind, table)
                if kind != MEMORY and node in policy.empty and not table.reserved
                else table
                for kind, table in memory.tables.items()
            },
        )
        for node, memory in nodes.items()
    }


@seeds("MEM-CHECKPOINT-002").of(_machine, _with_pages_of)
def huge_pages_are_not_compared() -> None:
    """Ignores changes in a node's huge pages while none of them are in use."""


# Entries that don't fit


def _fits(nodes: Mapping[int, NodeMemory], block: Block) -> bool:
    return all(
        node in nodes and block.kind in nodes[node].tables
        for node in NUMASet.from_mask(block.nodes)
    )


def _worked_out(policy: StaticMemoryPolicy, entries: Mapping[str, Any]) -> MemoryState:
    """Returns the state after reserving every entry that fits the machine."""
    nodes = dict(policy.empty)
    for containers in entries.values():
        for blocks in containers.values():
            for block in blocks:
                if _fits(nodes, block):
                    nodes = reserve_block(nodes, block, block.size)
    return MemoryState(nodes, entries)


@seeds("MEM-CHECKPOINT-010").around(StaticMemoryPolicy, "restore")
def missing_machine_state_is_worked_out(rule: Any, self: Any, state: Any) -> Any:
    """Computes a missing machine state from the entries instead of refusing the file."""
    return rule(
        state=state
        if state.pods
        else _worked_out(self, state.entries)
        if state.entries and (not state.nodes)
        else state
    )


@seeds("MEM-CHECKPOINT-010").around(StaticMemoryPolicy, "restore")
def blocks_of_unknown_types_only_count(rule: Any, self: Any, state: MemoryState) -> Any:
    """Counts blocks of memory types that a node lacks, but reserves nothing for them."""
    known: dict[str, dict[str, Any]] = {}
    nodes = dict(state.nodes)
    for uid, name, blocks in state:
        known.setdefault(uid, {})[name] = tuple(one for one in blocks if _fits(self.empty, one))
        for block in blocks:
            for node in NUMASet.from_mask(block.nodes):
                if node in nodes and not _fits(self.empty, block):
                    nodes[node] = replace(nodes[node], assignments=nodes[node].assignments - 1)
    return rule(state=replace(state, nodes=nodes, entries=known))


# Written content


@shape(memory, "dump")
def _rewrite(change: Callable[[dict[str, Any]], object], rule: Any) -> bytes:
    """Lets `change` edit the fields before they are written, including those in ``data``."""
    document = parse_fields(rule())
    change(document)
    if "data" in document:
        data = parse_fields(document["data"].encode())
        change(data)
        text = files.encode(data).decode()
        document.update(data=text, dataChecksum=files.checksum(f"(string){text}"))
    return files.encode(document)


@seeds("MEM-CHECKPOINT-003").by(_rewrite)
def memory_checkpoint_orders_nodes_by_number(document: dict[str, Any]) -> None:
    """Sorts NUMA nodes by number instead of as strings."""
    nodes = document["machineState"]
    document["machineState"] = {node: nodes[node] for node in sorted(nodes, key=int)}


# The part for earlier releases


@seeds("MEM-CHECKPOINT-014").of(_accept_unsealed, "memory manager")
def missing_memory_data_checksum_is_taken() -> None:
    """Makes the checksum of ``data`` optional, like the other one."""


@seeds("MEM-CHECKPOINT-014").by(two_parts_read, "memory manager")
def lost_memory_data_falls_back_on_older_fields(rule: Any, self: Any, content: bytes) -> Any:
    """Reads the older fields of a file that lost its ``data``, despite its ``dataChecksum``."""
    try:
        return rule(self, content)
    except CheckpointError as error:
        if parse_fields(content).get("data"):
            raise
        raise UnreadableError(str(error), {}) from None


@seeds("MEM-CHECKPOINT-015").by(older_part, "memory manager")
def older_memory_fields_hold_pod_entries(rule: Any, self: Format, content: Any) -> Any:
    """Writes pod-level entries into the part for earlier releases."""
    more = memory.version_2("state.MemoryManagerCheckpointV2")
    return rule(more if content.get("podEntries") else self, content)


@seeds("MEM-CHECKPOINT-015").of(older_part, "memory manager", hashed_by_present_name)
def older_memory_fields_are_hashed_by_their_new_name() -> None:
    """Hashes the part for earlier releases with the structure's current name."""


@seeds("MEM-CHECKPOINT-015").by(older_part, "memory manager")
def older_memory_fields_have_no_checksum(rule: Any, self: Format, content: Any) -> Any:
    """Writes no checksum for the part that earlier releases read."""
    return {**rule(self, content), "checksum": 0}
