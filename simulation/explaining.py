"""Explains an admission step by step from what the reference's managers answered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from numaproof.reference.devices.manager import DeviceManager
from numaproof.reference.topology.policy import (
    BEST_EFFORT,
    RESTRICTED,
    SINGLE_NUMA_NODE,
    TopologyPolicy,
)
from numaproof.simulation import hinting, requests
from numaproof.simulation.amounts import amounts, nodes_text
from numaproof.simulation.explanation import Explanation, Merge, RequestedResources
from numaproof.simulation.hinting import hint_steps, why_not_preferred
from numaproof.simulation.observation import observe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.reference.devices.state import DeviceState
    from numaproof.reference.node import NodeSetup, StartedNode
    from numaproof.reference.pods.containers import PodContainer
    from numaproof.reference.pods.pod import Pod
    from numaproof.simulation.explanation import ExplanationStep
    from numaproof.simulation.observation import Failed, ObservedMerge

_WEAKER = {SINGLE_NUMA_NODE: (RESTRICTED, BEST_EFFORT), RESTRICTED: (BEST_EFFORT,)}
"""Policies that admit everything that another one admits, and more."""


def explain(node: StartedNode, pod: Pod) -> Explanation:
    """Why the node would admit or refuse the pod now; the node does not change."""
    setup = node.setup
    policy = setup.topology_policy
    observed = observe(node, pod, policy)
    steps: list[ExplanationStep] = []
    if policy is not None:
        for merged in observed.merges:
            # A refusal is about the last container, so only that one needs the details.
            in_full = observed.admitted or merged is observed.merges[-1]
            steps += _merge_steps(setup, policy, pod, merged, in_full=in_full)
    if observed.failed is not None:
        failed = observed.failed
        if policy is None:
            steps.append(_request(setup, node.device_manager.state, pod, failed.container))
        return _with_failure(setup, pod, tuple(steps), failed)
    refused = next((one for one in observed.merges if not one.admitted), None)
    if policy is None or refused is None:
        return Explanation("every manager can satisfy the request", tuple(steps))
    why = why_not_preferred(policy, pod, refused, _asks(setup, pod, refused))
    summary = f"{_who(refused.container)}: {why}"
    return Explanation(summary, tuple(steps), tuple(_advice(node, policy, pod)))


def _with_failure(
    setup: NodeSetup, pod: Pod, steps: tuple[ExplanationStep, ...], failed: Failed
) -> Explanation:
    allocation, advice = hinting.explain(setup, pod, failed)
    summary = f"{_who(failed.container)}: {allocation.text}"
    return Explanation(summary, (*steps, allocation), advice)


def _merge_steps(
    setup: NodeSetup, policy: TopologyPolicy, pod: Pod, merged: ObservedMerge, *, in_full: bool
) -> Iterator[ExplanationStep]:
    asked = _asks(setup, pod, merged)
    name = merged.container.name if merged.container else None
    yield RequestedResources(name, asked, _asks_text(pod, merged.container, asked))
    if in_full:
        for one in merged.hints:
            yield from hint_steps(setup, pod, one, asked)
    numa, preferred = merged.affinity.numa, merged.affinity.preferred
    best = "no affinity" if numa is None else nodes_text(numa)
    text = f"the hints merge to {best}, {'' if preferred else 'not '}preferred; "
    verdict = "admits this" if merged.admitted else "admits only preferred hints"
    text += f"{policy.name} {verdict}"
    yield Merge(policy.name, numa, preferred, merged.admitted, text)


def _asks(setup: NodeSetup, pod: Pod, merged: ObservedMerge) -> dict[str, int]:
    devices = next(one.manager for one in merged.hints if isinstance(one.manager, DeviceManager))
    return requests.asks(setup, devices.state, pod, merged.container)


def _request(
    setup: NodeSetup, devices: DeviceState, pod: Pod, container: PodContainer | None
) -> RequestedResources:
    asked = requests.asks(setup, devices, pod, container)
    name = container.name if container else None
    return RequestedResources(name, asked, _asks_text(pod, container, asked))


def _asks_text(pod: Pod, container: PodContainer | None, asked: dict[str, int]) -> str:
    what = amounts(asked.items()) or "nothing that needs aligning"
    return f"{_who(container)} asks for {what} ({pod.qos})"


def _who(container: PodContainer | None) -> str:
    return "the pod as a whole" if container is None else f"container {container.name}"


def _advice(node: StartedNode, policy: TopologyPolicy, pod: Pod) -> Iterator[str]:
    for name in _WEAKER.get(policy.name, ()):
        weaker = replace(policy, name=name, rules=replace(policy.rules, single=False))
        if observe(node, pod, weaker).admitted:
            yield f"with topologyManagerPolicy: {name} the pod would be admitted"
            return
