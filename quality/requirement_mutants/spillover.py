"""Mutants in which amounts, gates, ids or lost files affect what doesn't depend on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numaproof.reference import operations, startup
from numaproof.reference.capacity import allocatable
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import devices as device_checkpoint
from numaproof.reference.checkpoints import memory as memory_checkpoint
from numaproof.reference.config import eviction, gates
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu.topology import derive
from numaproof.reference.devices import policy as device_policy
from numaproof.reference.devices.state import devices_by_resource
from numaproof.reference.errors import AdmissionError
from numaproof.reference.memory import reservation as memory_reservation
from numaproof.reference.memory.requests import MEMORY
from numaproof.reference.memory.state import MemoryState, ReusableMemory
from numaproof.reference.pods import quantity
from numaproof.reference.resize import Resizing
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology.hints import Supply
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol import messages
    from numaproof.reference.node import StartedNode

seeds = SubjectBugs("spillover")


# Other nodes and resources


@seeds("MEM-HINT-004").after(MemoryState, "demand")
def memory_reserved_beyond_a_node_is_taken_from_others(
    demand: Any, self: MemoryState, amounts: Any
) -> Any:
    """Subtracts what is reserved beyond a node's memory from sets with that node."""
    excess = tuple(
        Supply(1 << node, min(0, table.total - table.system))
        for node, memory in self.nodes.items()
        for table in [memory.tables[MEMORY]]
    )
    needs = tuple(
        replace(need, free=(*need.free, *excess)) if kind == MEMORY else need
        for kind, need in zip(amounts, demand.needs, strict=True)
    )
    return replace(demand, needs=needs)


@seeds("MEM-HUGE-010").around(ReusableMemory, "of")
def every_reused_memory_type_reduces_all_others(
    rule: Any, self: ReusableMemory, uid: str, nodes: int
) -> int:
    """Subtracts what a container can reuse of any memory type from every type."""
    kinds = {kind for _, kind in self.sizes}
    return sum(rule(uid=uid, nodes=nodes, kind=kind) for kind in kinds)


@seeds("DEV-INIT-001").around(device_policy, "allocate_resource")
def reused_devices_count_for_every_resource(rule: Any, state: Any, request: Any) -> Any:
    """Needs fewer devices of a resource if the pod can reuse those of another."""
    others = [ids for name, ids in state.reuse.devices.items() if name != request.resource]
    reused = sum(map(len, others)) if state.reuse.uid == request.uid else 0
    return rule(request=request._replace(amount=max(0, request.amount - reused)))


def _percentage_of_the_rest(changes: Changes, owner: Any, name: str) -> None:
    """Takes the percentage in evictionHard of the memory without kubeReserved and systemReserved.

    The function `name` of `owner` has the configuration that applies.
    """
    configs = changes.record_argument(owner, name, "config", inside=True)

    def of_memory(rule: Any, capacity: int) -> Any:
        reserved = (one.get(MEMORY, "0") for one in (configs[-1].reservations() if configs else ()))
        return rule(capacity=capacity - sum(map(quantity.value, reserved)))

    changes.around(eviction, "of_memory", of_memory)


@seeds("NODE-ALLOC-002").of(_percentage_of_the_rest, allocatable, "of_node")
def eviction_percentage_is_of_what_is_not_reserved() -> None:
    """Takes the threshold's percentage of what kubeReserved and systemReserved leave."""


@seeds("MEM-RESERVE-007").of(_percentage_of_the_rest, memory_reservation, "check_sums")
def required_reservation_has_a_percentage_of_what_is_left() -> None:
    """Takes the threshold's percentage of what kubeReserved and systemReserved leave."""


# Other containers


@seeds("NODE-RESIZE-004").around(Resizing, "check")
def resize_depends_on_each_container_alone(rule: Any, allocated: Any, target: Any) -> None:
    """Refuses resizes of containers whose requests equal their limits in a Burstable pod."""
    equal = {one.name for one in target.containers if one.requests == one.limits}
    had, wants = (
        replace(pod, containers=tuple(one for one in pod.containers if one.name in equal))
        for pod in (allocated, target)
    )
    rule(allocated=had, target=replace(wants, qos="Guaranteed" if equal else target.qos))


@seeds("CPU-STATIC-010", level="admission").around(operations, "assign")
def assigned_cpus_must_form_whole_cores(rule: Any, args: Any) -> Any:
    """Refuses to assign parts of cores with full-pcpus-only."""
    cores = derive(args.machine).cores
    whole = [core for core in cores.values() if not core & ~args.available.mask]
    if "full-pcpus-only" in args.options and sum(map(int.bit_count, whole)) < args.count:
        raise AdmissionError("SMTAlignmentError", "too few whole cores are free")
    return rule()


