"""Generates complete scenarios: a machine and a node's life on it, as a case."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.schema import (
    Case,
    FileName,
    NoArguments,
    StartStep,
    Step,
    TamperStep,
    open_step,
)
from numaproof.conformance.fuzzing.generation import trees
from numaproof.conformance.fuzzing.generation.choices import Choices, Seeded
from numaproof.conformance.fuzzing.generation.life import ACTIONS, NodeScenario
from numaproof.conformance.fuzzing.generation.machines import machine
from numaproof.conformance.fuzzing.generation.unusual import unusual_start
from numaproof.protocol.discovery import WHOLE
from numaproof.protocol.sets import CPUSet
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import KubeletConfiguration


MIN_ACTIONS, MAX_ACTIONS = 3, 16
"""The minimum and maximum number of actions of a scenario after its first start."""


def case_of(
    name: str, title: str, steps: Iterable[Step], machine: MachineInfo | None = None
) -> Case:
    """Wraps steps in a case without requirements, which only the invariants judge."""
    return Case(name, title, (), level="invariants", machine=machine, steps=tuple(steps))


def discovery(name: str) -> Case:
    """Returns the scenario that discovers a tree."""
    discover = open_step(discover=NoArguments())
    return case_of(name, "A generated machine is discovered", [discover])


def on_its_tree(case: Case, choices: Choices, capabilities: Capabilities) -> Case:
    """Lets some lives start from their machine's tree, if the target supports discovery.

    This is the last choice, so the same seed makes the same calls without discovery.
    """
    if case.machine is None or not capabilities.makes(WHOLE):
        return case
    machine = trees.on_a_tree(choices, case.machine)
    if machine is None:
        return case
    return msgspec.structs.replace(case, machine=machine, tree=True)


def seeded_scenario(seed: int, capabilities: Capabilities) -> Case:
    """Generates the scenario for a seed, which is the same in every version of Python."""
    return scenario(Seeded(seed), capabilities, f"scenario-{seed}")


def scenario(choices: Choices, capabilities: Capabilities, name: str = "scenario") -> Case:
    """Generates a scenario of up to sixteen actions; some kinds of actions are left out."""
    info = machine(choices)
    life = NodeScenario(choices, info, capabilities)
    steps = [*life.begin(choices)]
    kinds = [
        name for name in ACTIONS if life.may(name) and (name == "admit" or not choices.chance(3))
    ]
    for _ in range(choices.integer(MIN_ACTIONS, MAX_ACTIONS)):
        possible = [
            name
            for name in kinds
            if ACTIONS[name].possible(life)
            for _ in range(ACTIONS[name].weight)
        ]
        if possible:
            steps += ACTIONS[choices.pick(possible)].act(life, choices)
    case = case_of(name, "A generated node and its life", steps, info)
    return on_its_tree(case, choices, capabilities)


def start(choices: Choices, capabilities: Capabilities, name: str = "start") -> Case:
    """Generates a scenario with one unusual start, followed by a pod and a request for the state.

    Other scenarios rarely have unusual fields or checkpoints, because nothing else can happen on a
    node that does not start.
    """
    info = machine(choices)
    life = NodeScenario(choices, info, capabilities)
    (first,) = life.begin(choices)
    assert first.start is not None
    steps = unusual_start(choices, life, devices=first.start.devices)
    if capabilities.has("admit"):
        steps += life.admit(choices)
    if capabilities.has("state"):
        steps.append(open_step(state=NoArguments()))
    return case_of(name, "An unusual start", steps, info)


_POD_LEVEL = "PodLevelResources"
_POD_MANAGERS = "PodLevelResourceManagers"
_PODS = "feature pod-level-resources"
_POLICIES = {
    "cpuManagerPolicy": ("cpuManagerPolicyOptions",),
    "topologyManagerPolicy": ("topologyManagerPolicyOptions", "topologyManagerScope"),
    "memoryManagerPolicy": ("reservedMemory",),
}
"""The managers' policies, and the fields that belong to each."""

_RESERVED = (
    "reservedSystemCPUs",
    "kubeReserved",
    "systemReserved",
    "reservedMemory",
    "evictionHard",
)
"""Reservations, which must be consistent with each other."""

