"""Invariants of the node: pods, containers, refusals, restarts and checkpoint files."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.manifests import containers
from numaproof.conformance.judging.entitlement import (
    is_static,
    keeps_memory,
    memory_quantities,
    reserved_amounts,
)
from numaproof.conformance.judging.invariants.view import (
    File,
    Place,
    View,
    Violation,
    format_names,
    format_place,
    nodes_of,
    read_file,
)
from numaproof.conformance.judging.pods import effective
from numaproof.protocol.mismatch import short_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numaproof.conformance.judging.pods import PodReading
    from numaproof.protocol import messages

CPU_FILE = "cpu_manager_state"


class CPUFile(File, frozen=True, rename="camel"):
    default_cpu_set: str = ""
    entries: dict[str, dict[str, str] | str] = msgspec.field(default_factory=dict)


def check_pod_list(view: View) -> Iterator[Violation]:
    """The state lists exactly the pods on the node, with all of their containers."""
    if set(view.state.pods) != set(view.pods):
        listed = format_names(view.state.pods)
        message = f"the state lists {listed}; pods on the node: {format_names(view.pods)}"
        yield Violation("state-lists-pods-on-node", "CPU-REMOVE-003", message)
        return
    for uid, pod in view.pods.items():
        names = set(containers(pod))
        if set(view.state.pods[uid]) != names:
            message = (
                f"pod {uid} has containers {format_names(names)}; the answer has"
                f" {format_names(view.state.pods[uid])}"
            )
            yield Violation("every-container-answered", "CPU-STATIC-004", message)


def on_state(view: View) -> Iterator[Violation]:
    """The pods fit into the node, and the CPU Manager's checkpoint agrees with the state."""
    if view.check_node:
        yield from _shortages(view)
    yield from _cpu_file(view)


def _shortages(view: View) -> Iterator[Violation]:
    """Reports resources of which the pods request more than is allocatable.

    The requests are at least those of the containers, and the reservation is at least the
    configured amounts.
    """
    machine, config = view.facts.machine, view.config
    pods = [one for uid, one in view.pod_readings.items() if uid in view.admitted_pods]
    limit, per_core = (int(config.get(name) or 0) for name in ("maxPods", "podsPerCore"))
    count = min(filter(None, (limit or _MAX_PODS, per_core * machine.num_cores)))
    cpus = machine.num_cores - min(reserved_amounts(config, view.kubernetes, view.level))
    memory = machine.memory_capacity - memory_quantities(config)
    for resource, requests, allocatable in (
        ("pods", Fraction(len(pods)), Fraction(count)),
        ("cpu", _requests(pods, "cpu"), cpus),
        ("memory", _requests(pods, "memory"), memory),
    ):
        most = max(allocatable, Fraction())
        if requests > most:
            message = f"the pods request {requests} of {resource}, but only {most} are allocatable"
            yield Violation("pods-fit-into-node", "NODE-ALLOC-001", message)


def _requests(pods: Iterable[PodReading], resource: str) -> Fraction:
    return sum(
        (
            effective((one.kind, one.requests.get(resource, 0)) for one in pod.containers)
            for pod in pods
        ),
        Fraction(),
    )


_MAX_PODS = 110


def _cpu_file(view: View) -> Iterator[Violation]:
    """The CPU Manager's checkpoint agrees with the state."""
    text = view.state.files.get(CPU_FILE)
    if text is None or not view.exact or not is_static(view.config):
        return
    try:
        content = read_file(text, CPUFile)
    except ValueError as error:
        yield Violation("cpu-file-readable", "CPU-CHECKPOINT-001", f"{CPU_FILE}: {error}")
        return
    held = {"/".join(place): str(cpus) for place, cpus in view.exclusive().items()}
    said: dict[str, str] = {}
    for uid, entry in content.entries.items():
        if isinstance(entry, str):
            return  # In the first format, which is kept until something changes, this is an id.
        said |= {f"{uid}/{name}": cpus for name, cpus in entry.items()}
    if (said, content.default_cpu_set) != (held, str(view.state.shared)):
        pool, shared = content.default_cpu_set or "empty", str(view.state.shared) or "empty"
        message = (
            f"{CPU_FILE} has {short_text(said)}, shared pool {pool};"
            f" the state has {short_text(held)}, shared pool {shared}"
        )
        yield Violation("cpu-file-says-what-is-held", "CPU-CHECKPOINT-002", message)


def on_change(before: View, after: View) -> Iterator[Violation]:
    """Containers keep their memory and devices until they end, even across restarts."""
    yield from memory_on_change(before, after)
    for place, had, container in _still_there(before, after):
        for resource, ids in (had.devices or {}).items():
            now = (container.devices or {}).get(resource, ())
            if set(ids) != set(now):
                previous = f"{resource} {format_names(ids)}"
                message = (
                    f"the devices of {format_place(place)} changed from {previous}"
                    f" to {format_names(now)}"
                )
                yield Violation("devices-stay", "NODE-RESTART-001", message, places=(place,))


