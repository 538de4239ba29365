"""Every short life of a node: a search through the states that its calls can reach.

A life is a start and up to K actions: admit a pod from a small alphabet, remove one, let an init
container end, restart, restart with one CPU less or with a damaged checkpoint. Two lives that lead
to the same state and the same files continue alike, so only the first is extended, as in a model
checker.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.machine_properties import facts_of
from numaproof.conformance.cases.schema import (
    Case,
    ContainerSpec,
    EndStep,
    PodSpec,
    StartStep,
    TamperStep,
    open_step,
)
from numaproof.conformance.execution.run import Scenario
from numaproof.conformance.exhaustion.shapes import shapes
from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.execution.session import Session
    from numaproof.conformance.exhaustion.shapes import Shape
    from numaproof.conformance.fuzzing.exploration import ScenarioRun
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import KubeletConfiguration

_CONTINUING = frozenset({"pass", "expected failure"})
"""Outcomes of lives that are extended."""

_INIT = "init"
_APP = "app"


def _container(cpus: int | str, memory: str = "300Mi") -> ContainerSpec:
    return ContainerSpec(limits={"cpu": cpus, "memory": memory})


PODS = (
    PodSpec("one", {_APP: _container(1)}),
    PodSpec("two", {_APP: _container(2)}),
    PodSpec("mixed", {_APP: _container(1), "shared": _container("500m")}),
    PodSpec("staged", {_APP: _container(1)}, {_INIT: _container(2)}),
)
"""The pods that a life admits: each at most once at a time."""

_STAGED = "staged"

CONFIGURATIONS: tuple[KubeletConfiguration, ...] = tuple(
    {
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": policy,
        "topologyManagerScope": scope,
        "systemReserved": {"cpu": "1", "memory": "100Mi"},
        "evictionHard": {"memory.available": "100Mi"},
        **options,
        **memory,
    }
    for (policy, scope), options, memory in product(
        (
            ("none", "container"),
            ("best-effort", "container"),
            ("restricted", "pod"),
            ("single-numa-node", "container"),
        ),
        ({}, {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}),
        (
            {},
            {
                "memoryManagerPolicy": "Static",
                "reservedMemory": [{"numaNode": 0, "limits": {"memory": "200Mi"}}],
            },
        ),
    )
)
"""Policies, a scope for each, an option and both Memory Manager policies."""


def plain_shapes(cpus: int) -> Iterator[Shape]:
    """The machines for lives: numbered by core, with one cache on each NUMA node and socket.

    Numbering and caches only decide which CPUs are assigned.
    """
    for shape in shapes(cpus):
        if shape.numbering == "by core" and shape.has_one_cache_each:
            yield shape


@dataclass(frozen=True)
class Lives:
    """Every life of up to `most_actions` actions on a machine with a configuration."""

    shape: Shape
    config: KubeletConfiguration
    most_actions: int

    def explore(self, play: Callable[[Scenario], ScenarioRun]) -> Iterator[ScenarioRun]:
        """Plays lives, shortest first, and yields each; the caller judges them.

        Lives that fail or aren't supported aren't extended.
        """
        machine = self.shape.machine()
        waiting: deque[tuple[tuple[Step, ...], int]] = deque([((_restart(),), 0)])
        known_states: set[bytes] = set()
        while waiting:
            steps, actions = waiting.popleft()
            scenario_run = play(Scenario(_life(self.config, steps, machine), machine))
            yield scenario_run
            if scenario_run.result.outcome not in _CONTINUING or actions == self.most_actions:
                continue
            session = scenario_run.run.player.session
            state = _state(session)
            if state in known_states:
                continue
            known_states.add(state)
            waiting += ((steps + more, actions + 1) for more in self._actions(session))

    def _actions(self, session: Session) -> Iterator[tuple[Step, ...]]:
        """What can happen next, each as one or two steps."""
        on_node = {pod["metadata"]["name"]: uid for uid, pod in session.pods.items()}
        if session.start_answer is not None:
            for pod in PODS:
                if pod.pod in on_node:
                    yield (open_step(remove=pod.pod),)
                else:
                    yield (open_step(admit=pod),)
            names = session.ended_containers.get(on_node.get(_STAGED, ""), frozenset())
            if _STAGED in on_node and _INIT not in names:
                yield (open_step(end=EndStep(_STAGED, _INIT)),)
        yield (_restart(),)
        yield (_restart(running=True),)
        *others, last = facts_of(session.machine).all
        if others:
            yield (_restart(offline=str(last)),)
        for how in ("checksum", "delete"):
            yield (open_step(tamper=TamperStep("cpu_manager_state", how)), _restart())


def _restart(**fields: Any) -> Step:
    return open_step(start=StartStep(**fields))


def _life(config: KubeletConfiguration, steps: tuple[Step, ...], machine: MachineInfo) -> Case:
    return Case("exhaust", "A short life of a node", (), steps, config=config, machine=machine)


def _state(session: Session) -> bytes:
    """What decides how a life continues: the node's state, its files and what the harness knows."""
    answer = session.call("state", messages.NoArgs()) if session.start_answer is not None else None
    return codec.encode(
        (
            answer,
            session.machine,
            session.pods,
            {uid: sorted(names) for uid, names in session.ended_containers.items()},
            sorted(session.running_pods),
        )
    )
