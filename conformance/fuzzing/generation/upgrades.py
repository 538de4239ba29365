"""Upgrades and downgrades: the life of a node in one release, which goes on in another.

Each kind of change that may come with an upgrade has its turn: the kind follows from the seed,
the rest from choices. Last, the node is drained as a kubelet advises that refuses a file: its pods
leave, the files are deleted, and pods of the same form come.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases.schema import NoArguments, StartStep, Step, TamperStep
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.life import Life
from numaproof.conformance.fuzzing.generation.machines import machine
from numaproof.conformance.fuzzing.generation.scenarios import case_of, on_its_tree
from numaproof.protocol.sets import CPUSet
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numaproof.conformance.cases.schema import Case, FileName
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.protocol.messages import KubeletConfiguration

_POD_LEVEL = "PodLevelResources"
_POD_MANAGERS = "PodLevelResourceManagers"
_PODS = "feature pod-level-resources"
_POLICIES = {
    "cpuManagerPolicy": ("cpuManagerPolicyOptions",),
    "topologyManagerPolicy": ("topologyManagerPolicyOptions", "topologyManagerScope"),
    "memoryManagerPolicy": ("reservedMemory",),
}
"""The policies of the managers, and the fields that go with each."""

_RESERVED = (
    "reservedSystemCPUs",
    "kubeReserved",
    "systemReserved",
    "reservedMemory",
    "evictionHard",
)
"""What is kept from pods; the parts have to add up."""

_FEWEST_PODS, _MOST_PODS = 2, 6


def seeded_upgrade(seed: int, capabilities: Capabilities, after: str) -> Case:
    """The upgrade of a seed, from the release of `capabilities` to the release `after`.

    It is the same for the same claims; the seed also says which of `CHANGES` comes with it.
    """
    kinds = tuple(CHANGES)
    return upgrade(Seeded(seed), capabilities, after, kinds[seed % len(kinds)], f"upgrade-{seed}")


def upgrade(
    choices: Choices, capabilities: Capabilities, after: str, kind: str, name: str = "upgrade"
) -> Case:
    """A node's life in one release, the same node in the release `after`, and its drain.

    `kind` is one of `CHANGES`.
    """
    info = machine(choices)
    node = _Upgrade(Life(choices, info, capabilities), capabilities.kubernetes, after)
    node.settle(kind)
    steps = [*node.live(choices, kind)]
    start = CHANGES[kind](node, choices)
    steps += [_anything(start=msgspec.structs.replace(start, kubernetes=after))]
    if choices.chance(2):
        steps += node.life.admit(choices)
    steps += [*node.reconciled(), *node.drain(start)]
    title = f"A made-up node and its upgrade from {node.before} to {after}: {kind}"
    return on_its_tree(case_of(name, title, steps, info), choices, capabilities)


class _Upgrade:
    """A life that begins in the release `before` and goes on in the release `after`."""

    def __init__(self, life: Life, before: str, after: str) -> None:
        self.life = life
        self.before = before
        self.after = after

    def settle(self, kind: str) -> None:
        """Leaves out what would keep the node from living in its first release."""
        focus = replace(self.life.focus, mistakes=False, gates=False)
        knows = _POD_LEVEL in release(self.before).gates
        whole = kind == _PODS_AS_A_WHOLE and self.life.capabilities.makes(_PODS)
        focus = replace(focus, pod_level=knows and (focus.pod_level or whole))
        self.life.focus = focus

    def live(self, choices: Choices, kind: str) -> Iterator[Step]:
        """The first release: a start, pods that come and some that leave."""
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
        yield _anything(start=start)
        for _ in range(choices.integer(_FEWEST_PODS, _MOST_PODS)):
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
                and (name not in there or (there[name].locked and not gate.locked))
            ]
            if gone:
                name = choices.pick(gone)
                later = there.get(name)
                return {name: known[name].default if later is None else not later.default}
        return {}

    # What changes with the upgrade

    def kept(self, _: Choices) -> StartStep:
        """The same configuration, and all pods."""
        return StartStep(config=self.life.config)

    def pods_leave(self, choices: Choices) -> StartStep:
        """Some pods, or all, leave while the kubelet is down."""
        alive = tuple(self.life.alive)
        gone = alive if choices.chance(3) else tuple(choices.some(alive, 1, len(alive)))
        for pod in gone:
            del self.life.alive[pod]
        return StartStep(config=self.life.config, gone=gone)

    def cpus_leave(self, choices: Choices) -> StartStep:
        """CPUs are offline since."""
        cpus = [*self.life.facts.all][1:]
        # Without whole cores, one of the kubelets' options makes them loop for ever.
        if not cpus or self.life.focus.endless:
            return self.kept(choices)
        return StartStep(config=self.life.config, offline=str(CPUSet(choices.some(cpus, 1, 2))))

    def policies_switched(self, choices: Choices) -> StartStep:
        """A manager or two are switched on or off, or the Topology Manager aligns otherwise."""
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
        return self._switched(config)

    def options_switched(self, choices: Choices) -> StartStep:
        """The same policies with other options, and another scope."""
        fresh = self._fresh(choices)
        names = [f"{policy}Options" for policy in _POLICIES if policy in self.life.config]
        return self._switched(_with(self.life.config, fresh, (*names, "topologyManagerScope")))

    def reservation_switched(self, choices: Choices) -> StartStep:
        """Other CPUs and other memory are reserved."""
        return self._switched(_with(self.life.config, self._fresh(choices), _RESERVED))

    def gates_left_out(self, _: Choices) -> StartStep:
        """Without the gates that the new release does not know."""
        known = release(self.after).gates
        gates = {
            name: on
            for name, on in self.life.config.get("featureGates", {}).items()
            if name in known
        }
        return self._switched({**self.life.config, "featureGates": gates})

    def pods_as_a_whole(self, choices: Choices) -> StartStep:
        """Pods had resources as a whole; the gates for it stay where the release has them."""
        start = self.gates_left_out(choices)
        if choices.chance(3):
            gates = dict(start.config["featureGates"])
            gates.pop(_POD_MANAGERS, None)
            return self._switched({**start.config, "featureGates": gates})
        return start

    def _fresh(self, choices: Choices) -> KubeletConfiguration:
        return self.life.configuration(choices)

    def _switched(self, config: KubeletConfiguration) -> StartStep:
        self.life.config = config
        return StartStep(config=config)

    # The drain

    def drain(self, start: StartStep) -> Iterator[Step]:
        """All pods leave, the files are deleted, and pods of the same form come."""
        pods = [self.life.offered[name] for name in self.life.alive]
        files: tuple[FileName, ...] = ("cpu_manager_state", "memory_manager_state")
        for file in files if self.life.keeps_files else ():
            yield _anything(tamper=TamperStep(file, "delete"))
        gone = tuple(pod.pod for pod in pods)
        yield _anything(start=StartStep(config=start.config, gone=gone, kubernetes=self.after))
        for pod in pods:
            yield _anything(admit=msgspec.structs.replace(pod, pod=f"{pod.pod}-again"))
        yield from self.reconciled()

    def reconciled(self) -> Iterator[Step]:
        """A pass of the reconcile loop, where that can be asked for."""
        if self.life.may("reconcile"):
            yield _anything(reconcile=NoArguments())


_PODS_AS_A_WHOLE = "pod-level resources"
_GATES_KEPT = "gates kept"

CHANGES: Mapping[str, Callable[[_Upgrade, Choices], StartStep]] = {
    "kept": _Upgrade.kept,
    "pods leave": _Upgrade.pods_leave,
    "CPUs leave": _Upgrade.cpus_leave,
    "policies switched": _Upgrade.policies_switched,
    "options switched": _Upgrade.options_switched,
    "reservation switched": _Upgrade.reservation_switched,
    _PODS_AS_A_WHOLE: _Upgrade.pods_as_a_whole,
    _GATES_KEPT: _Upgrade.kept,
}
"""What changes when the other release starts, by name."""


def _with(
    config: KubeletConfiguration, fresh: KubeletConfiguration, names: tuple[str, ...]
) -> KubeletConfiguration:
    """A configuration with these fields, and only these, as another one has them."""
    kept = {key: value for key, value in config.items() if key not in names}
    return kept | {key: fresh[key] for key in names if key in fresh}


def _anything(**verb: Any) -> Step:
    return Step(expect="anything", **verb)