def memory_on_change(before: View, after: View) -> Iterator[Violation]:
    """Containers keep their memory until they end, even across restarts."""
    if keeps_memory(before.config, before.kubernetes) != keeps_memory(
        after.config, after.kubernetes
    ):
        return
    for place, had, container in _still_there(before, after):
        gained = not had.memory and place[0] in after.reclassified_pods
        moved = had.memory != container.memory and _differ(had.memory, container.memory)
        if moved and not gained:
            of = _whose_memory(place, before, after)
            message = (
                f"the memory of {format_place(place)} changed from {_blocks(had)}"
                f" to {_blocks(container)}"
            )
            yield Violation(f"memory{of}-stays", "MEM-STATIC-012", message, places=(place,))


def _still_there(
    before: View, after: View
) -> Iterator[tuple[Place, messages.Container, messages.Container]]:
    """Containers that have not ended, with what they had and have."""
    for place, container in after.containers():
        had = before.state.pods.get(place[0], {}).get(place[1])
        if had is not None and place not in before.ended_containers:
            yield place, had, container


def _whose_memory(place: Place, before: View, after: View) -> str:
    """The suffix of the invariant's name for special kinds of memory."""
    uid, name = place
    if uid in after.budgets:
        return "-of-budget"
    if name in after.passing(uid):
        now, then = after.state.pods[uid], before.state.pods[uid]
        if any(
            one in now and now[one].memory and not (one in then and then[one].memory)
            for pod, one in before.ended_containers
            if pod == uid
        ):
            return "-reused-again"
    return ""


def on_refusal(before: View, after: View) -> Iterator[Violation]:
    """A refused pod leaves the resources of other pods unchanged."""
    for uid in sorted(before.state.pods.keys() & after.state.pods.keys()):
        if _retained_resources(before, uid) != _retained_resources(after, uid):
            message = (
                f"a refusal changed pod {uid} from"
                f" {_join_containers(_retained_resources(before, uid))} to"
                f" {_join_containers(_retained_resources(after, uid))}"
            )
            yield Violation("refusal-changes-nobody", "NODE-REFUSED-001", message)


def on_resize(before: View, after: View) -> Iterator[Violation]:
    """A resize leaves the checkpoint files unchanged."""
    for name, text in before.state.files.items():
        if after.state.files.get(name) != text:
            message = f"a resize changed {name}"
            yield Violation("resize-leaves-checkpoints", "NODE-RESIZE-006", message)


def _retained_resources(view: View, uid: str) -> dict[str, str]:
    return {
        name: f"memory {_blocks(container)}, devices {_devices(container)}, affinity"
        f" {_affinity(container.affinity)}"
        for name, container in view.state.pods[uid].items()
    }


def _join_containers(resources: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {what}" for name, what in resources.items())


def _blocks(container: messages.Container) -> str:
    blocks = (f"{block.size} of {block.type} on {block.numa}" for block in container.memory)
    return " and ".join(sorted(blocks)) or "nothing"


def _devices(container: messages.Container) -> str:
    held = (f"{format_names(ids)} of {name}" for name, ids in (container.devices or {}).items())
    return " and ".join(sorted(held)) or "none"


def _affinity(hint: messages.Hint) -> str:
    """Formats a hint; equal hints give equal strings."""
    return f"{nodes_of(hint.numa)}, {'preferred' if hint.preferred else 'not preferred'}"


def _differ(had: Sequence[messages.MemoryBlock], has: Sequence[messages.MemoryBlock]) -> bool:
    """Whether blocks differ in more than their order, which is irrelevant."""
    return Counter(had) != Counter(has)


def on_admission(answer: messages.Admitted, view: View, uid: str) -> Iterator[Violation]:
    """The state after an admission shows the memory, devices and affinity from the answer."""
    kept = view.state.pods.get(uid, {})
    for name, given in answer.containers.items():
        if name not in kept:
            continue
        for field, words in _KEPT.items():
            said, now = words(given), words(kept[name])
            if getattr(given, field) != getattr(kept[name], field) and said != now:
                yield Violation(
                    "state-keeps-what-was-answered",
                    "NODE-STATE-001",
                    f"{field} of {uid}/{name} is {said} in the answer, but {now} in the state",
                    places=((uid, name),),
                )


_KEPT: Mapping[str, Callable[[messages.Container], str]] = {
    "memory": _blocks,
    "devices": _devices,
    "affinity": lambda container: _affinity(container.affinity),
}
"""Fields compared with the answer, and formats for them that ignore the order of lists."""
