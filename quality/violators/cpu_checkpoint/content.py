"""Violators of the requirements of the CPU Manager's checkpoint: CPU sets that do not fit."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference.checkpoints import cpu
from numaproof.reference.config import cpulist
from numaproof.reference.config.cpulist import CPUListError
from numaproof.reference.cpu.policy import StaticCPUPolicy
from numaproof.reference.cpu.topology import union
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
