"""Checks whether a kubelet starts with a checkpoint file, and finds damage that it overlooks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

import msgspec

from numaproof.inputs.plurals import format_numbers, plural
from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import devices as devices_checkpoint
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.simulation import checkpoint_damage, device_checkpoint, state_files
from numaproof.simulation.admission import Question, begin
from numaproof.simulation.checkpoint_damage import damage, syntax_damage
from numaproof.simulation.defects import DefectNote, notes
from numaproof.simulation.state_files import STATE_DIR
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.memory.state import MemoryTable, NodeMemory


_NUMBER = re.compile(r"-?[0-9]{1,18}")
_FIELDS = ("total", "systemReserved", "allocatable")


def assumed_memory_config(
    fields: Mapping[str, Any], nodes: Container[int]
) -> dict[str, Any] | None:
    """Derives a configuration that matches the file; None if it contains too little information.

    Nothing is reserved on nodes that are not in `nodes`, the machine's NUMA nodes.
    """
    if fields.get("policyName") == "None":
        return {}
    reserved = {
        node: table["memory"].get("systemReserved")
        for node, table in _tables(fields).items()
        if "memory" in table and node in nodes
    }
    entries = [
        {"numaNode": node, "limits": {"memory": str(size)}}
        for node, size in reserved.items()
        if _is_amount(size) and size
    ]
    if fields.get("policyName") != "Static" or not entries:
        return None
    total = sum(size for size in reserved.values() if _is_amount(size))
    return {
        "memoryManagerPolicy": "Static",
        "systemReserved": {"memory": str(total)},
        "evictionHard": {},
        "reservedMemory": entries,
    }


def memory_findings(fields: Mapping[str, Any], machine: Mapping[int, NodeMemory]) -> Iterator[str]:
    """Yields the differences between the file and an idle `machine`, node by node.

    Content that the kubelet would not read is ignored.
    """
    in_file = _tables(fields)
    for node in sorted(in_file.keys() - machine.keys()):
        yield f"the file has NUMA node {node}, but the machine does not"
    for node in sorted(machine.keys() - in_file.keys()):
        yield f"the machine has NUMA node {node}, but the file does not"
    for node in sorted(in_file.keys() & machine.keys()):
        yield from _node(f"NUMA node {node}", in_file[node], machine[node].tables)
    yield from _blocks(fields, machine)
    yield from _groups(fields)


def _node(
    place: str, in_file: Mapping[str, Mapping[str, Any]], tables: Mapping[str, MemoryTable]
) -> Iterator[str]:
    for kind in sorted(in_file.keys() - tables.keys()):
        yield f"{place}: the file has {kind}, but the node does not"
    for kind in sorted(tables.keys() - in_file.keys()):
        yield f"{place}: the node has {kind}, but the file does not"
    for kind in sorted(in_file.keys() & tables.keys()):
        written, table = in_file[kind], tables[kind]
        real = (table.total, table.system, table.allocatable)
        for field, amount in zip(_FIELDS, real, strict=True):
            if written.get(field) != amount:
                yield (
                    f"{place}: {kind}: {field} is {written.get(field)} in the file but {amount} "
                    f"on the machine{_WHY.get(field, '')}"
                )
        reserved, free, allocatable = (
            _amount(written.get(field)) for field in ("reserved", "free", "allocatable")
        )
        if reserved + free != allocatable:
            yield (
                f"{place}: {kind}: reserved + free is {reserved + free}, but allocatable is "
                f"{allocatable}"
            )


_WHY = {
    "total": " (a new kernel, a different memory module, or huge pages allocated at run time)",
    "systemReserved": " (the configuration has changed since the file was written)",
}
"""Why a field of the file can differ from the machine."""


def _blocks(fields: Mapping[str, Any], machine: Mapping[int, NodeMemory]) -> Iterator[str]:
    """Finds blocks on missing nodes, and memory that no block accounts for."""
    held: dict[tuple[NUMASet, str], int] = {}
    lying: dict[int, int] = {}
    for place, block in _all_blocks(fields):
        try:
            nodes = NUMASet(block["numaAffinity"])
        except ValueError:
            nodes = NUMASet()
        absent = [node for node in block["numaAffinity"] if node not in machine]
        if absent:
            yield f"{place} has a block on NUMA node {absent[0]}, which the machine does not have"
        for node in nodes:
            lying[node] = lying.get(node, 0) + 1
        key = (nodes, block["type"])
        held[key] = held.get(key, 0) + block["size"]
    tables = _tables(fields)
    for (nodes, kind), size in held.items():
        reserved = sum(
            _amount(tables.get(node, {}).get(kind, {}).get("reserved")) for node in nodes
        )
        if size != reserved and all(node in tables for node in nodes):
            yield (
                f"{format_numbers('NUMA node', nodes)}: {kind}: containers hold {size},"
                f" but {reserved} is reserved"
            )
    for node, content in sorted(_nodes(fields).items()):
        count = content.get("numberOfAssignments")
        if count != lying.get(node, 0):
            blocks = plural(lying.get(node, 0), "block")
            yield f"NUMA node {node}: numberOfAssignments is {count}, but the node has {blocks}"


def _groups(fields: Mapping[str, Any]) -> Iterator[str]:
    """Finds overlapping groups of nodes; the kubelet creates only equal or disjoint ones."""
    groups = {
        node: tuple(content["cells"])
        for node, content in sorted(_nodes(fields).items())
        if isinstance(content.get("cells"), list)
    }
    for node, cells in groups.items():
        for member in cells:
            other = groups.get(member) if isinstance(member, int) else None
            if other is not None and other != cells:
                yield (
                    f"NUMA node {node} is in the group {list(cells)}, but node {member} of that "
                    f"group is in {list(other)}: groups must be equal or disjoint"
                )
                break


def _nodes(fields: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    nodes = fields.get("machineState")
    if not isinstance(nodes, dict):
        return {}
    return {
        int(node): content
        for node, content in nodes.items()
        if _NUMBER.fullmatch(node) and isinstance(content, dict)
    }


def _tables(fields: Mapping[str, Any]) -> dict[int, dict[str, Mapping[str, Any]]]:
    return {
        node: {
            kind: table for kind, table in content["memoryMap"].items() if isinstance(table, dict)
        }
        if isinstance(content.get("memoryMap"), dict)
        else {}
        for node, content in _nodes(fields).items()
    }


def _all_blocks(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    entries = fields.get("entries")
    for uid, containers in entries.items() if isinstance(entries, dict) else ():
        for name, blocks in containers.items() if isinstance(containers, dict) else ():
            for block in blocks if isinstance(blocks, list) else ():
                if (
                    isinstance(block, dict)
                    and isinstance(block.get("numaAffinity"), list)
                    and all(isinstance(node, int) for node in block["numaAffinity"])
                    and isinstance(block.get("type"), str)
                    and _is_amount(block.get("size"))
                ):
                    yield f"pod {uid}, container {name}", block


def _amount(value: Any) -> int:
    return value if _is_amount(value) else 0


def _is_amount(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


MAX_OVERLAPS = 20
"""Maximum number of pairs of pods with overlapping CPUs to report."""

Kind = Literal["cpu_manager_state", "memory_manager_state", "kubelet_internal_checkpoint"]


class UnknownFileError(ValueError):
    """The file isn't a checkpoint or has too little information; the message suggests a fix."""


