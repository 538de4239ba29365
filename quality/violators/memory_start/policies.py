"""Violators of the requirements of the Memory Manager's start, each breaking one sentence."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference import startup
from numaproof.reference.errors import AdmissionError, StartError
from numaproof.reference.kubelet import configuration, fields, validation
from numaproof.reference.kubelet.fields import ConfigError
from numaproof.reference.memory import requests, reservation
from numaproof.reference.memory.manager import MemoryManager
from numaproof.reference.memory.requests import AllocationError
from numaproof.reference.memory.state import Block
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

seeds = SubjectBugs("memory-start")

_REFUSED = "UnexpectedAdmissionError"


def _given(changes: Changes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Lets the kubelet read another configuration than the one it is given."""
    changes.around(
        configuration,
        "load",
        lambda original, given, *rest: original(change({**given}), *rest),
    )


def _loaded(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the kubelet start with another configuration than the one that it has checked."""
    changes.around(configuration, "load", lambda original, *args: change(original(*args)))


def _reserved(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the kubelet read other entries of ``reservedMemory`` than there are."""
    changes.around(fields, "memory_reservations", lambda original, given: change(original(given)))


def _validated(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the kubelet validate other entries of ``reservedMemory`` than there are."""
    changes.around(
        validation, "memory_problems", lambda original, entries: original(change(entries))
    )


def _under_none(changes: Changes, check: Callable[[Any, Any], None]) -> None:
    """Lets the policy None check a configuration on a machine."""

    def made(original: Any, config: Any, machine: Any, release: Any) -> Any:
        if config.memory_policy == "None":
            try:
                check(config, machine)
            except reservation.ReservationError as error:
                raise StartError("memory", str(error)) from None
        return original(config, machine, release)

    changes.around(startup, "make_memory_policy", made)


def _pins_nothing(self: Any) -> bool:
    """Whether this is a Memory Manager with the policy None, which knows of no nodes."""
    return not self.state.nodes


# The policy None


@seeds("MEM-NONE-001")
def none_policy_rejects_fractions_of_bytes(changes: Changes) -> None:
    """A plausible author reads what a container requests before asking which policy it is."""

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        if _pins_nothing(self) and pod.qos == "Guaranteed":
            try:
                requests.part(pod, container)
            except AllocationError as error:
                message = f"Allocate failed due to {error}, which is unexpected"
                raise AdmissionError(_REFUSED, message) from None
        original(self, pod, container, affinity)

    changes.around(MemoryManager, "allocate", allocate)


@seeds("MEM-NONE-001")
def none_policy_rejects_pods_larger_than_the_machine(changes: Changes) -> None:
    """A plausible author checks every request against the machine, whatever the policy."""

    def start(original: Any, args: Any, release: Any, discover: Any) -> Any:
        node = original(args, release, discover)
        machine = args.machine or discover(args.root, release)
        node.memory.most = machine.memory_capacity
        return node

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        asked = quantity.value(container.requests.get("memory", 0))
        if _pins_nothing(self) and asked > getattr(self, "most", asked):
            raise AdmissionError(
                _REFUSED, "Allocate failed due to not enough memory, which is unexpected"
            )
        original(self, pod, container, affinity)

    changes.around(startup, "start", start)
    changes.around(MemoryManager, "allocate", allocate)


@seeds("MEM-NONE-001")
def none_policy_pins_memory_on_node_0(changes: Changes) -> None:
    """A plausible author lists the memory of every Guaranteed container, bound or not."""

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        original(self, pod, container, affinity)
        if _pins_nothing(self) and pod.qos == "Guaranteed":
            size = quantity.value(container.requests.get("memory", 0))
            block = Block(1, "memory", size)
            self.state = self.state.with_blocks(pod.uid, container.name, (block,))

    changes.around(MemoryManager, "allocate", allocate)


@seeds("MEM-NONE-001")
def none_policy_reports_all_memory_as_allocatable(changes: Changes) -> None:
    """A plausible author takes all memory as allocatable where none is managed."""
    blocks: list[messages.MemoryBlock] = []

    def made(original: Any, config: Any, machine: Any, release: Any) -> Any:
        if config.memory_policy == "None":
            blocks.extend(
                messages.MemoryBlock(NUMASet([node.node_id]), "memory", node.memory)
                for node in machine.topology or ()
                if node.node_id >= 0 and node.memory
            )
        return original(config, machine, release)

    def started(original: Any, self: Any) -> Any:
        answer = original(self)
        return messages.Started(answer.cpus, tuple(blocks)) if blocks else answer

    changes.around(startup, "make_memory_policy", made)
    changes.around(StartedNode, "started", started)


@seeds("MEM-NONE-002")
def an_empty_memory_policy_is_unknown(changes: Changes) -> None:
    """A plausible author fills the default in only where the field is absent."""
    changes.around(
        fields,
        "text",
        lambda original, given, name, default: (
            ""
            if name == "memoryManagerPolicy" and given.get(name) == ""
            else original(given, name, default)
        ),
    )


@seeds("MEM-NONE-002")
def reserved_memory_switches_the_static_memory_policy_on(changes: Changes) -> None:
    """A plausible author takes reserved memory without a policy as a wish for Static."""

    def given(config: dict[str, Any]) -> dict[str, Any]:
        if config.get("memoryManagerPolicy") is None and config.get("reservedMemory"):
            config["memoryManagerPolicy"] = "Static"
        return config

    _given(changes, given)


@seeds("MEM-NONE-003")
def none_policy_checks_the_sum_of_reserved_memory(changes: Changes) -> None:
    """A plausible author checks a reservation wherever there is one."""

    def check(config: Any, machine: Any) -> None:
        if config.reserved_memory:
            reservation.check_sums(config, machine)

    _under_none(changes, check)


@seeds("MEM-NONE-003")
def none_policy_checks_the_nodes_of_reserved_memory(changes: Changes) -> None:
    """A plausible author looks the nodes of a reservation up before making the policy."""

    def check(config: Any, machine: Any) -> None:
        known = {node.node_id for node in machine.topology or ()}
        for node, _ in config.reserved_memory:
            if node not in known:
                raise reservation.ReservationError(f"NUMA node {node} does not exist")

    _under_none(changes, check)


# The configuration


@seeds("MEM-CONFIG-001")
def memory_policy_names_ignore_case(changes: Changes) -> None:
    """A plausible author compares as with the CPU Manager, whose policies are in small letters."""

    def given(config: dict[str, Any]) -> dict[str, Any]:
        policy = config.get("memoryManagerPolicy")
        if isinstance(policy, str) and policy.lower() in ("none", "static"):
            config["memoryManagerPolicy"] = policy.capitalize()
        return config

    _given(changes, given)


@seeds("MEM-CONFIG-001")
def unknown_memory_policies_count_as_none(changes: Changes) -> None:
    """A plausible author warns of an unknown policy and does without the Memory Manager."""

    def loaded(config: Any) -> Any:
        known = config.memory_policy in ("None", "Static", "BestEffort", "none", "static")
        return config if known else dataclasses.replace(config, memory_policy="None")

    _loaded(changes, loaded)


@seeds("MEM-CONFIG-002")
def memory_policies_of_a_wrong_type_are_read_as_text(changes: Changes) -> None:
    """A plausible author takes a number or a bool for its text, as YAML readers do."""

    def given(config: dict[str, Any]) -> dict[str, Any]:
        policy = config.get("memoryManagerPolicy")
        if isinstance(policy, bool | int | float):
            config["memoryManagerPolicy"] = str(policy)
        return config

    _given(changes, given)


def _with_entries(changes: Changes, change: Callable[[Any], Any]) -> None:
    """Lets the kubelet read another value of ``reservedMemory``, of any type."""

    def given(config: dict[str, Any]) -> dict[str, Any]:
        if config.get("reservedMemory") is not None:
            config["reservedMemory"] = change(config["reservedMemory"])
        return config

    _given(changes, given)


@seeds("MEM-CONFIG-002")
def numa_nodes_of_reserved_memory_may_be_in_quotes(changes: Changes) -> None:
    """A plausible author turns whatever is a number into one."""

    def unquoted(entry: Any) -> Any:
        node = entry.get("numaNode") if isinstance(entry, dict) else None
        digits = isinstance(node, str) and node.isdecimal()
        return {**entry, "numaNode": int(str(node))} if digits else entry

    _with_entries(
        changes,
        lambda entries: list(map(unquoted, entries)) if isinstance(entries, list) else entries,
    )


@seeds("MEM-CONFIG-002")
def reserved_memory_may_be_a_single_entry(changes: Changes) -> None:
    """A plausible author takes one object for a list of one."""
    _with_entries(changes, lambda entries: [entries] if isinstance(entries, dict) else entries)


@seeds("MEM-CONFIG-002")
def wrong_types_in_reserved_memory_are_blamed_on_the_whole(changes: Changes) -> None:
    """A plausible author names the outermost structure in every such message."""

    def blamed(original: Any, name: str, *rest: Any) -> ConfigError:
        text = str(original(name, *rest))
        return ConfigError(text.replace("field MemoryReservation.", "field KubeletConfiguration."))

    changes.around(fields, "wrong_type", blamed)


@seeds("MEM-CONFIG-003")
def best_effort_memory_policy_is_static(changes: Changes) -> None:
    """A plausible author takes it for a weaker Static, not for a policy of Windows."""

    def loaded(config: Any) -> Any:
        foreign = config.memory_policy == "BestEffort"
        return dataclasses.replace(config, memory_policy="Static") if foreign else config

    _loaded(changes, loaded)


@seeds("MEM-CONFIG-003")
def best_effort_memory_policy_pins_nothing(changes: Changes) -> None:
    """A plausible author leaves a policy of another platform alone, without refusing it."""

    def loaded(config: Any) -> Any:
        foreign = config.memory_policy == "BestEffort"
        return dataclasses.replace(config, memory_policy="None") if foreign else config

    _loaded(changes, loaded)