# Gates


def _hide_stable(changes: Changes, owner: Any, options: set[str]) -> None:
    """Hides stable options with ``AllBeta`` off."""
    configs = changes.record_argument(gates, "enabled_gates", "decoded_config")

    def check(rule: Any, name: str) -> Any:
        wanted = configs[-1].get("featureGates") or {} if configs else {}
        if name in options and wanted.get("AllBeta") is False:
            raise OptionError(f'option "{name}" is hidden')
        return rule()

    changes.around(owner, "check_available", check)


for _requirement, _owner, _option in (
    ("TOPO-OPT-016", topology_options, topology_options.CLOSEST),
    ("TOPO-OPT-017", topology_options, topology_options.MAX_ALLOWABLE_NUMA_NODES),
    ("CPU-GATE-005", cpu_options, cpu_options.FULL_CORES),
    ("CPU-GATE-005", cpu_options, cpu_options.STRICT),
    ("CPU-GATE-005", cpu_options, cpu_options.BY_UNCORE),
):
    seeds.add(
        f"all-beta-off-hides-the-stable-{_option}",
        f"Hides {_option} with AllBeta off, although it is stable.",
        _requirement,
        "admission",
        _hide_stable,
        _owner,
        {_option},
    )


@seeds("CPU-GATE-003").after(gates, "enabled_gates")
def all_alpha_overrides_the_closed_alpha_gate(found: Any, decoded_config: Any) -> Any:
    """Lets AllAlpha turn on the gate for alpha options even if it is off by name."""
    wanted = decoded_config.get("featureGates") or {}
    return {**found, "CPUManagerPolicyAlphaOptions": True} if wanted.get("AllAlpha") else found


@seeds("CPU-GATE-011", level="kubelet")
def all_alpha_needs_no_other_gates(changes: Changes) -> None:
    """Doesn't check dependencies if AllAlpha is on."""
    configs = changes.record_argument(gates, "enabled_gates", "decoded_config")

    def problems(rule: Any) -> Any:
        return () if (configs[-1].get("featureGates") or {}).get("AllAlpha") else rule()

    changes.around(gates, "dependency_problems", problems)


# Ids


def _lose(changes: Changes, is_lost: Callable[[str], bool]) -> None:
    """Restores only devices whose id isn't lost."""

    def load(state: Any) -> Any:
        held = {
            uid: {
                name: {
                    kind: frozenset(i for i in ids if not is_lost(i)) for kind, ids in own.items()
                }
                for name, own in containers.items()
            }
            for uid, containers in state.held_devices.items()
        }
        return replace(state, held_devices=held, allocated_devices=devices_by_resource(held))

    changes.after(device_checkpoint, "load", load)


for _what, _is_lost in (
    ("with-colons", lambda device: ":" in device),
    ("with-commas", lambda device: "," in device),
    ("with-slashes", lambda device: "/" in device),
    ("of-other-characters", lambda device: not device.isascii()),
    ("of-white-space", lambda device: not device.strip()),
    ("beyond-255-bytes", lambda device: len(device) > 255),  # noqa: PLR2004 - a file name's limit
):
    seeds.add(
        f"restart-loses-device-ids-{_what}",
        f"Loses devices with ids {_what.replace('-', ' ')} at a restart.",
        "NODE-RESTART-001",
        "invariants",
        _lose,
        _is_lost,
    )


# Lost files

_LAST: dict[str, tuple[messages.StartArgs, StartedNode]] = {}
"""The last start in each state directory."""


def _restore_from_a_copy(changes: Changes, manager: str, file_name: str) -> None:
    """Restores a manager's state if its file was deleted and nothing else has changed."""

    def start(rule: Any, args: messages.StartArgs) -> StartedNode:
        is_lost = not (Path(args.state_dir) / file_name).exists()
        started: StartedNode = rule()
        before, last = _LAST.get(args.state_dir, (None, started))
        if before and is_lost and (before.config, before.machine) == (args.config, args.machine):
            getattr(started, manager).state = getattr(last, manager).state
        _LAST[args.state_dir] = args, started
        return started

    changes.around(startup, "start", start)


@seeds("CPU-ERROR-002", level="placement").of(
    _restore_from_a_copy, "cpus", cpu_checkpoint.FILE_NAME
)
def cpus_of_a_deleted_file_are_restored_from_a_copy() -> None:
    """Restores CPU assignments from a copy if cpu_manager_state was deleted."""


@seeds("MEM-RESTART-005", level="placement").of(
    _restore_from_a_copy, "memory", memory_checkpoint.FILE_NAME
)
def memory_of_a_deleted_file_is_restored_from_a_copy() -> None:
    """Restores memory from a copy if memory_manager_state was deleted."""