class Judgement(msgspec.Struct, frozen=True):
    """The verdict on a file: its kind, and the kubelet's refusal (None if the kubelet starts).

    `findings` describe the problems in the file; `fix` lists the steps to fix them, in order;
    `warnings` are about a refusal or a start caused by named defects of the kubelet; `notes` say
    what the file contains, and what was read or assumed as the configuration and the machine;
    `is_absent` means that there is no such file next to the others.
    """

    kind: Kind
    refusal: messages.StartRefused | None
    findings: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    warnings: tuple[DefectNote, ...] = ()
    notes: tuple[str, ...] = ()
    is_absent: bool = False

    @property
    def good(self) -> bool:
        """Whether the file needs no fix."""
        return self.refusal is None and not self.findings


class Checkpoint(msgspec.Struct, frozen=True):
    """A checkpoint file: its content, kind, and fields (empty if not JSON).

    In a file with two parts, the fields are those in ``data``, the part that the kubelet uses.
    `written_as` is the kind of its content if its name is that of another kind.
    """

    content: bytes
    kind: Kind
    fields: dict[str, Any]
    written_as: Kind | None = None


_MARKS: Mapping[bytes, Kind] = {
    b"PodDeviceEntries": "kubelet_internal_checkpoint",
    b"machineState": "memory_manager_state",
    b"defaultCpuSet": "cpu_manager_state",
}
"""A field that only one kind of file has."""


