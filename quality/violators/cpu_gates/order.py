"""Violators of the order in which a start reports its errors."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints.files import CheckpointError
from numaproof.reference.config import reservation
from numaproof.reference.config.fields import ConfigError
from numaproof.reference.cpu import topology as cpu_topology
from numaproof.reference.errors import StartError
from quality.seeding import Changes, SubjectBugs

seeds = SubjectBugs("cpu-gates")


def _check_file(state_dir: str, policy: str, release: Any) -> None:
    """Raises a `StartError` if the CPU Manager's checkpoint is damaged, or of another policy."""
    content = files.read(Path(state_dir) / cpu_checkpoint.FILE_NAME)
    if content is None:
        return
    try:
        cpu_checkpoint.restore(content, policy, {}, release.cpu_files)
    except CheckpointError as error:
        # Version 1 needs the containers that run, and is left for later.
        if "containerID" not in str(error):
            message = f"could not restore state from checkpoint: {error}"
            raise StartError("cpu", message) from None


@seeds("CPU-ERROR-007")
def checkpoint_is_read_before_the_memory_policy_is_made(changes: Changes) -> None:
    """Each manager is made and started before the next one."""
    started: list[Any] = []

    def start(original: Any, args: Any, *rest: Any) -> Any:
        started.append(args)
        return original(args, *rest)

    def make(original: Any, config: Any, machine: Any, release: Any) -> Any:
        _check_file(started[-1].state_dir, config.cpu_policy, release)
        return original(config, machine, release)

    changes.around(startup, "start", start)
    changes.around(startup, "make_memory_policy", make)


@seeds("CPU-ERROR-007")
def machine_is_discovered_before_the_configuration_is_read(changes: Changes) -> None:
    """Without a machine that has CPUs there is nothing to configure."""

    def start(original: Any, args: Any, release: Any, discover: Any) -> Any:
        machine = args.machine or discover(args.root, release)
        try:
            cpu_topology.derive(machine)
        except cpu_topology.TopologyError as error:
            raise StartError("cpu", str(error)) from None
        return original(args, release, discover)

    changes.around(startup, "start", start)


@seeds("CPU-ERROR-007")
def cpu_policy_is_made_before_the_topology_policy(changes: Changes) -> None:
    """The managers come first, and then what brings them together."""

    def make(original: Any, config: Any, machine: Any, release: Any) -> Any:
        with suppress(cpu_topology.TopologyError, ConfigError):
            topology = cpu_topology.derive(machine)
            reserved = reservation.reserved_cpus(config, topology.all_cpus, counted=release.counted)
            startup.make_cpu_policy(config, topology, reserved, release)
        return original(config, machine, release)

    changes.around(startup, "make_topology_policy", make)


@seeds("CPU-ERROR-007")
def memory_policy_is_made_before_the_cpu_policy(changes: Changes) -> None:
    """The managers are made in any order."""
    machines: list[Any] = []

    def make_topology(original: Any, config: Any, machine: Any, release: Any) -> Any:
        machines.append(machine)
        return original(config, machine, release)

    def make_cpu(original: Any, config: Any, topology: Any, reserved: Any, release: Any) -> Any:
        if startup.has_memory_manager(config):
            startup.make_memory_policy(config, machines[-1], release)
        return original(config, topology, reserved, release)

    changes.around(startup, "make_topology_policy", make_topology)
    changes.around(startup, "make_cpu_policy", make_cpu)


@seeds("CPU-ERROR-007")
def reservation_is_checked_with_the_cpu_policy(changes: Changes) -> None:
    """Quantities and names of reserved CPUs are read where they are used, after the topology."""
    problems: list[str] = []

    def reserved_cpus(original: Any, *args: Any, **named: Any) -> Any:
        try:
            return original(*args, **named)
        except ConfigError as error:
            problems.append(str(error))
            return Fraction()

    def make_cpu(original: Any, *args: Any) -> Any:
        if problems:
            raise StartError("config", problems[0])
        return original(*args)

    changes.around(reservation, "reserved_cpus", reserved_cpus)
    changes.around(startup, "make_cpu_policy", make_cpu)
