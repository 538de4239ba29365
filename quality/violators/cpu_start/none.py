"""Violators of what a start without a CPU Manager policy, and its options, must do."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import messages
from numaproof.reference import startup
from numaproof.reference.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.config import configuration, fields
from numaproof.reference.errors import StartError
from numaproof.reference.node import StartedNode
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.protocol.sets import CPUSet

seeds = SubjectBugs("cpu-start")


# The none policy


def _loaded(changes: Changes, change: Callable[[Any, Any], Any]) -> None:
    """Lets a configuration be another; `change` is given its fields as written, and as loaded."""
    changes.around(
        configuration,
        "load",
        lambda original, given, *rest: change(given, original(given, *rest)),
    )


@seeds("CPU-NONE-001")
def unnamed_policy_is_static_where_cpus_are_reserved(changes: Changes) -> None:
    """Somebody who reserves CPUs surely wants the static policy."""

    def guessed(given: Any, config: Any) -> Any:
        reserves = config.named_cpus or "cpu" in {**config.kube_reserved, **config.system_reserved}
        if given.get("cpuManagerPolicy") or not reserves:
            return config
        return dataclasses.replace(config, cpu_policy="static")

    _loaded(changes, guessed)


@seeds("CPU-NONE-001")
def empty_policy_name_is_an_unknown_policy(changes: Changes) -> None:
    """The default is filled in for a field that is absent, not for one that is empty."""
    changes.around(
        fields,
        "text",
        lambda original, given, name, default: (
            ""
            if name == "cpuManagerPolicy" and given.get(name) == ""
            else original(given, name, default)
        ),
    )


@seeds("CPU-NONE-001")
def unnamed_policy_is_the_one_of_the_checkpoint(changes: Changes) -> None:
    """Without a policy in the configuration, the one that ran before goes on."""
    folders: list[Path] = []

    def start(original: Any, args: Any, *rest: Any) -> Any:
        folders.append(Path(args.state_dir))
        return original(args, *rest)

    def going_on(given: Any, config: Any) -> Any:
        # The harness loads configurations, too, to see what a case needs.
        files = [folder / cpu_checkpoint.FILE_NAME for folder in folders[-1:]]
        was_static = any(file.exists() and b'"static"' in file.read_bytes() for file in files)
        if given.get("cpuManagerPolicy") or not was_static:
            return config
        return dataclasses.replace(config, cpu_policy="static")

    changes.around(startup, "start", start)
    _loaded(changes, going_on)


def _none_policy_reports(changes: Changes, allocatable: Callable[[Any], CPUSet]) -> None:
    def started(original: Any, self: Any) -> Any:
        answer = original(self)
        if self.setup.cpu:
            return answer
        cpus = msgspec.structs.replace(answer.cpus, allocatable=allocatable(self.setup))
        return msgspec.structs.replace(answer, cpus=cpus)

    changes.around(StartedNode, "started", started)


@seeds("CPU-NONE-005")
def none_policy_reports_every_cpu_as_allocatable(changes: Changes) -> None:
    """Where nothing is reserved and nobody has exclusive CPUs, all can be allocated."""
    _none_policy_reports(changes, lambda setup: setup.topology.all_cpus)


@seeds("CPU-NONE-006")
def none_policy_writes_every_cpu_as_the_default_set(changes: Changes) -> None:
    """All containers share all CPUs, so all CPUs are in the default set."""
    every: list[int] = []

    def started(original: Any, setup: Any, *rest: Any) -> Any:
        every.append(setup.topology.cpus)
        return original(setup, *rest)

    def dump(original: Any, state: Any, policy: str, formats: Any) -> Any:
        if policy == "none" and every:
            state = dataclasses.replace(state, shared=every[-1])
        return original(state, policy, formats)

    def restore(original: Any, content: bytes, policy: str, *rest: Any) -> Any:
        state = original(content, policy, *rest)
        return dataclasses.replace(state, shared=0) if policy == "none" else state

    changes.around(startup, "start_cpus", started)
    changes.around(cpu_checkpoint, "dump", dump)
    changes.around(cpu_checkpoint, "restore", restore)


def _none_policy_updates(changes: Changes, cpus: Callable[[Any], CPUSet]) -> None:
    """Lets the first reconcile pass under the none policy send each container `cpus`."""

    def reconcile(original: Any, self: Any, args: Any) -> Any:
        answer = original(self, args)
        if self.setup.cpu:
            return answer
        updates = []
        for pod in self.pods.values():
            for container in pod.containers:
                place = (pod.uid, container.name)
                if place not in self.ended and place not in self.told:
                    self.told[place] = 0
                    updates.append(messages.CPUUpdate(*place, cpus(self.setup)))
        return messages.Reconciled(tuple(updates))

    changes.around(StartedNode, "reconcile", reconcile)


@seeds("CPU-NONE-007")
def none_policy_reconciles_containers_with_every_cpu(changes: Changes) -> None:
    """The loop runs under every policy, and without a policy all CPUs are right."""
    _none_policy_updates(changes, lambda setup: setup.topology.all_cpus)


# The policy's name, and options under the none policy


@seeds("CPU-CONFIG-001")
def policy_none_is_refused_beside_a_topology_policy(changes: Changes) -> None:
    """Topology policies need the CPU Manager's hints, so it must not be off."""

    def make(original: Any, config: Any, *rest: Any) -> Any:
        if config.cpu_policy == "none" and config.topology_policy != "none":
            raise StartError("cpu", 'unknown policy: "none"')
        return original(config, *rest)

    changes.around(startup, "make_cpu_policy", make)
