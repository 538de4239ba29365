"""Invariants of the Topology Manager's affinity and the resources allocated within it."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging.entitlement import (
    is_static,
    keeps_memory,
    options,
    topology_policy,
)
from numaproof.conformance.judging.invariants.view import (
    Place,
    View,
    Violation,
    format_place,
    nodes_of,
)
from numaproof.inputs.plurals import format_numbers, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol import messages
    from numaproof.protocol.sets import NUMASet


def on_state(view: View) -> Iterator[Violation]:
    """Checks the affinities in a state."""
    policy = topology_policy(view.config)
    if policy == "none":
        yield from _no_affinity(view)
        return
    for place, container in view.containers():
        yield from _as_policy(policy, place, container.affinity)
        # After a restart or a repeated admission, a pod's affinity follows from the resources it
        # holds, which it keeps.
        holding = view.was_there(place[0]) or place[0] in view.readmitted_pods
        chosen = container.affinity.preferred and not holding
        if chosen and container.affinity.numa is not None:
            yield from _within(view, place, container, container.affinity.numa)
            yield from _narrow(view, place, container.affinity.numa)
    if view.config.get("topologyManagerScope") == "pod":
        yield from _one_of_pod(view)


def on_change(before: View, after: View) -> Iterator[Violation]:
    """After a restart, an affinity that must be preferred matches the nodes of the memory held.

    In that case, the memory held is the container's only hint. With the pod scope, the affinity
    follows from one container's hint and reveals nothing about the others.
    """
    config = after.config
    if (
        before.starts == after.starts
        or topology_policy(config) not in ("restricted", "single-numa-node")
        or config.get("topologyManagerScope") == "pod"
        or not all(keeps_memory(view.config, view.kubernetes) for view in (before, after))
    ):
        return
    for place, container in after.containers():
        uid, name = place
        had = before.state.pods.get(uid, {}).get(name)
        # An init container's memory may belong to another container by now.
        passed = place in before.ended_containers or name in after.passing(uid)
        if (
            had is None
            or passed
            or uid in after.reclassified_pods | after.budgets
            or had.memory != container.memory
        ):
            continue
        numa = container.affinity.numa
        for block in container.memory:
            # An affinity to all nodes may be stored as no affinity.
            kept = len(block.numa) == len(after.facts.nodes)
            if not (kept if numa is None else numa.issubset(block.numa)):
                yield Violation(
                    "affinity-to-what-is-held",
                    "MEM-RESTART-001",
                    f"after a restart {format_place(place)} has {block.type}"
                    f" on {nodes_of(block.numa)}"
                    f" but the affinity {nodes_of(numa)}",
                    places=(place,),
                )


def _no_affinity(view: View) -> Iterator[Violation]:
    for place, container in view.containers():
        if container.affinity.numa is not None:
            yield Violation(
                "policy-none-has-no-affinity",
                "TOPO-POLICY-006",
                f"{format_place(place)} has the affinity {nodes_of(container.affinity.numa)}"
                " under the none policy",
                places=(place,),
            )


def _as_policy(policy: str, place: Place, affinity: messages.Hint) -> Iterator[Violation]:
    if policy != "best-effort" and not affinity.preferred:
        message = (
            f"{format_place(place)} was admitted under the {policy} policy "
            "without a preferred affinity"
        )
        yield Violation("admitted-if-preferred", "TOPO-POLICY-003", message, places=(place,))
    if policy == "single-numa-node" and affinity.numa is not None and len(affinity.numa) != 1:
        nodes = nodes_of(affinity.numa)
        message = (
            f"{format_place(place)} has the affinity {nodes} under the single-numa-node policy"
        )
        yield Violation("single-node-is-one", "TOPO-POLICY-004", message, places=(place,))


def _within(
    view: View, place: Place, container: messages.Container, numa: NUMASet
) -> Iterator[Violation]:
    near = view.near(numa)
    if container.exclusive - near:
        message = (
            f"{format_place(place)} has the affinity {nodes_of(numa)}, but"
            f" {format_numbers('CPU', container.exclusive - near)} on other nodes"
        )
        yield Violation(
            "cpus-within-affinity", "NODE-ALIGN-002", message, container.exclusive - near, (place,)
        )
    # An init container's memory may belong to another container by now, with any affinity.
    if place[1] in view.passing(place[0]):
        return
    for block in container.memory:
        if not block.numa.issubset(numa):
            message = (
                f"{format_place(place)} has the affinity {nodes_of(numa)}, but {block.type} on"
                f" {nodes_of(block.numa)}"
            )
            yield Violation("memory-within-affinity", "NODE-ALIGN-002", message, places=(place,))


def _narrow(view: View, place: Place, numa: NUMASet) -> Iterator[Violation]:
    """A preferred affinity has as few nodes as the aligned exclusive CPUs need.

    CPUs that are in use count too. With ``align-by-socket``, whole sockets are preferred instead.
    """
    uid, name = place
    if not is_static(view.config) or "align-by-socket" in options(view.config):
        return
    if uid in view.budgets or not applies("placement", view.level):
        return
    needed = view.aligned_cpus(uid, name)
    sizes = sorted(map(len, view.facts.nodes.values()), reverse=True)
    fewest = 1 + sum(total < needed for total in accumulate(sizes))
    if needed and len(numa) > fewest:
        message = (
            f"{format_place(place)} has the preferred affinity {nodes_of(numa)}, although its"
            f" {plural(needed, 'exclusive CPU')} would fit on"
            f" {plural(fewest, 'NUMA node')}"
        )
        yield Violation("preferred-affinity-is-narrowest", "CPU-HINT-006", message, places=(place,))


def _one_of_pod(view: View) -> Iterator[Violation]:
    first: dict[str, tuple[str, messages.Hint]] = {}
    for (uid, name), container in view.containers():
        other, affinity = first.setdefault(uid, (name, container.affinity))
        if container.affinity != affinity:
            yield Violation(
                "pod-scope-one-affinity",
                "TOPO-SCOPE-002",
                f"{uid}/{other} has the affinity {nodes_of(affinity.numa)}, but {uid}/{name} has"
                f" {nodes_of(container.affinity.numa)}, with the pod scope",
                places=((uid, other), (uid, name)),
            )
