"""Invariants of CPUs: the reservation, the shared pool, exclusive CPUs and CFS quota."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from numaproof.conformance.judging.entitlement import (
    exclusive_counts,
    gives_budgets,
    is_static,
    options,
    quota_limits,
    quota_spares_exclusive,
    reserved_amounts,
    reserved_cpus,
)
from numaproof.conformance.judging.invariants.view import View, Violation, format_place
from numaproof.inputs.plurals import format_count, format_numbers, plural
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol import messages


def on_start(view: View) -> Iterator[Violation]:
    """Checks the CPUs in the answer to a start."""
    known = view.facts.all
    if view.start_answer.cpus.all != known:
        message = f"all CPUs are {view.start_answer.cpus.all}, but the machine has {known}"
        yield Violation("start-names-all-cpus", "DISCOVERY-001", message)
    beyond = view.start_answer.cpus.allocatable - known
    if beyond:
        message = (
            f"the allocatable CPUs include {format_numbers('CPU', beyond)}, which the machine lacks"
        )
        yield Violation("allocatable-within-machine", "CPU-RESERVE-001", message, beyond)
    if is_static(view.config):
        yield from _reserved_as_configured(view)


def _reserved_as_configured(view: View) -> Iterator[Violation]:
    named, given = reserved_cpus(view.config), view.reserved()
    if named is not None and not named.issubset(given):
        message = (
            f"the configuration reserves {format_numbers('CPU', named)}, but"
            f" {format_numbers('CPU', named - given)} remained allocatable"
        )
        yield Violation("named-cpus-are-reserved", "CPU-RESERVE-007", message, named - given)
    amounts = reserved_amounts(view.config, view.kubernetes, view.level)
    counts = sorted({math.ceil(one) for one in amounts})
    if len(given) not in counts:
        message = (
            f"the configuration reserves {plural(counts[0], 'CPU')}, but the implementation"
            f" reserves {format_count('CPU', given)}"
        )
        yield Violation("reservation-in-full", "CPU-RESERVE-001", message, given)


def on_state(view: View) -> Iterator[Violation]:
    """Checks the CPUs in a state that lists the right pods."""
    for check in _OF_STATIC if is_static(view.config) else (_nothing_pinned,):
        yield from check(view)
    yield from _quotas(view)


def _nothing_pinned(view: View) -> Iterator[Violation]:
    for (uid, name), cpus in view.exclusive().items():
        message = (
            f"container {uid}/{name} has exclusive {format_numbers('CPU', cpus)}"
            " under the none policy"
        )
        yield Violation("none-pins-nothing", "CPU-NONE-002", message, cpus, ((uid, name),))
    for place, container in view.containers():
        if container.cpus and not container.exclusive:
            message = (
                f"container {'/'.join(place)} is limited to"
                f" {format_numbers('CPU', container.cpus)} under the none policy"
            )
            yield Violation("none-gives-no-set", "CPU-NONE-002", message, container.cpus, (place,))


def _counts(view: View) -> Iterator[Violation]:
    for uid, pod in view.pod_readings.items():
        if uid in view.reclassified_pods:
            continue
        entitled = exclusive_counts(pod)
        given = view.state.pods[uid]
        for name, count in entitled.items():
            if uid in view.budgets and not (count and pod.budget_is_exclusive):
                continue
            got = given[name].exclusive
            if len(got) != count and (uid, name) not in view.ended_containers:
                yield Violation(
                    "exclusive-count",
                    "CPU-STATIC-002" if count else "CPU-STATIC-001",
                    f"container {uid}/{name} is entitled to {plural(count, 'exclusive CPU')}"
                    f" but has {format_count('CPU', got)}",
                    got,
                    ((uid, name),),
                )


def _pools(view: View) -> Iterator[Violation]:
    for uid, containers in view.state.pods.items():
        for name, container in containers.items():
            pool = container.exclusive or view.state.shared
            if container.cpus != pool:
                yield Violation(
                    "runs-on-its-own-or-shared",
                    "CPU-POOL-002",
                    f"container {uid}/{name} may run on {format_numbers('CPU', container.cpus)};"
                    f" expected {format_numbers('CPU', pool)}",
                    container.cpus,
                    ((uid, name),),
                )


def _reservation(view: View) -> Iterator[Violation]:
    reserved = reserved_cpus(view.config) or view.reserved()
    for place, cpus in view.exclusive().items():
        if cpus & reserved:
            message = (
                f"container {'/'.join(place)} has reserved {format_numbers('CPU', cpus & reserved)}"
            )
            yield Violation(
                "reserved-never-exclusive", "CPU-RESERVE-008", message, cpus & reserved, (place,)
            )
    if "strict-cpu-reservation" in options(view.config):
        if view.state.shared & reserved:
            yield Violation(
                "strict-reservation",
                "CPU-OPT-STRICT-002",
                "the shared pool contains strictly reserved"
                f" {format_numbers('CPU', view.state.shared & reserved)}",
                view.state.shared & reserved,
            )
    elif not reserved.issubset(view.state.shared):
        message = (
            f"the shared pool lacks reserved {format_numbers('CPU', reserved - view.state.shared)}"
        )
        yield Violation(
            "reserved-stay-shared", "CPU-RESERVE-009", message, reserved - view.state.shared
        )


def _sharing(view: View) -> Iterator[Violation]:
    exclusive = sorted(view.exclusive().items())
    for place, cpus in exclusive:
        if cpus & view.state.shared:
            message = (
                "the shared pool also contains"
                f" {format_numbers('CPU', cpus & view.state.shared)} of {'/'.join(place)}"
            )
            yield Violation(
                "shared-or-exclusive", "CPU-POOL-005", message, cpus & view.state.shared, (place,)
            )
    for number, (left, cpus) in enumerate(exclusive):
        for right, others in exclusive[number + 1 :]:
            if cpus & others and not view.may_share(left, right):
                yield Violation(
                    "exclusive-to-one",
                    "CPU-STATIC-003" if left[0] != right[0] else "CPU-INIT-007",
                    f"{'/'.join(left)} and {'/'.join(right)} both have"
                    f" {format_numbers('CPU', cpus & others)}",
                    cpus & others,
                    (left, right),
                )


def _conservation(view: View) -> Iterator[Violation]:
    held = CPUSet.union(view.exclusive().values()) | view.state.shared
    whole = view.start_answer.cpus.all
    if "strict-cpu-reservation" in options(view.config):
        whole = view.start_answer.cpus.allocatable
    if whole - held and not view.budgets:
        # A pod that lost CPUs at a repeated admission may have been refused then.
        again = view.starts > 1 and gives_budgets(view.config, view.kubernetes)
        yield Violation(
            "no-cpu-lost-by-budgets" if again else "no-cpu-lost",
            "CPU-POOL-007",
            f"neither shared nor exclusive: {format_numbers('CPU', whole - held)}",
            whole - held,
        )
    beyond = held - view.start_answer.cpus.all
    if beyond:
        message = f"the state lists {format_numbers('CPU', beyond)}, which the machine lacks"
        yield Violation("no-cpu-invented", "CPU-POOL-007", message, beyond)


def _whole_cores(view: View) -> Iterator[Violation]:
    if "full-pcpus-only" not in options(view.config):
        return
    for place, cpus in view.exclusive().items():
        came_under = options(view.came_under(place[0]))
        if place[0] in view.budgets or "full-pcpus-only" not in came_under:
            continue
        full = _affinity_is_full(view, view.state.pods[place[0]][place[1]].affinity, cpus)
        for core in view.facts.cores:
            if core & cpus and not core.issubset(cpus):
                yield Violation(
                    "whole-cores-at-full-affinity" if full else "whole-cores-only",
                    "CPU-OPT-FULLPCPUS-002",
                    f"{'/'.join(place)} has only {format_numbers('CPU', core & cpus)}"
                    f" of the core {core}",
                    core & cpus,
                    (place,),
                )


_OF_STATIC = (_counts, _pools, _reservation, _sharing, _conservation, _whole_cores)
"""Checks of a state under the static policy."""


def _affinity_is_full(view: View, affinity: messages.Hint, cpus: CPUSet) -> bool:
    """Whether the affinity's nodes had no whole cores left for the container."""
    if affinity.numa is None:
        return False
    near = view.near(affinity.numa)
    free = near & view.state.shared - view.reserved()
    return bool(cpus - near) or not any(core.issubset(free) for core in view.facts.cores)


