"""Every short life of a node: a search through the states that its calls can reach.

A life is a start and up to K actions: admit a pod of the setup, remove it, let its containers end,
restart with or without running containers, without a pod, with one CPU less or with a damaged
checkpoint, run a reconcile pass, or change the devices. Two lives that lead to the same state and
the same files continue alike, so only the first is extended, as in a model checker.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases import manifests
from numaproof.conformance.cases.machine_properties import facts_of
from numaproof.conformance.cases.schema import (
    Case,
    EndStep,
    NoArguments,
    StartStep,
    TamperStep,
    open_step,
)
from numaproof.conformance.execution.run import Scenario
from numaproof.conformance.exhaustion.shapes import shapes
from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.conformance.cases.schema import PodSpec, Step
    from numaproof.conformance.execution.session import Session
    from numaproof.conformance.exhaustion.setups import Setup
    from numaproof.conformance.exhaustion.shapes import Shape
    from numaproof.conformance.fuzzing.exploration import ScenarioRun
    from numaproof.protocol.machine import MachineInfo

_CONTINUING = frozenset({"pass", "expected failure"})
"""Outcomes of lives that are extended."""


def plain_shapes(cpus: int) -> Iterator[Shape]:
    """The machines for lives: numbered by core, with one cache on each NUMA node and socket.

    Numbering and caches only decide which CPUs are assigned.
    """
    for shape in shapes(cpus):
        if shape.numbering == "by core" and shape.has_one_cache_each:
            yield shape


@dataclass(frozen=True)
class Lives:
    """Every life of up to `most_actions` actions on a machine with a setup."""

    shape: Shape
    setup: Setup
    most_actions: int

    def explore(self, play: Callable[[Scenario], ScenarioRun]) -> Iterator[ScenarioRun]:
        """Plays lives, shortest first, and yields each; the caller judges them.

        Lives that fail or aren't supported aren't extended.
        """
        machine = self.shape.machine()
        waiting: deque[tuple[tuple[Step, ...], int]] = deque([((self._first(),), 0)])
        known_states: set[bytes] = set()
        while waiting:
            steps, actions = waiting.popleft()
            scenario_run = play(Scenario(self._life(steps, machine), machine))
            yield scenario_run
            if scenario_run.result.outcome not in _CONTINUING or actions == self.most_actions:
                continue
            session = scenario_run.run.player.session
            state = _state(session, after=steps[-1])
            if state in known_states:
                continue
            known_states.add(state)
            waiting += ((steps + more, actions + 1) for more in self._actions(session))

    def _first(self) -> Step:
        return open_step(start=StartStep(devices=self.setup.devices or None))

    def _life(self, steps: tuple[Step, ...], machine: MachineInfo) -> Case:
        config = self.setup.config
        return Case("exhaust", "A short life of a node", (), steps, config=config, machine=machine)

    def _actions(self, session: Session) -> Iterator[tuple[Step, ...]]:
        """What can happen next, each as one or more steps."""
        setup = self.setup
        if session.start_answer is not None:
            for pod in setup.pods:
                yield from _actions_of(pod, session)
            yield (open_step(reconcile=NoArguments()),)
            if setup.devices:
                devices = setup.fewer_devices if _all_healthy(session) else setup.devices
                yield (open_step(devices=devices),)
        yield (_restart(),)
        yield (_restart(running=True),)
        for uid in session.pods:
            yield (_restart(removed_pods=(manifests.pod_name(uid),)),)
        *others, last = facts_of(session.machine).all
        if others:
            yield (_restart(offline=str(last)),)
        for how in ("checksum", "delete"):
            yield (open_step(tamper=TamperStep(setup.file, how)), _restart())


def _actions_of(pod: PodSpec, session: Session) -> Iterator[tuple[Step, ...]]:
    """What can happen to a pod: it is admitted; or it is removed, or its containers end."""
    uid = manifests.uid(pod.pod)
    if uid not in session.pods:
        yield (open_step(admit=pod),)
        return
    ended = session.ended_containers.get(uid, frozenset())
    yield (open_step(remove=pod.pod),)
    for name in pod.init:
        if name not in ended:
            yield (open_step(end=EndStep(pod.pod, name)),)
    yield tuple(open_step(end=EndStep(pod.pod, name)) for name in pod.containers)


def _all_healthy(session: Session) -> bool:
    return all(device.healthy for resource in session.devices for device in resource.ids)


def _restart(**fields: Any) -> Step:
    return open_step(start=StartStep(**fields))


def _kind(step: Step) -> tuple[object, ...]:
    start = step.start
    return (
        step.verb,
        start and (bool(start.removed_pods), start.running, bool(start.offline)),
    )


def _state(session: Session, after: Step) -> bytes:
    """What decides how a life continues: the node's state, its files and what the harness knows.

    A faulty program may show the right state at first. A state therefore differs from the same
    state after another kind of call.
    """
    answer = session.call("state", messages.NoArgs()) if session.start_answer is not None else None
    return codec.encode(
        (
            answer,
            _kind(after),
            session.machine,
            session.devices,
            session.pods,
            {uid: sorted(names) for uid, names in session.ended_containers.items()},
            sorted(session.running_pods),
        )
    )
