"""Formats a node's state as lines of text: who holds what, and which pods would have to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from numaproof.inputs.plurals import plural
from numaproof.inputs.sizes import size
from numaproof.reports.answers import Section
from numaproof.simulation.requests import CPU, amount, nodes_text, room
from numaproof.simulation.state_files import absent_files, holders
from numaproof.simulation.unknown_devices import have_devices, unknown_devices, unknown_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.simulation.admission import Question
    from numaproof.simulation.holdings import CPUHoldings, NodeHoldings
    from numaproof.simulation.largest_pod import LargestPod
    from numaproof.simulation.remaining import Remaining, RemainingNode
    from numaproof.simulation.removals import Mark, RemovablePod, Removals
    from numaproof.simulation.shared_pool import SharedPool
    from numaproof.simulation.what_ifs import NodeSimulation, Step

_MARKS: dict[Mark, str] = {
    "static": "static: remove its manifest on the node",
    "DaemonSet": "of a DaemonSet, which creates it again",
    "critical": "critical",
}
_MAX_SHARING = 5
_MAX_NAMES = 3


def state_sections(simulation: NodeSimulation, question: Question) -> Iterator[Section]:
    """Yields what is wrong with the state: disagreements, and pods that a restart would end."""
    yield from (Section("state", "fair", (text,)) for text in assumptions(question))
    if simulation.differences:
        lines = (*map(str, simulation.differences), *_foreign_listing(question))
        yield Section("state", "fair", lines)
    for one in simulation.readmissions:
        if one.refusal:
            said = f"{one.refusal.reason}: {one.refusal.message}"
            why = one.explanation
            causes = (why.summary, *(f"Hint: {advice}." for advice in why.advice)) if why else ()
            text = "a restart of the kubelet would end this pod"
            yield Section(one.pod, "bad", (text, said, *causes))


def _foreign_listing(question: Question) -> Iterator[str]:
    """Yields a doubt about the listing if the state records none of its pods."""
    assert question.state is not None
    recorded = set(holders(question.state.files))
    if recorded and recorded.isdisjoint(question.state.names):
        yield "no uid in these files is that of a pod on the node: is the listing of this node?"


def assumptions(question: Question) -> Iterator[str]:
    """Yields what isn't known about the pods on the node, and what is assumed instead.

    A file of the state is absent, or the devices that a pod requests are not described.
    """
    return filter(None, (_placement_assumption(question), _device_gap(question)))


def doubts(simulation: NodeSimulation, question: Question) -> Iterator[str]:
    """Yields, in a few words, why the pods on the node may hold other resources than shown."""
    is_unrecorded = any(one.problem != "not on the node" for one in simulation.differences)
    if _placement_assumption(question) or is_unrecorded:
        yield "placement assumed"
    if _device_gap(question):
        yield "devices unknown"


def _placement_assumption(question: Question) -> str:
    state = question.state
    if state is None or not state.pods:
        return ""
    has_devices = have_devices((one.pod for one in state.pods), question.devices)
    absent = absent_files(state.files, question.config, has_devices=has_devices)
    if not absent:
        return ""
    files = f"{state.folder} has no" if state.folder else "add --state with"
    assumed = f"placement of {plural(len(state.pods), 'pod')} assumed, in the order of their age"
    return f"{assumed}: {files} {' and '.join(absent)}"


def _device_gap(question: Question) -> str:
    unknown = unknown_devices((one.pod for one in question.pods_on_node), question.devices)
    return unknown_text(unknown) if unknown else ""


def node_sections(
    answer: NodeSimulation | Step, *, with_holdings: bool = True
) -> Iterator[Section]:
    """Yields who holds what on the node, how the shared pool has shrunk, and who was evicted."""
    if with_holdings and answer.holdings:
        yield Section("Who holds what", "good", tuple(_holding_lines(answer.holdings)))
    if answer.pool:
        mark: Literal["bad", "fair"] = "bad" if answer.pool.is_short else "fair"
        yield Section("shared pool", mark, tuple(_pool_lines(answer.pool)))
    if with_holdings and answer.remaining:
        yield remaining_section(answer.remaining)
    arriving = {one.pod for one in answer.pods}
    for one in answer.pods:
        if from_before := [name for name in one.preempted if name not in arriving]:
            text = f"this critical pod evicts {', '.join(from_before)} to make room"
            yield Section(one.pod, "fair", (text,))


def remaining_section(remaining: Remaining) -> Section:
    """Returns what remains on the node, and the largest pod that fits."""
    return Section("What remains", "good", tuple(_remaining_lines(remaining)))


def _remaining_lines(remaining: Remaining) -> Iterator[str]:
    free = [(one.numa, ", ".join(_free_texts(one))) for one in remaining.nodes]
    for numa, text in free if any(text for _, text in free) else ():
        where = "without a NUMA node" if numa is None else f"node {numa}"
        yield f"{where}: {text or 'nothing'}"
    if remaining.shared:
        pool = f"shared pool: {plural(len(remaining.shared), 'CPU')}"
        if remaining.sharing_pods:
            pool += f" for {plural(remaining.sharing_pods, 'pod')}"
            pool += f" requesting {room(CPU, remaining.sharing_request)}"
        yield pool
    # Without the Memory Manager, memory can be on any NUMA node.
    nodes = [one for one in remaining.nodes if one.numa is not None]
    is_pinned = len(nodes) == 1 or any(one.memory for one in nodes)
    yield f"largest Guaranteed pod: {_pod_text(remaining.largest, is_pinned=is_pinned)}"
    has_nodes = remaining.largest is not None and bool(remaining.largest.numa)
    if has_nodes and remaining.largest_on_one_node != remaining.largest:
        text = _pod_text(remaining.largest_on_one_node, is_pinned=is_pinned)
        yield f"largest on one NUMA node: {text}"


def _free_texts(node: RemainingNode) -> Iterator[str]:
    if node.cpus:
        cores = plural(node.cores, "whole core")
        yield f"{plural(len(node.cpus), 'CPU')} {node.cpus} ({cores})"
    yield from (amount(kind, free) for kind, free in node.memory.items() if free)
    yield from (amount(resource, count) for resource, count in node.devices.items())


def _pod_text(pod: LargestPod | None, *, is_pinned: bool) -> str:
    if pod is None:
        return "none with a CPU"
    where = f" on {nodes_text(pod.numa)}" if pod.numa else ""
    cpus = plural(pod.cpus, "CPU")
    left = ", ".join(room(resource, one) for resource, one in pod.allocatable_left.items())
    limit = f" (limit: {left} left of the node's allocatable)" if left else ""
    if pod.memory is None:
        return f"{cpus}{where}{limit}"
    memory = amount("memory", pod.memory)
    text = f"{cpus} and {memory}{where}" if is_pinned else f"{cpus}{where} and {memory}"
    return f"{text}{limit}"


def _holding_lines(holdings: Iterable[NodeHoldings]) -> Iterator[str]:
    for one in holdings:
        yield "without a NUMA node" if one.numa is None else f"node {one.numa}"
        if one.cpus:
            yield f"  CPUs: {_cpus_text(one.cpus)}"
            for held in one.cpus.exclusive:
                yield f"    {_owner(held.pod, held.container)}: {held.cpus}"
        for memory in one.memory:
            reserved = f", {size(memory.reserved)} reserved" if memory.reserved else ""
            yield f"  {memory.type}: {size(memory.free)} of {size(memory.total)} free{reserved}"
            for block in memory.holders:
                where = f" with {nodes_text(block.numa)}" if len(block.numa) > 1 else ""
                yield f"    {_owner(block.pod, block.container)}: {size(block.size)}{where}"
        for devices in one.devices:
            free = " ".join((f"{len(devices.free)} free", *devices.free))
            yield f"  {devices.resource}: {free}"
            for some in devices.holders:
                yield f"    {_owner(some.pod, some.container)}: {' '.join(some.ids)}"


def _cpus_text(cpus: CPUHoldings) -> str:
    parts = [f"{len(cpus.free)} free for exclusive use {cpus.free}".rstrip()]
    parts += [f"shared pool {cpus.shared}"] if cpus.shared else []
    parts += [f"reserved {cpus.reserved}"] if cpus.reserved else []
    return "; ".join(parts)


def _owner(pod: str, container: str) -> str:
    return f"{pod}/{container}" if container else pod


def _pool_lines(pool: SharedPool) -> Iterator[str]:
    total = room(CPU, pool.request)
    less = ", more than it has" if pool.is_short else ""
    before, now = plural(len(pool.before), "CPU"), plural(len(pool.after), "CPU")
    yield f"{before} before, {now} now; its containers request {total}{less}"
    ordered = sorted(pool.pods, key=lambda pod: -pod.request)
    for one in ordered[:_MAX_SHARING]:
        yield f"  {one.pod}: requests {room(CPU, one.request)}"
    if len(ordered) > _MAX_SHARING:
        yield f"  and {plural(len(ordered) - _MAX_SHARING, 'more pod')}"


def room_summary(removals: Removals) -> str:
    """Returns what has to go for a refused pod, in a few words."""
    names = [one.pod.rpartition("/")[2] for one in removals.pods]
    if not names:
        return "no removal would help"
    what = plural(len(names), "pod") if len(names) > _MAX_NAMES else " and ".join(names)
    return f"remove {what} to make room"


def room_lines(removals: Removals) -> Iterator[str]:
    """Yields the pods that would have to go for a refused pod, and how sure this is."""
    trials = plural(removals.trials, "set")
    if not removals.pods:
        yield "No removal would help: the node refuses the pod even without all other pods."
        return
    count = plural(len(removals.pods), "pod")
    if removals.smallest:
        yield f"{count} would have to go; no smaller set of pods is enough:"
    else:
        verb = "is" if len(removals.pods) == 1 else "are"
        yield f"{count} {verb} enough; a smaller set may be, but the search was cut after {trials}:"
    yield from (f"  {_removable_text(one)}" for one in removals.pods)
    if removals.higher:
        have = "has" if removals.higher == 1 else "have"
        reason = "the pods of lower priority are not enough"
        yield f"{removals.higher:,} of them {have} a higher priority: {reason}."


def _removable_text(pod: RemovablePod) -> str:
    marks = "".join(f"; {_MARKS[one]}" for one in pod.marks)
    return f"{pod.pod}: priority {pod.priority}, requests {room(CPU, pod.cpus)}{marks}"
