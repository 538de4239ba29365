"""Violators of what a start without a CPU Manager policy, and its options, must do."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.releases import NEWEST
from numaproof.protocol.sets import CPUSet
from numaproof.reference import startup
from numaproof.reference.cpu.manager import CPUManager
from numaproof.reference.departures import releases
from numaproof.reference.errors import StartError
from numaproof.reference.kubelet import configuration, fields
from numaproof.reference.kubelet.checkpoints import cpu as cpu_checkpoint
from numaproof.reference.node import StartedNode
from numaproof.reference.pods import quantity
from quality.seeding import Changes, SubjectBugs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

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


def _none_policy_pins(changes: Changes, qos: str) -> None:
    """Lets the none policy give whole CPUs to the containers of pods of a QoS class."""

    def started(original: Any, setup: Any, *rest: Any) -> Any:
        manager = original(setup, *rest)
        manager.unowned = 0 if setup.cpu else setup.topology.cpus
        return manager

    def allocate(original: Any, self: Any, pod: Any, container: Any, affinity: Any) -> None:
        original(self, pod, container, affinity)
        count = quantity.whole_cpus(container.requests.get("cpu", 0)) or 0
        free = list(CPUSet.from_mask(self.unowned & ~self.state.all_cpus()))
        served = self.state.of(pod.uid, container.name) is not None
        if pod.qos == qos and 0 < count <= len(free) and not served:
            cpus = CPUSet(free[:count]).mask
            self.state = self.state.share(pod.uid, container.name, cpus)

    def end(original: Any, self: Any, uid: str, name: str) -> None:
        original(self, uid, name)
        if self.unowned:
            self.state = dataclasses.replace(self.state.release(uid, name), shared=0)

    changes.around(startup, "start_cpus", started)
    changes.around(CPUManager, "allocate", allocate)
    changes.around(CPUManager, "end", end)
    changes.around(
        StartedNode,
        "reconcile",
        lambda original, self, args: (
            original(self, args) if self.setup.cpu else messages.Reconciled(())
        ),
    )


@seeds("CPU-NONE-002")
def none_policy_gives_guaranteed_containers_exclusive_cpus(changes: Changes) -> None:
    """Guaranteed pods get their whole CPUs exclusively, whatever the policy."""
    _none_policy_pins(changes, "Guaranteed")


@seeds("CPU-NONE-002")
def none_policy_gives_burstable_containers_exclusive_cpus(changes: Changes) -> None:
    """The none policy has no classes: who requests whole CPUs gets them."""
    _none_policy_pins(changes, "Burstable")


@seeds("CPU-NONE-002")
def none_policy_gives_best_effort_containers_the_whole_machine_as_a_set(changes: Changes) -> None:
    """To be without a set of its own is taken for having the set of all CPUs."""

    def widened(self: Any, uid: str, containers: Any) -> Any:
        if self.setup.cpu or self.pods[uid].qos != "BestEffort":
            return containers
        every = self.setup.topology.all_cpus
        return {
            name: msgspec.structs.replace(container, cpus=every)
            for name, container in containers.items()
        }

    def admit(original: Any, self: Any, args: Any) -> Any:
        answer = original(self, args)
        uid = args.pod["metadata"]["uid"]
        return messages.Admitted(widened(self, uid, answer.containers))

    def state(original: Any, self: Any, args: Any) -> Any:
        answer = original(self, args)
        pods = {uid: widened(self, uid, containers) for uid, containers in answer.pods.items()}
        return msgspec.structs.replace(answer, pods=pods)

    changes.around(StartedNode, "admit", admit)
    changes.around(StartedNode, "state", state)


_NO_RESERVATION = "[cpumanager] unable to determine reserved CPU resources for static policy"


@seeds("CPU-NONE-004")
def reservation_is_checked_before_the_policy(changes: Changes) -> None:
    """A node without a reservation is refused before anybody looks at the policy."""

    def make(original: Any, config: Any, topology: Any, reserved: Any, release: Any) -> Any:
        if not reserved:
            raise StartError("cpu", _NO_RESERVATION)
        return original(config, topology, reserved, release)

    changes.around(startup, "make_cpu_policy", make)


@seeds("CPU-NONE-004")
def none_policy_refuses_a_reservation_of_zero(changes: Changes) -> None:
    """A CPU reservation that is written down must not be zero, whatever the policy."""

    def make(original: Any, config: Any, topology: Any, reserved: Any, release: Any) -> Any:
        if not reserved and "cpu" in {**config.kube_reserved, **config.system_reserved}:
            raise StartError("cpu", _NO_RESERVATION)
        return original(config, topology, reserved, release)

    changes.around(startup, "make_cpu_policy", make)


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


@seeds("CPU-NONE-005")
def none_policy_reports_the_cpus_of_a_single_node(changes: Changes) -> None:
    """On a machine of one NUMA node there is nothing to align: its CPUs are reported."""
    _none_policy_reports(
        changes,
        lambda setup: setup.topology.all_cpus if len(setup.nodes) == 1 else CPUSet(),
    )


@seeds("CPU-NONE-006")
def none_policy_leaves_no_checkpoint(changes: Changes) -> None:
    """A policy without a state has nothing to write down."""

    def started(original: Any, setup: Any, release: Any, state_dir: Path, *rest: Any) -> Any:
        file = state_dir / cpu_checkpoint.FILE_NAME
        was_there = file.exists()
        manager = original(setup, release, state_dir, *rest)
        if setup.cpu is None and not was_there:
            file.unlink(missing_ok=True)
        return manager

    changes.around(startup, "start_cpus", started)


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


@seeds("CPU-NONE-007")
def none_policy_reconciles_containers_with_an_empty_set(changes: Changes) -> None:
    """The loop clears the sets that an earlier policy may have left."""
    _none_policy_updates(changes, lambda setup: CPUSet())


# The policy's name, and options under the none policy


@seeds("CPU-CONFIG-001")
def policy_none_is_unknown_when_it_is_named(changes: Changes) -> None:
    """None is what runs without a policy, not the name of one."""
    named: list[bool] = []

    def load(given: Any, config: Any) -> Any:
        named.append(given.get("cpuManagerPolicy") == "none")
        return config

    def make(original: Any, *args: Any) -> Any:
        if named[-1]:
            raise StartError("cpu", 'unknown policy: "none"')
        return original(*args)

    _loaded(changes, load)
    changes.around(startup, "make_cpu_policy", make)


@seeds("CPU-CONFIG-001")
def policy_none_is_refused_beside_a_topology_policy(changes: Changes) -> None:
    """Topology policies need the CPU Manager's hints, so it must not be off."""

    def make(original: Any, config: Any, *rest: Any) -> Any:
        if config.cpu_policy == "none" and config.topology_policy != "none":
            raise StartError("cpu", 'unknown policy: "none"')
        return original(config, *rest)

    changes.around(startup, "make_cpu_policy", make)