_FEWEST_PODS, _MAX_PODS = 2, 6


def seeded_upgrade(seed: int, capabilities: Capabilities, after: str) -> Case:
    """Generates an upgrade from the release of `capabilities` to `after`.

    The result depends only on the seed and the claims; the seed also selects one of `CHANGES`.
    """
    kinds = tuple(CHANGES)
    return upgrade(Seeded(seed), capabilities, after, kinds[seed % len(kinds)], f"upgrade-{seed}")


def upgrade(
    choices: Choices, capabilities: Capabilities, after: str, kind: str, name: str = "upgrade"
) -> Case:
    """Generates a node's life in one release, its upgrade to `after`, and a drain.

    The drain follows the advice that a kubelet gives when it refuses a file: the pods leave, the
    files are deleted, and similar pods arrive.

    `kind` is one of `CHANGES`.
    """
    info = machine(choices)
    node = _Upgrade(NodeScenario(choices, info, capabilities), capabilities.kubernetes, after)
    node.choose_fixed_fields(kind)
    steps = [*node.live(choices, kind)]
    start = CHANGES[kind](node, choices)
    steps += [open_step(start=msgspec.structs.replace(start, kubernetes=after))]
    if choices.chance(2):
        steps += node.life.admit(choices)
    steps += [*node.reconcile_steps(), *node.drain(start)]
    title = f"A generated node is upgraded from {node.before} to {after}: {kind}"
    return on_its_tree(case_of(name, title, steps, info), choices, capabilities)