def on_change(before: View, after: View) -> Iterator[Violation]:
    """Checks that containers keep their exclusive CPUs across a call, including a restart."""
    if is_static(before.config) != is_static(after.config):
        return
    earlier, now = before.exclusive(), after.exclusive()
    for place in sorted(earlier.keys() & now.keys()):
        if earlier[place] != now[place]:
            yield Violation(
                f"exclusive-set{'-of-budget' if place[0] in after.budgets else ''}-stays",
                "CPU-STATIC-006",
                f"the exclusive CPUs of {'/'.join(place)} changed from {earlier[place]}"
                f" to {now[place]}",
                earlier[place],
                (place,),
            )


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """Checks that a refused pod leaves the shared pool unchanged."""
    if before.state.shared != after.state.shared:
        yield Violation(
            "refusal-leaves-nothing",
            "CPU-REMOVE-004",
            f"a refusal changed the shared pool from {before.state.shared} to {after.state.shared}",
            before.state.shared - after.state.shared,
        )


def on_admission(answer: messages.Admitted, view: View, uid: str) -> Iterator[Violation]:
    """Checks that the state after an admission shows the exclusive CPUs from the answer."""
    kept = view.state.pods.get(uid, {})
    for name, container in answer.containers.items():
        if name in kept and kept[name].exclusive != container.exclusive:
            yield Violation(
                "state-keeps-what-was-given",
                "CPU-STATIC-006",
                f"the admission gave {uid}/{name} {format_numbers('CPU', container.exclusive)},"
                f" but the state has {format_numbers('CPU', kept[name].exclusive)}",
                container.exclusive,
                ((uid, name),),
            )


def _quotas(view: View) -> Iterator[Violation]:
    """Checks the CFS quota of containers, where it is reported.

    Pods with a budget are skipped, because they distribute their quota freely.
    """
    enforced = quota_limits(view.config)
    spares = quota_spares_exclusive(view.config, view.kubernetes)
    for (uid, name), container in view.containers():
        pod = view.pod_readings[uid]
        if container.quota is None or uid in view.reclassified_pods or pod.budget is not None:
            continue
        reading = next(one for one in pod.containers if one.name == name)
        limited = reading.limits.get("cpu") or pod.limits.get("cpu")
        if container.exclusive and spares:
            if container.quota:
                yield Violation(
                    "exclusive-cpus-without-quota",
                    "CPU-STATIC-020",
                    f"{format_place((uid, name))} has a CFS quota on its exclusive"
                    f" {format_numbers('CPU', container.exclusive)}",
                    places=((uid, name),),
                )
        elif container.quota is not bool(enforced and limited):
            message = (
                f"{format_place((uid, name))} has {'a' if container.quota else 'no'} CFS quota, but"
                f" {'a' if limited else 'no'} CPU limit"
            )
            yield Violation("quota-enforces-limits", "CPU-NONE-003", message, places=((uid, name),))
