"""Bugs of the policies none and None: what they pin, want and tell although they do nothing."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from numaproof.reference import startup
from numaproof.reference.config import fields
from numaproof.reference.cpu import policy as cpu_policies
from numaproof.reference.cpu.options import StaticOptions
from numaproof.reference.errors import StartError
from numaproof.reference.memory import policy as memory_policies
from numaproof.reference.memory import reservation
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from fractions import Fraction

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.config.configuration import Config
    from numaproof.reference.deviations.releases import Release

seeds = SubjectBugs("none")


@seeds("CPU-NONE-001")
def static_is_the_default(changes: Changes) -> None:
    def default(original: Any, given: Any, name: str, default: str) -> str:
        return str(original(given, name, "static" if name == "cpuManagerPolicy" else default))

    changes.around(fields, "text", default)


@seeds("CPU-NONE-002")
def policy_none_pins_cpus(changes: Changes) -> None:
    def pinning(
        original: Any,
        given: Config,
        topology: Any,
        reserved: Fraction,
        release: Release,
    ) -> cpu_policies.StaticCPUPolicy | None:
        found: cpu_policies.StaticCPUPolicy | None = original(given, topology, reserved, release)
        return found or cpu_policies.make_static(topology, StaticOptions(), 1, 0)

    changes.around(startup, "make_cpu_policy", pinning)


@seeds("CPU-NONE-004")
def policy_none_needs_a_reservation(changes: Changes) -> None:
    def wanting(
        original: Any,
        given: Config,
        topology: Any,
        reserved: Fraction,
        release: Release,
    ) -> cpu_policies.StaticCPUPolicy | None:
        as_static = dataclasses.replace(given, cpu_policy="static", cpu_options={})
        original(as_static, topology, reserved, release)
        found: cpu_policies.StaticCPUPolicy | None = original(given, topology, reserved, release)
        return found

    changes.around(startup, "make_cpu_policy", wanting)


@seeds("CPU-CONFIG-001", "CPU-RESERVE-008")
def reserved_cpus_are_told_as_allocatable(changes: Changes) -> None:
    changes.replace(
        cpu_policies.StaticCPUPolicy, "allocatable", property(lambda self: self.topology.cpus)
    )


@seeds("MEM-NONE-001", "MEM-NONE-002")
def policy_none_pins_memory(changes: Changes) -> None:
    def pinning(original: Any, given: Config, machine: MachineInfo, release: Release) -> Any:
        found = original(given, machine, release)
        return found or memory_policies.make_static(machine, {})

    changes.around(startup, "make_memory_policy", pinning)


@seeds("MEM-NONE-003")
def policy_none_reads_reserved_memory(changes: Changes) -> None:
    def reading(original: Any, given: Config, machine: MachineInfo, release: Release) -> Any:
        try:
            reservation.by_node(given, machine)
        except reservation.ReservationError as error:
            raise StartError("memory", str(error)) from None
        return original(given, machine, release)

    changes.around(startup, "make_memory_policy", reading)