class _Upgrade:
    """A life that begins in the release `before` and continues in the release `after`."""

    def __init__(self, life: NodeScenario, before: str, after: str) -> None:
        self.life = life
        self.before = before
        self.after = after

    def choose_fixed_fields(self, kind: str) -> None:
        """Excludes settings that would prevent the node from starting in its first release."""
        focus = replace(self.life.focus, mistakes=False, gates=False)
        knows = _POD_LEVEL in release(self.before).gates
        whole = kind == _PODS_AS_A_WHOLE and self.life.capabilities.makes(_PODS)
        focus = replace(focus, pod_level=knows and (focus.pod_level or whole))
        self.life.focus = focus

    def live(self, choices: Choices, kind: str) -> Iterator[Step]:
        """Runs the node in the first release: it starts, pods arrive, and some of them leave."""
        (first,) = self.life.begin(choices)
        assert first.start is not None
        gates = self._gates(choices, kind)
        if gates:
            config = self.life.config
            self.life.config = self.life.within(
                {**config, "featureGates": {**config.get("featureGates", {}), **gates}}
            )
        start = msgspec.structs.replace(
            first.start, config=self.life.config, kubernetes=self.before
        )
        yield open_step(start=start)
        for _ in range(choices.integer(_FEWEST_PODS, _MAX_PODS)):
            yield from self.life.admit(choices)
            if self.life.passing() and choices.chance(4) and self.life.may("end_container"):
                yield from self.life.end_container(choices)
        if choices.chance(3):
            yield from self.life.remove(choices)
            yield from self.life.admit(choices)

    def _gates(self, choices: Choices, kind: str) -> Mapping[str, bool]:
        known = release(self.before).gates
        if kind == _PODS_AS_A_WHOLE and _POD_MANAGERS in known:
            return {_POD_MANAGERS: True}
        if kind == _GATES_KEPT:
            there = release(self.after).gates
            gone = [
                name
                for name, gate in known.items()
                if not gate.needs
                and (name not in there or (there[name].is_locked and not gate.is_locked))
            ]
            if gone:
                name = choices.pick(gone)
                later = there.get(name)
                return {name: known[name].default if later is None else not later.default}
        return {}

    # Changes that come with the upgrade

    def nothing_changes(self, _: Choices) -> StartStep:
        return StartStep(config=self.life.config)

    def pods_leave(self, choices: Choices) -> StartStep:
        """Removes some or all pods while the kubelet is down."""
        alive = tuple(self.life.alive)
        gone = alive if choices.chance(3) else tuple(choices.some(alive, 1, len(alive)))
        for pod in gone:
            del self.life.alive[pod]
        return StartStep(config=self.life.config, removed_pods=gone)

    def cpus_leave(self, choices: Choices) -> StartStep:
        cpus = [*self.life.facts.all][1:]
        # Without whole cores, some options make the kubelet loop forever.
        if not cpus or self.life.focus.endless:
            return self.nothing_changes(choices)
        return StartStep(config=self.life.config, offline=str(CPUSet(choices.some(cpus, 1, 2))))

    def policies_switched(self, choices: Choices) -> StartStep:
        """Switches one or two managers on or off, or changes the Topology Manager's policy."""
        config = self.life.config
        fresh = self._fresh(choices)
        for policy, others in choices.some(tuple(_POLICIES.items()), 1, 2):
            if policy in config and choices.chance(2):
                config = {
                    key: value for key, value in config.items() if key not in (policy, *others)
                }
            else:
                reserved = _RESERVED if policy in fresh else ()
                config = _with(config, fresh, (policy, *others, *reserved))
        return self._start_with(config)

    def options_switched(self, choices: Choices) -> StartStep:
        """Keeps the policies and changes their options and the scope."""
        fresh = self._fresh(choices)
        names = [f"{policy}Options" for policy in _POLICIES if policy in self.life.config]
        return self._start_with(_with(self.life.config, fresh, (*names, "topologyManagerScope")))

    def reservation_switched(self, choices: Choices) -> StartStep:
        return self._start_with(_with(self.life.config, self._fresh(choices), _RESERVED))

    def gates_left_out(self, _: Choices) -> StartStep:
        """Drops feature gates that the new release does not have."""
        known = release(self.after).gates
        gates = {
            name: on
            for name, on in self.life.config.get("featureGates", {}).items()
            if name in known
        }
        return self._start_with({**self.life.config, "featureGates": gates})

    def pods_as_a_whole(self, choices: Choices) -> StartStep:
        """Keeps the feature gates for pod-level resources, or sometimes drops one."""
        start = self.gates_left_out(choices)
        if choices.chance(3):
            gates = dict(start.config["featureGates"])
            gates.pop(_POD_MANAGERS, None)
            return self._start_with({**start.config, "featureGates": gates})
        return start

    def _fresh(self, choices: Choices) -> KubeletConfiguration:
        return self.life.configuration(choices)

    def _start_with(self, config: KubeletConfiguration) -> StartStep:
        self.life.config = config
        return StartStep(config=config)

    # The drain

    def drain(self, start: StartStep) -> Iterator[Step]:
        """Removes all pods, deletes the files, and admits similar pods."""
        pods = [self.life.offered_pods[name] for name in self.life.alive]
        files: tuple[FileName, ...] = ("cpu_manager_state", "memory_manager_state")
        for file in files if self.life.keeps_files else ():
            yield open_step(tamper=TamperStep(file, "delete"))
        gone = tuple(pod.pod for pod in pods)
        yield open_step(
            start=StartStep(config=start.config, removed_pods=gone, kubernetes=self.after)
        )
        for pod in pods:
            yield open_step(admit=msgspec.structs.replace(pod, pod=f"{pod.pod}-again"))
        yield from self.reconcile_steps()

    def reconcile_steps(self) -> Iterator[Step]:
        if self.life.may("reconcile"):
            yield open_step(reconcile=NoArguments())


_PODS_AS_A_WHOLE = "pod-level resources"
_GATES_KEPT = "gates kept"

CHANGES: Mapping[str, Callable[[_Upgrade, Choices], StartStep]] = {
    "kept": _Upgrade.nothing_changes,
    "pods leave": _Upgrade.pods_leave,
    "CPUs leave": _Upgrade.cpus_leave,
    "policies switched": _Upgrade.policies_switched,
    "options switched": _Upgrade.options_switched,
    "reservation switched": _Upgrade.reservation_switched,
    _PODS_AS_A_WHOLE: _Upgrade.pods_as_a_whole,
    _GATES_KEPT: _Upgrade.nothing_changes,
}
"""The changes that come with an upgrade, by name."""


def _with(
    config: KubeletConfiguration, fresh: KubeletConfiguration, names: tuple[str, ...]
) -> KubeletConfiguration:
    kept = {key: value for key, value in config.items() if key not in names}
    return kept | {key: fresh[key] for key in names if key in fresh}