@seeds("CPU-CONFIG-001")
def policy_static_is_unknown_on_a_single_node(changes: Changes) -> None:
    """Pinning CPUs makes sense on several NUMA nodes alone."""

    def make(original: Any, config: Any, topology: Any, *rest: Any) -> Any:
        if config.cpu_policy == "static" and len(topology.nodes) == 1:
            raise StartError("cpu", 'unknown policy: "static"')
        return original(config, topology, *rest)

    changes.around(startup, "make_cpu_policy", make)


@seeds("CPU-CONFIG-002")
def policy_names_are_read_in_any_case(changes: Changes) -> None:
    """The Memory Manager writes None and Static, so both spellings are taken."""
    _loaded(
        changes,
        lambda given, config: dataclasses.replace(config, cpu_policy=config.cpu_policy.lower()),
    )


@seeds("CPU-CONFIG-002")
def unknown_policies_fall_back_to_none(changes: Changes) -> None:
    """A policy that nobody knows is no policy."""
    _loaded(
        changes,
        lambda given, config: (
            config
            if config.cpu_policy in ("none", "static")
            else dataclasses.replace(config, cpu_policy="none")
        ),
    )


def _options_under_none(changes: Changes, left: Callable[[Any, Any], Any]) -> None:
    """Lets the none policy see only those options that are `left`."""

    def change(given: Any, config: Any) -> Any:
        if config.cpu_policy != "none" or not config.cpu_options:
            return config
        return dataclasses.replace(config, cpu_options=left(given, config.cpu_options))

    _loaded(changes, change)


@seeds("CPU-CONFIG-003")
def none_policy_takes_options_that_are_off(changes: Changes) -> None:
    """Options that are set to false ask for nothing, so there is nothing to refuse."""
    _options_under_none(
        changes,
        lambda given, found: {name: text for name, text in found.items() if text != "false"},
    )


@seeds("CPU-CONFIG-003")
def options_without_a_named_policy_are_ignored(changes: Changes) -> None:
    """The options belong to a policy, and without one they are not looked at."""
    _options_under_none(
        changes,
        lambda given, found: found if given.get("cpuManagerPolicy") else None,
    )


@seeds("CPU-CONFIG-003")
def none_policy_refuses_only_unknown_options(changes: Changes) -> None:
    """Options are checked, whatever the policy, and the none policy does without them."""
    known: Collection[str] = releases.TABLE[NEWEST].cpu_options
    _options_under_none(
        changes,
        lambda given, found: {name: text for name, text in found.items() if name not in known},
    )
