"""Generates a node's life: keeps track of configurations and pods, and chooses the next actions.

Only requests are tracked, not answers: every pod counts as admitted. The same choices therefore
make the same calls to any implementation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.releases import includes
from numaproof.conformance.cases.schema import (
    EndStep,
    HintsStep,
    MemoryChange,
    NoArguments,
    PodSpec,
    RemoveStep,
    StartStep,
    Step,
    TamperStep,
    open_step,
)
from numaproof.conformance.claims import needs
from numaproof.conformance.fuzzing.generation import pods, stateless
from numaproof.conformance.fuzzing.generation.configurations import configuration
from numaproof.conformance.fuzzing.generation.focus import focus as choose_focus
from numaproof.conformance.fuzzing.generation.machines import page_kinds
from numaproof.conformance.fuzzing.generation.pods import Room
from numaproof.conformance.fuzzing.generation.pods import pod as make_pod
from numaproof.conformance.judging.pods import amount
from numaproof.protocol.messages import KubeletConfiguration, StartArgs
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.protocol.machine import MachineInfo

_FILES = ("cpu_manager_state", "memory_manager_state")
_TAMPERINGS = ("truncate", "checksum", "policy", "field", "delete", "empty", "garbage", "space")
_OF_TWO_PARTS = ("old checksum", "old policy", "data", "data checksum", "no data")
"""Additional changes for releases whose files have a second part."""
_PAGE = 4096
_OPTIONS = ("cpuManagerPolicyOptions", "topologyManagerPolicyOptions", "featureGates")
_RESTART = "feature restart"
_RUNNING = "feature running-restart"
_LATE = 4
"""Number of admitted pods after which the node may stay down."""


class NodeScenario:
    """A node's life.

    Args:
        choices: the source of choices, which determine the focus.
        machine: the initial machine.
        capabilities: the target's capabilities, which limit the requests.

    Attributes:
        facts: the current machine.
        config: the configuration of the last start.
        offered_pods: all pods by name, in the order of their first admission.
        alive: the pods that have not been removed, with their exclusive CPUs.
        devices: the devices that plugins report.
        past_init: the pods with ended init containers.
        removals: the number of removed pods.
    """

    def __init__(self, choices: Choices, machine: MachineInfo, capabilities: Capabilities) -> None:
        self.facts = Facts(machine)
        self.capabilities = capabilities
        self.focus = choose_focus(choices, self.facts, capabilities, page_kinds(machine))
        self.config: KubeletConfiguration = {}
        self.offered_pods: dict[str, PodSpec] = {}
        self.alive: dict[str, int] = {}
        self.devices: pods.DeviceLists = {}
        self.past_init: set[str] = set()
        self.removals = 0

    def begin(self, choices: Choices) -> tuple[Step, ...]:
        """Starts the node for the first time; returns no steps if the target has no `start`."""
        if not self.capabilities.has("start"):
            return ()
        self.devices = pods.device_lists(choices, self.facts, self.focus.devices)
        self.config = self.configuration(choices)
        return (self._start(devices=self.devices or None),)

    def configuration(self, choices: Choices) -> KubeletConfiguration:
        """Generates a configuration for the current machine, within the claims."""
        return self.within(configuration(choices, self.facts, self.focus))

    def within(self, config: KubeletConfiguration) -> KubeletConfiguration:
        """Drops feature gates and options that the implementation does not claim."""
        gates = {
            name: on
            for name, on in config.get("featureGates", {}).items()
            if self.is_claimed({**config, "featureGates": {name: on}})
        }
        bare = {name: value for name, value in config.items() if name not in _OPTIONS}
        tries = (config, {**config, "featureGates": gates}, {**bare, "featureGates": gates}, bare)
        return next((one for one in tries if self.is_claimed(one)), bare)

    def is_claimed(self, config: KubeletConfiguration) -> bool:
        """Whether the claims suffice for a first start with this configuration."""
        args = StartArgs(config=config, state_dir="")
        kubernetes = self.capabilities.kubernetes
        return self.capabilities.makes(
            *needs.of_call("start", args, kubernetes, self.facts.machine)
        )

    def may(self, action: str) -> bool:
        """Whether the claims suffice for an action."""
        return self.capabilities.makes(*ACTIONS[action].needs)

    @property
    def keeps_files(self) -> bool:
        """Whether the node stores the kubelet's checkpoint files, so that they can be changed."""
        return self.capabilities.makes(needs.CHECKPOINT_FILES)

    # Estimates of the node's state

    def free_cpus(self) -> int:
        """Returns the CPUs left if every living pod has all of its requested CPUs."""
        return max(0, len(self.facts.all) - sum(self.alive.values()))

    def free_memory(self) -> int:
        """Returns the MiB of memory left if every living pod has what it requested."""
        kept = (entry.get("limits", {}) for entry in self.config.get("reservedMemory") or ())
        total = pods.whole_memory(self.facts) - sum(amount(one.get("memory", 0)) for one in kept)
        held = (
            pods.memory_of(self.offered_pods[name], after_init=name in self.past_init)
            for name in self.alive
        )
        return max(0, int(total) // pods.MIB - sum(held))

    def room(self) -> Room:
        """Returns the limits for the size of the next pod."""
        devices = pods.healthy_devices(self.devices)
        return Room(self.facts, self.free_cpus(), self.free_memory(), devices)

    def providers(self) -> int:
        """Returns the maximum number of resources whose hints are merged."""
        if "topologyManagerPolicy" not in self.config:
            return 0
        static = (self.config.get(key) for key in ("cpuManagerPolicy", "memoryManagerPolicy"))
        return sum(policy in ("static", "Static") for policy in static) + len(self.devices)

    def requested_resources(self) -> set[str]:
        """Returns the resources that any pod has requested so far."""
        return {
            resource
            for pod in self.offered_pods.values()
            for container in (*pod.init.values(), *pod.containers.values())
            for resource in (*container.requests, *container.limits)
        }

    # Actions

    def admit(self, choices: Choices) -> tuple[Step, ...]:
        """Admits a new pod."""
        pod = make_pod(choices, f"pod{len(self.offered_pods)}", self.room(), self.focus)
        self.offered_pods[pod.pod] = pod
        self.alive[pod.pod] = _cpus(pod)
        return (open_step(admit=pod),)

    def admit_again(self, choices: Choices) -> tuple[Step, ...]:
        """Admits an earlier pod again."""
        pod = self.offered_pods[choices.pick(tuple(self.offered_pods))]
        self.alive[pod.pod] = _cpus(pod)
        return (open_step(admit=pod),)

    def remove(self, choices: Choices) -> tuple[Step, ...]:
        """Removes a pod."""
        name = choices.pick(tuple(self.alive))
        del self.alive[name]
        self.removals += 1
        return (open_step(remove=RemoveStep(name)),)

    def replace(self, choices: Choices) -> tuple[Step, ...]:
        """Removes the latest or another pod and admits an equal one, which must fit as well."""
        names = tuple(self.alive)
        name = names[-1] if choices.chance(2) else choices.pick(names)
        equal = msgspec.structs.replace(self.offered_pods[name], pod=f"pod{len(self.offered_pods)}")
        del self.alive[name]
        self.removals += 1
        self.offered_pods[equal.pod] = equal
        self.alive[equal.pod] = _cpus(equal)
        return (open_step(remove=RemoveStep(name)), open_step(admit=equal))

    def passing(self) -> list[tuple[str, str]]:
        """Returns the init containers of living pods, except sidecars, by pod and name."""
        return [
            (name, container)
            for name in self.alive
            for container, spec in self.offered_pods[name].init.items()
            if not spec.restartPolicy
        ]

    def end_container(self, choices: Choices) -> tuple[Step, ...]:
        """Ends an init container; sidecars end only with their pod."""
        name, container = choices.pick(self.passing())
        self.past_init.add(name)
        return (open_step(remove=RemoveStep(name, container)),)

    def end(self, choices: Choices) -> tuple[Step, ...]:
        """Lets an init container end by itself, or all app containers and with them the pod.

        If only some app containers ended, it would be open whether they run after a restart.
        """
        passing = self.passing()
        if passing and not choices.chance(3):
            name, container = choices.pick(passing)
            self.past_init.add(name)
            return (open_step(end=EndStep(name, container)),)
        name = choices.pick(tuple(self.alive))
        del self.alive[name]
        self.removals += 1
        return tuple(
            open_step(end=EndStep(name, one)) for one in self.offered_pods[name].containers
        )

    def ask_hints(self, choices: Choices) -> tuple[Step, ...]:
        """Asks for the hints for a new pod or, sometimes, for an earlier one."""
        if self.offered_pods and choices.chance(3):
            pod = self.offered_pods[choices.pick(tuple(self.offered_pods))]
        else:
            pod = make_pod(choices, "asked", self.room(), self.focus)
        container = choices.pick((*pod.containers, None, *pod.init))
        return (open_step(hints=HintsStep(pod, container)),)

    def reconcile(self, _: Choices) -> tuple[Step, ...]:
        """Runs one pass of the reconcile loop."""
        return (open_step(reconcile=NoArguments()),)

    def restart(self, choices: Choices) -> tuple[Step, ...]:
        """Restarts with the same configuration; sometimes, a pod was removed in the meantime."""
        gone: tuple[str, ...] = ()
        if self.alive and choices.chance(4):
            gone = (choices.pick(tuple(self.alive)),)
            del self.alive[gone[0]]
        running = choices.chance(4) and self.capabilities.makes(_RUNNING)
        return (self._start(removed_pods=gone, running=running),)

    def reconfigure(self, choices: Choices) -> tuple[Step, ...]:
        """Restarts with a different configuration, often after deleting the checkpoints.

        If they cannot be deleted, often changes back to the earlier configuration afterwards.
        """
        before, self.config = self.config, self.configuration(choices)
        deleted = _FILES if choices.chance(2) else ()
        if deleted and not self.keeps_files:
            other = self._start()
            self.config = before
            return (other, self._start())
        return (*(_tamper(file, "delete") for file in deleted), self._start())

    def damage(self, choices: Choices) -> tuple[Step, ...]:
        """Damages a checkpoint and restarts; usually deletes the file and restarts again."""
        files = _FILES if self.focus.static_memory else _FILES[:1]
        file = choices.pick(files)
        two_parts = includes(">= 1.37", self.capabilities.kubernetes)
        how = choices.pick((*_TAMPERINGS, *_OF_TWO_PARTS) if two_parts else _TAMPERINGS)
        steps = [_tamper(file, how), self._start()]
        if not choices.chance(4):
            steps += [_tamper(file, "delete"), self._start()]
        return tuple(steps)

    def lose_cpu(self, choices: Choices) -> tuple[Step, ...]:
        """Restarts with a CPU offline."""
        return self._start_changed_machine(
            choices, offline=str(choices.pick([*self.facts.all][1:]))
        )

    def change_memory(self, choices: Choices) -> tuple[Step, ...]:
        """Restarts after a small or large change to a node's memory."""
        node = choices.pick([one for one in self.facts.machine.topology or () if one.memory])
        change = choices.pick((-_PAGE, _PAGE, -node.memory // 2, node.memory))
        memory = (MemoryChange(node.node_id, node.memory + change),)
        return self._start_changed_machine(choices, memory=memory)

    def _start_changed_machine(self, choices: Choices, **change: Any) -> tuple[Step, ...]:
        first = self._start(**change)
        if choices.chance(4) or not self.keeps_files:
            return (first,)
        return (first, *(_tamper(file, "delete") for file in _FILES), self._start())

    def report_devices(self, choices: Choices) -> tuple[Step, ...]:
        """Changes the devices that a plugin reports, while the kubelet runs or at a restart."""
        asked = self.requested_resources()
        self.devices = pods.changed_devices(choices, self.facts, self.devices, asked)
        if choices.chance(4) and self.capabilities.makes(_RESTART):
            return (self._start(devices=self.devices),)
        return (open_step(devices=self.devices),)

    def merge(self, choices: Choices) -> tuple[Step, ...]:
        """Merges generated hints, without a node."""
        return (open_step(merge=stateless.merge(choices, self.capabilities)),)

    def assign(self, choices: Choices) -> tuple[Step, ...]:
        """Assigns CPUs without a node."""
        return (open_step(assign=stateless.assign(choices, self.facts, self.capabilities)),)

    def _start(self, **what: Any) -> Step:
        step = StartStep(config=self.config, **what)
        if step.offline or step.memory:
            machine = manifests.without_cpus(self.facts.machine, CPUSet.parse(step.offline))
            self.facts = Facts(manifests.with_memory(machine, step.memory))
        return open_step(start=step)


@dataclass(frozen=True, slots=True)
class Action:
    """An action in a node's life.

    Attributes:
        needs: the claims that it needs.
        possible: whether it is possible now.
        act: performs it and returns its steps.
        weight: its relative frequency.
    """

    needs: tuple[str, ...]
    possible: Callable[[NodeScenario], bool]
    act: Callable[[NodeScenario, Choices], tuple[Step, ...]]
    weight: int = 1


def _always(_: NodeScenario) -> bool:
    return True


def _may_stay_down(life: NodeScenario) -> bool:
    """Whether a start may stay refused: checkpoints can be deleted, or the life is nearly over."""
    return life.keeps_files or len(life.offered_pods) >= _LATE


_ADMIT = ("operation admit",)
_AGAIN = ("operation start", _RESTART)
_CHANGED = (*_AGAIN, "feature reconfiguration")

ACTIONS: Mapping[str, Action] = {
    "admit": Action(_ADMIT, _always, NodeScenario.admit, 6),
    "admit_again": Action(_ADMIT, lambda life: bool(life.offered_pods), NodeScenario.admit_again),
    "remove": Action(("operation remove",), lambda life: bool(life.alive), NodeScenario.remove, 3),
    "replace": Action(
        (*_ADMIT, "operation remove"), lambda life: bool(life.alive), NodeScenario.replace, 2
    ),
    "end": Action(("operation end",), lambda life: bool(life.alive), NodeScenario.end, 2),
    "end_container": Action(
        ("operation remove", "feature container-removal"),
        lambda life: bool(life.passing()),
        NodeScenario.end_container,
        2,
    ),
    "ask_hints": Action(("operation hints",), _always, NodeScenario.ask_hints),
    "reconcile": Action(("operation reconcile",), _always, NodeScenario.reconcile),
    "restart": Action(_AGAIN, _always, NodeScenario.restart, 3),
    "reconfigure": Action(_CHANGED, _always, NodeScenario.reconfigure),
    "damage": Action((*_AGAIN, needs.CHECKPOINT_FILES), _always, NodeScenario.damage),
    "lose_cpu": Action(
        _CHANGED,
        lambda life: len(life.facts.all) > 1 and not life.focus.endless and _may_stay_down(life),
        NodeScenario.lose_cpu,
    ),
    "change_memory": Action(
        _CHANGED,
        lambda life: life.focus.static_memory and _may_stay_down(life),
        NodeScenario.change_memory,
    ),
    "report_devices": Action(
        ("operation devices",), lambda life: bool(life.devices), NodeScenario.report_devices, 2
    ),
    "merge": Action(("operation merge",), _always, NodeScenario.merge),
    "assign": Action(("operation assign",), _always, NodeScenario.assign),
}
"""All actions after the first start, by name."""


def _tamper(file: Any, how: Any) -> Step:
    return open_step(tamper=TamperStep(file, how))


def _cpus(pod: PodSpec) -> int:
    """Estimates a pod's exclusive CPUs: the sum of its app containers' whole-number CPU limits."""
    amounts = (str(one.limits.get("cpu", "")) for one in pod.containers.values())
    whole = (text.removesuffix("000m") for text in amounts)
    return sum(int(text) for text in whole if text.isdigit())
