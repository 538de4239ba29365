"""Violators of the requirements of the CPU Manager's checkpoint: CPU sets that do not fit."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu.policy import PolicyError, StaticCPUPolicy
from numaproof.reference.cpu.topology import union
from numaproof.reference.kubelet import cpulist
from numaproof.reference.kubelet.checkpoints import cpu
from numaproof.reference.kubelet.cpulist import CPUListError
from quality.seeding import Changes, SubjectBugs
from quality.violators.cpu_checkpoint.format import found_by

if TYPE_CHECKING:
    from numaproof.reference.cpu.state import CPUState

seeds = SubjectBugs("cpu-checkpoint")


def _is_list(text: str) -> bool:
    try:
        cpulist.parse(text)
    except CPUListError:
        return False
    return True


@seeds("CPU-CHECKPOINT-015")
def default_cpu_set_that_is_no_list_counts_as_empty(changes: Changes) -> None:
    """A plausible author reads a default CPU set that he does not understand as none."""

    def change(_: Any, found: dict[str, Any]) -> None:
        if not _is_list(found["defaultCpuSet"]):
            found["defaultCpuSet"] = ""

    found_by(changes, change)


@seeds("CPU-CHECKPOINT-015")
def containers_without_a_cpu_list_are_dropped(changes: Changes) -> None:
    """A plausible author drops a container whose CPU set he does not understand."""
    dropped: list[str] = []

    def change(_: Any, found: dict[str, Any]) -> None:
        for own in (found["entries"] or {}).values():
            bad = [name for name, text in own.items() if not _is_list(text)]
            dropped.extend(own.pop(name) for name in bad)

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        if dropped and not self.options.strict:
            # What the dropped containers had is free.
            held = union(cpus for _, _, cpus in state)
            left = {uid: own for uid, own in state.exclusive.items() if own}
            shared = self.topology.cpus & ~held
            state = dataclasses.replace(state, shared=shared, exclusive=left)
        return original(self, state)

    found_by(changes, change)
    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-CHECKPOINT-015")
def cpu_lists_may_have_spaces(changes: Changes) -> None:
    """A plausible author passes over spaces in a CPU list."""
    changes.around(cpu, "parse_cpus", lambda original, text: original(text.replace(" ", "")))


@seeds("CPU-CHECKPOINT-015")
def policy_none_reads_no_default_cpu_set(changes: Changes) -> None:
    """A plausible author does not read under policy none what has no meaning there."""

    def change(_: Any, found: dict[str, Any]) -> None:
        if found["policyName"] == "none" and not _is_list(found["defaultCpuSet"]):
            found["defaultCpuSet"] = ""

    found_by(changes, change)


@seeds("CPU-CHECKPOINT-016")
def empty_default_cpu_set_is_worked_out(changes: Changes) -> None:
    """A plausible author shares whatever the entries leave."""

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        if not state.shared and state.exclusive:
            apart = self.reserved if self.options.strict else 0
            held = union(cpus for _, _, cpus in state)
            state = dataclasses.replace(state, shared=self.topology.cpus & ~held & ~apart)
        return original(self, state)

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-CHECKPOINT-016")
def empty_default_cpu_set_forgets_the_entries(changes: Changes) -> None:
    """A plausible author takes an empty default CPU set for a state that was never initialised."""

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        if not state.shared and state.exclusive:
            state = dataclasses.replace(state, exclusive={})
        return original(self, state)

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-CHECKPOINT-017")
def one_reserved_cpu_in_the_default_set_will_do(changes: Changes) -> None:
    """A plausible author asks whether the sets meet, not whether one holds the other."""

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        there = self.reserved & state.shared
        if there and not self.options.strict:
            self = dataclasses.replace(self, reserved=there)
        return original(self, state)

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-CHECKPOINT-017")
def reserved_cpus_may_be_in_a_container(changes: Changes) -> None:
    """A plausible author wants each reserved CPU somewhere in the state."""

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        if not self.options.strict and state.shared and not self.reserved & ~state.all_cpus():
            self = dataclasses.replace(self, reserved=0)
        return original(self, state)

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-CHECKPOINT-018")
def overlap_of_later_containers_is_not_seen(changes: Changes) -> None:
    """A plausible author checks the first container of each pod."""

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        later = union(cpus for own in state.exclusive.values() for cpus in [*own.values()][1:])
        if not state.shared & later:
            return original(self, state)
        original(self, dataclasses.replace(state, shared=state.shared & ~later))
        return state

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-CHECKPOINT-018")
def overlap_leaves_the_default_cpu_set(changes: Changes) -> None:
    """A plausible author mends the default CPU set."""

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        overlap = state.shared & union(cpus for _, _, cpus in state)
        if overlap & ~self.reserved:
            state = dataclasses.replace(state, shared=state.shared & ~overlap)
        return original(self, state)

    changes.around(StaticCPUPolicy, "restore", restore)


@seeds("CPU-CHECKPOINT-018")
def overlap_names_the_pod_alone(changes: Changes) -> None:
    """A plausible author names the pod, whichever container it is."""

    def restore(original: Any, self: StaticCPUPolicy, state: CPUState) -> Any:
        try:
            return original(self, state)
        except PolicyError as error:
            for uid, name, own in state:
                if f"container: {name} cpuset: " in str(error):
                    raise PolicyError(
                        f'pod: {uid} cpuset: "{CPUSet.from_mask(own)}" overlaps with default '
                        f'cpuset "{CPUSet.from_mask(state.shared)}"'
                    ) from None
            raise

    changes.around(StaticCPUPolicy, "restore", restore)