def read(content: bytes, name: str) -> Checkpoint:
    """Recognises a checkpoint file.

    The kubelet knows its files by their names. A file with another name is recognised by its
    fields, or if it is damaged, by a part of its `name`.

    Raises:
        UnknownFileError: the file is not a checkpoint, or is not as the kubelet wrote it.
    """
    if converted := checkpoint_damage.conversion(content):
        raise UnknownFileError(f"not a checkpoint as a kubelet writes it: {converted}")
    fields = state_files.fields(content)
    written = _kind_of(fields)
    named: Kind | None = next((kind for kind in get_args(Kind) if kind in name), None)
    kind = named if written is None or name == named else written
    if kind is None and not fields and content.lstrip().startswith(b"{"):
        kind = next((kind for mark, kind in _MARKS.items() if mark in content), None)
    if kind is None:
        raise UnknownFileError(f"not a checkpoint; expected one of {', '.join(get_args(Kind))}")
    return Checkpoint(content, kind, fields, written if written != kind else None)


def _kind_of(fields: Mapping[str, Any]) -> Kind | None:
    """Returns the kind of file that has these fields."""
    if device_checkpoint.is_device_checkpoint(fields):
        return "kubelet_internal_checkpoint"
    if "machineState" in fields and isinstance(fields["machineState"], dict | None):
        return "memory_manager_state"
    return "cpu_manager_state" if "defaultCpuSet" in fields else None


def assumed_config(
    file: Checkpoint, machine: MachineInfo, kubernetes: str
) -> messages.KubeletConfiguration:
    """Derives a configuration with the file's policy and a reservation consistent with the file.

    If a file lacks CPUs of the machine, they are reserved strictly, where the release can do that.
    Any configuration will do for a file that no kubelet can read.

    Raises:
        UnknownFileError: the file contains too little information.
    """
    fields = file.fields
    if syntax_damage(file.content) or file.kind == device_checkpoint.NAME or file.written_as:
        return {}
    if file.kind == memory_checkpoint.FILE_NAME:
        config = assumed_memory_config(fields, [node.node_id for node in machine.topology or ()])
        if config is not None:
            return config
    elif fields.get("policyName") == "none":
        return {}
    else:
        shared = _cpus(fields.get("defaultCpuSet"))
        if fields.get("policyName") == "static" and shared:
            lacking = _cpus_of(machine) - shared - _exclusive(fields)
            if lacking and kubernetes not in _WITHOUT_STRICT:
                return _strict(lacking)
            return {"cpuManagerPolicy": "static", "reservedSystemCPUs": str(min(shared))}
    raise UnknownFileError("cannot derive a configuration from the file; pass --config")


_STRICT = "strict-cpu-reservation"
_WITHOUT_STRICT = frozenset({"1.30", "1.31"})


def _strict(reserved: CPUSet) -> messages.KubeletConfiguration:
    return {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {_STRICT: "true"},
        "featureGates": {"CPUManagerPolicyAlphaOptions": True},
        "reservedSystemCPUs": str(reserved),
    }


def _cpus_of(machine: MachineInfo) -> CPUSet:
    return CPUSet(
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    )


def _exclusive(fields: Mapping[str, Any]) -> CPUSet:
    """The CPUs of containers and of pods, as far as they are readable."""
    entries, pods = fields.get("entries"), fields.get("podEntries")
    texts = [
        text
        for containers in (entries.values() if isinstance(entries, dict) else ())
        for text in (containers.values() if isinstance(containers, dict) else (containers,))
    ]
    texts += [
        entry.get("cpuSet")
        for entry in (pods.values() if isinstance(pods, dict) else ())
        if isinstance(entry, dict)
    ]
    return CPUSet.union(map(_cpus, texts))


def assumption_notes(config: messages.KubeletConfiguration) -> tuple[str, ...]:
    """Returns remarks about a configuration that `assumed_config` derived."""
    if "cpuManagerPolicyOptions" not in config:
        return ()
    note = (
        f"the file fits {_STRICT} with reservedSystemCPUs: {config['reservedSystemCPUs']}; pass"
        " --config to check that the node has this reservation"
    )
    return (note,)


def judge(question: Question, file: Checkpoint, state_dir: Path) -> Judgement:
    """Starts the reference on a copy of the file in `state_dir`, an empty directory.

    Raises:
        CannotAnswerError: the reference does not support the configuration.
    """
    if file.kind == device_checkpoint.NAME:
        return _judge_devices(file, question.kubernetes)
    with scratch_folder() as empty:
        idle, without = begin(question, str(empty))
    if isinstance(without, messages.StartRefused):
        return Judgement(
            file.kind,
            without,
            ("the kubelet does not start without the file either: run `numaproof config check`",),
            ("fix the configuration first",),
        )
    refusal = _refusal(question, file, state_dir)
    findings = list(_wrong_name(file))
    if refusal is not None:
        findings += damage(file.content, file.kind, question.kubernetes, refusal.message)
    if file.kind == cpu_checkpoint.FILE_NAME:
        findings += _overlaps(file.fields.get("entries"))
    else:
        assert idle.node is not None
        if idle.node.setup.memory is not None and file.fields.get("policyName") == "Static":
            findings += memory_findings(file.fields, idle.node.setup.memory.empty)
    fix = tuple(_fix(file, refusal, findings))
    return Judgement(file.kind, refusal, tuple(findings), fix, _warnings(question, file, refusal))


def judge_absence(
    names: Container[str], config: messages.KubeletConfiguration
) -> Iterator[Judgement]:
    """Yields a verdict on each file that is not among these and that the kubelet has written."""
    for name in state_files.absent_files(names, config):
        kind: Kind = "cpu_manager_state" if name == state_files.CPU else "memory_manager_state"
        finding = "absent: what running pods hold is not recorded, so the kubelet assigns it anew"
        fix = "copy this file as well, or if the node has none, drain the node"
        yield Judgement(kind, None, (finding,), (fix,), is_absent=True)


def _judge_devices(file: Checkpoint, kubernetes: str) -> Judgement:
    found = (*_wrong_name(file), *device_checkpoint.findings(file.content, kubernetes))
    said = device_checkpoint.summary(file.content)
    steps = (
        *_copy_again(file),
        "drain the node and stop the kubelet",
        f"delete {STATE_DIR}/{devices_checkpoint.FILE_NAME}",
        "start the kubelet, which writes a new file",
    )
    return Judgement(file.kind, None, found, steps if found else (), notes=(said,) if said else ())


def _wrong_name(file: Checkpoint) -> Iterator[str]:
    if file.written_as:
        yield f"its content is that of {file.written_as}: copied under the wrong name?"


def _copy_again(file: Checkpoint) -> Iterator[str]:
    if file.written_as:
        yield "copy the file again; go on only if the node's own file has this content"


def _refusal(question: Question, file: Checkpoint, state_dir: Path) -> messages.StartRefused | None:
    """Returns the kubelet's refusal of the file; None if the kubelet starts."""
    files.write(state_dir / file.kind, file.content)
    _, start = begin(question, str(state_dir))
    if not isinstance(start, messages.StartRefused):
        return None
    return messages.StartRefused(start.stage, start.message.replace(str(state_dir), STATE_DIR))


def _warnings(
    question: Question, file: Checkpoint, refusal: messages.StartRefused | None
) -> tuple[DefectNote, ...]:
    def ask(without: frozenset[str]) -> dict[tuple[str, str], object]:
        lacking = msgspec.structs.replace(question, exceptions=without)
        with scratch_folder() as folder:
            return {("start", ""): _refusal(lacking, file, folder)}

    return notes((question.kubernetes,), {("start", ""): refusal}, ask)


def _fix(file: Checkpoint, refusal: messages.StartRefused | None, findings: list[str]) -> list[str]:
    if refusal is None and not findings:
        return []
    steps = [
        *_copy_again(file),
        "drain the node and stop the kubelet",
        f"delete {STATE_DIR}/{file.kind}",
        "start the kubelet, which writes a new file",
    ]
    differs = refusal is not None and "differs from state checkpoint policy" in refusal.message
    if differs and file.fields.get("policyName"):
        steps.append("or keep the file and restore the policy that it was written with")
    return steps


def _overlaps(entries: Any) -> list[str]:
    """Finds CPUs assigned to two pods; the kubelet never does that, but does not check for it."""
    if not isinstance(entries, dict):
        return []
    held: dict[str, CPUSet] = {}
    taken, found = CPUSet(), list[str]()
    for uid, containers in entries.items():
        if not isinstance(containers, dict):
            continue
        cpus = CPUSet.union(_cpus(text) for text in containers.values())
        if cpus & taken:
            found += (
                f"pods {other} and {uid} both hold {format_numbers('CPU', both)}"
                for other, others in held.items()
                if (both := cpus & others)
            )
        if len(found) > MAX_OVERLAPS:
            return [*found[:MAX_OVERLAPS], "... and more pods with overlapping CPUs"]
        held[uid], taken = cpus, taken | cpus
    return found


def _cpus(text: Any) -> CPUSet:
    try:
        return CPUSet.parse(text) if isinstance(text, str) else CPUSet()
    except ValueError:
        return CPUSet()
