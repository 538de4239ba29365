"""Compares answers with the expectations of a case."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.manifests import uid
from numaproof.conformance.cases.schema import (
    ContainerExpected,
    CPUs,
    CPUsExpected,
    DevicesExpected,
    Expected,
    Memory,
)
from numaproof.conformance.judging.finding import Finding
from numaproof.conformance.judging.machine_comparison import describe_machine, keep_fields
from numaproof.conformance.judging.oracle import comparable_file
from numaproof.inputs.plurals import format_numbers
from numaproof.protocol import codec, lists, messages
from numaproof.protocol.mismatch import short_text
from numaproof.protocol.sets import CPUSet, NUMASet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import DeviceResource, Level, MemoryBlock


@dataclass(frozen=True)
class Context:
    """What an answer is compared with: the machine, the shared pool and other containers.

    `discovers` lists the fields of a discovered machine to compare; None stands for all.
    """

    facts: Facts
    shared: CPUSet | None
    containers: Mapping[str, messages.Container]
    state_dir: str
    level: Level
    devices: tuple[messages.DeviceResource, ...] = ()
    discovers: Collection[str] | None = None


def check(
    expected: Expected | Literal["anything"], answer: messages.Answer, context: Context
) -> list[Finding]:
    """How an answer deviates from the expectation; empty if it doesn't.

    Args:
        expected: the expectation, with every expression expanded.
        answer: any answer but `Unsupported`, which is neither right nor wrong.
        context: what CPU sets are compared with, and the level.
    """
    match answer:
        case messages.Fault():
            return [Finding("expectation", "the answer", kind="fault", text=answer.message)]
        case _ if expected == "anything":
            return []
        case messages.StartRefused(stage=word):
            return list(_refusal(expected, word, answer.message, context))
        case messages.AdmissionRefused(reason=word):
            problems = list(_refusal(expected, word, answer.message, context))
            return problems or list(_check_optional("the refused pod", expected.pod, answer.pod))
        case _ if expected.refused is not None:
            return [Finding("expectation", _OUTCOME, expected=expected.refused, kind="accepted")]
    return list(_result(expected, answer, context))


def _refusal(expected: Expected, word: str, message: str, context: Context) -> Iterator[Finding]:
    said = " ".join(message.split())
    if expected.refused is None:
        yield Finding("expectation", _OUTCOME, actual=word, text=said, kind="refused")
    elif expected.refused != word:
        due = expected.refused
        yield Finding("expectation", _OUTCOME, "", due, word, "refused otherwise", text=said)
    elif expected.message is not None and applies("kubelet", context.level):
        text = message.replace(context.state_dir, "$STATE_DIR")
        if text != expected.message:
            yield differs("the message", expected.message, text)


_OUTCOME = "the outcome"


def _check_optional(
    what: str, expected: dict[str, Any] | None, actual: object
) -> Iterator[Finding]:
    """Compares those subfields of an answer's optional field that the case mentions."""
    if expected is not None and actual is None:
        yield Finding("expectation", what, kind="not included")
    elif expected is not None:
        yield from _subset(what, expected, codec.to_plain(actual))


def _result(expected: Expected, answer: messages.Answer, context: Context) -> Iterator[Finding]:
    match answer:
        case messages.Started():
            yield from _cpus("all CPUs", expected.all, answer.cpus.all, context)
            yield from _cpus(
                "allocatable CPUs", expected.allocatable, answer.cpus.allocatable, context
            )
            yield from memory_problems(
                "allocatable memory", expected.memory, answer.memory, context.level
            )
            yield from _check_optional("the configuration in force", expected.config, answer.config)
        case messages.Merged():
            yield from _merge(expected, answer, context.level)
        case messages.Admitted():
            yield from _containers("", expected.containers, answer.containers, context)
            yield from _preempted(expected.preempted, answer.preempted)
        case messages.State():
            yield from _state(expected, answer, context)
        case messages.Reconciled():
            yield from _updates(expected, answer, context)
        case messages.NodeHints():
            yield from _hints(expected.hints or {}, answer)
        case messages.Assigned():
            yield from _cpus("assigned CPUs", expected.cpus, answer.cpus, context)
        case _ if expected.machine is not None:
            yield from _machine(expected.machine, answer, context.discovers)


def _preempted(
    expected: Mapping[str, Mapping[str, str]] | None, answer: Iterable[messages.PreemptedPod]
) -> Iterator[Finding]:
    """Compares the preempted pods, their order, and those fields that the case mentions."""
    if expected is None:
        return
    actual = {one.uid: one for one in answer}
    wanted, left = [*map(uid, expected)], [*actual]
    if wanted != left:
        remark = lists.remark(wanted, left)
        sides = (", ".join(wanted) or "none", ", ".join(left) or "none")
        yield Finding("expectation", "preempted pods", "", *sides, remark=remark)
        return
    for name, fields in expected.items():
        yield from _subset(f"preempted pod {name}", fields, codec.to_plain(actual[uid(name)]))


def _hints(
    expected: Mapping[messages.Provider, Any], answer: messages.NodeHints
) -> Iterator[Finding]:
    """Compares each provider's hints; an empty answer differs from an empty list."""
    for provider, wanted in expected.items():
        given = {
            resource: None if hints is None else [codec.to_plain(hint) for hint in hints]
            for resource, hints in (getattr(answer, provider) or {}).items()
        }
        if wanted != given:
            sides, remark = (short_text(wanted), short_text(given)), _order(wanted, given)
            rule = f"hints of {provider}"
            yield Finding("expectation", rule, "", *sides, kind="hints", remark=remark)


def _order(expected: object, actual: object) -> str:
    """The remark that applies if lists of hints differ only in their order."""
    if not (isinstance(expected, dict) and isinstance(actual, dict)):
        return ""
    both = ((expected[name], actual[name]) for name in expected if name in actual)
    differing = [lists.remark(*sides) for sides in both if sides[0] != sides[1]]
    return differing[0] if len(set(differing)) == 1 and expected.keys() == actual.keys() else ""


def _merge(expected: Expected, answer: messages.Merged, level: Level) -> Iterator[Finding]:
    hint = codec.to_plain(answer.hint)
    if expected.admit is not None and expected.admit != answer.admit:
        yield differs("admit", expected.admit, answer.admit)
    if expected.hint is not None and expected.hint != hint and applies("placement", level):
        yield differs("the merged hint", expected.hint, hint)


def _machine(
    expected: Mapping[str, Any], answer: object, discovers: Collection[str] | None
) -> Iterator[Finding]:
    machine: MachineInfo = answer  # type: ignore[assignment]
    wanted = expected if discovers is None else keep_fields(expected, discovers)
    sides = _null_for_empty(wanted), _null_for_empty(describe_machine(machine, discovers))
    yield from _subset("machine", *sides)


def _null_for_empty(value: Any) -> Any:
    """Replaces empty lists with null, which is equivalent."""
    if isinstance(value, dict):
        return {key: _null_for_empty(one) for key, one in value.items()}
    return None if isinstance(value, list | tuple) and not value else value


def _state(expected: Expected, answer: messages.State, context: Context) -> Iterator[Finding]:
    yield from _cpus("the shared pool", expected.shared, answer.shared, context)
    if expected.pods is not None:
        wanted = {uid(name) for name in expected.pods}
        if wanted != set(answer.pods):
            yield differs("pods in the state", sorted(wanted), sorted(answer.pods))
            return
        for name, containers in expected.pods.items():
            yield from _containers(f"{name}/", containers, answer.pods[uid(name)], context)
    if expected.metrics is not None and answer.metrics is None:
        yield Finding("expectation", "the metrics", kind="not included")
    for name, value in (expected.metrics or {}).items():
        found = (answer.metrics or {}).get(name, 0 if "{" in name else None)
        if answer.metrics is not None and found != value:
            yield differs(f"metric {name}", value, found)
    for name, wanted_file in expected.files.items():
        yield from _file(name, wanted_file, answer.files.get(name))
    for name, fields in expected.checkpoints.items():
        content = answer.files.get(name)
        text = checkpoints.text(checkpoints.like(fields, content))
        if content is None or comparable_file(content) != comparable_file(text):
            yield from _file(name, text, content)


def _file(name: str, expected: str | dict[str, Any], content: str | None) -> Iterator[Finding]:
    if content is None:
        yield Finding("expectation", name, kind="no file")
    elif isinstance(expected, str):
        if content != expected:
            yield differs(name, expected, content)
    else:
        try:
            parsed = codec.decode_any(content)
        except codec.ProtocolError as error:
            yield Finding("expectation", name, kind="no JSON", text=str(error))
        else:
            yield from _subset(name, expected, parsed)


def _updates(
    expected: Expected, answer: messages.Reconciled, context: Context
) -> Iterator[Finding]:
    if expected.updates is None:
        return
    told = [(update.uid, update.container) for update in answer.updates]
    wanted = [(uid(update.pod), update.container) for update in expected.updates]
    if told != wanted:
        sides, remark = (_pairs(wanted), _pairs(told)), lists.remark(wanted, told)
        yield Finding("expectation", "updates", "", *sides, remark=remark)
        return
    for want, update in zip(expected.updates, answer.updates, strict=True):
        found = _cpus("the update", want.cpus, update.cpus, context)
        yield from (replace(one, of=f"{want.pod}/{want.container}") for one in found)


def _pairs(pairs: list[tuple[str, str]]) -> str:
    return ", ".join("/".join(pair) for pair in pairs) or "nothing"


def _containers(
    prefix: str,
    expected: Mapping[str, ContainerExpected],
    actual: Mapping[str, messages.Container],
    context: Context,
) -> Iterator[Finding]:
    for name, wanted in expected.items():
        found = (
            _container(wanted, actual[name], context)
            if name in actual
            else [Finding("expectation", "a container", kind="no container")]
        )
        yield from (replace(one, of=f"{prefix}{name}") for one in found)


def _container(
    expected: ContainerExpected, container: messages.Container, context: Context
) -> Iterator[Finding]:
    yield from _cpus("exclusive CPUs", expected.exclusive, container.exclusive, context)
    yield from _cpus("CPUs", expected.cpus, container.cpus, context)
    affinity = codec.to_plain(container.affinity)
    if expected.affinity is not None and expected.affinity != affinity:
        yield differs("the affinity", expected.affinity, affinity)
    level = context.level
    yield from memory_problems("memory", expected.memory, container.memory, level)
    if expected.quota is not None and container.quota is None:
        yield Finding("expectation", "the CFS quota", kind="not included")
    elif expected.quota is not None and expected.quota is not container.quota:
        yield differs("the CFS quota", expected.quota, container.quota)
    held = container.devices or {}
    for resource, devices in (expected.devices or {}).items():
        has, nodes = held.get(resource, ()), nodes_of(resource, context.devices)
        yield from device_problems(resource, devices, has, nodes, level)


def _cpus(rule: str, expectation: CPUs | None, cpus: CPUSet, context: Context) -> Iterator[Finding]:
    if expectation is None:
        return
    for expected, got in _set_problems(_normal(expectation), cpus, context):
        yield Finding("expectation", rule, "", expected, got)


def _normal(expectation: CPUs) -> CPUsExpected:
    if isinstance(expectation, int):
        return CPUsExpected(count=expectation)
    if isinstance(expectation, str):
        return CPUsExpected(equals=expectation)
    return expectation


def _set_problems(
    expectation: CPUsExpected, cpus: CPUSet, context: Context
) -> Iterator[tuple[str, str]]:
    """The unmet expectations of a CPU set, each with the actual value."""
    for words, text, holds in (
        ("", expectation.equals, CPUSet.__eq__),
        ("CPUs within ", expectation.within, CPUSet.issubset),
        ("CPUs that include ", expectation.contains, _includes),
        ("CPUs apart from ", expectation.disjoint_from or None, CPUSet.isdisjoint),
    ):
        if text is not None and not holds(cpus, other := _set(text, context)):
            yield f"{words}{format_cpus(other)}", format_cpus(cpus)
    if expectation.at_least is not None and len(cpus) < int(expectation.at_least):
        yield f"at least {amount(expectation.at_least, 'CPUs')}", _format_count(len(cpus), cpus)
    yield from _relations(expectation, cpus, context)
    yield from _counts(expectation, cpus, context)


def _includes(cpus: CPUSet, other: CPUSet) -> bool:
    return other.issubset(cpus)


def format_cpus(cpus: CPUSet) -> str:
    """Formats a CPU set for messages."""
    return str(cpus) or "no CPUs"


def _format_count(count: int, cpus: CPUSet, of: str = "CPUs") -> str:
    return amount(count, of) + (f" ({cpus})" if cpus else "")


def _relations(
    expectation: CPUsExpected, cpus: CPUSet, context: Context
) -> Iterator[tuple[str, str]]:
    for field, holds, words in _RELATIONS:
        name = getattr(expectation, field)
        if name is None:
            continue
        other = context.containers.get(name)
        if other is None:
            yield f"{words} {name}", f"no container {name}"
        elif not holds(cpus, other.exclusive):
            yield f"{words} {name} ({format_cpus(other.exclusive)})", format_cpus(cpus)


_RELATIONS = (
    ("same_as", CPUSet.__eq__, "the CPUs of"),
    ("within_container", CPUSet.issubset, "CPUs within those of"),
    ("disjoint_from_container", CPUSet.isdisjoint, "CPUs apart from those of"),
)


_WORDS = {
    "count": "CPUs",
    "cores": "cores",
    "sockets": "sockets",
    "numa_nodes": "NUMA nodes",
    "uncore_caches": "uncore caches",
    "per_node": "CPUs per node",
}

_WHERE = frozenset({"cores", "sockets", "numa_nodes", "uncore_caches", "per_node"})
"""Fields about the location of CPUs. Below level placement, the implementation may choose it
freely.
"""


def _counts(expectation: CPUsExpected, cpus: CPUSet, context: Context) -> Iterator[tuple[str, str]]:
    facts = context.facts
    on_nodes = tuple(sorted(_per_group(facts.nodes.values(), cpus)))
    seen = {
        "count": len(cpus),
        "cores": len(_per_group(facts.cores, cpus)),
        "sockets": len(_per_group(facts.sockets.values(), cpus)),
        "numa_nodes": len(on_nodes),
        "uncore_caches": len(_per_group(facts.uncore_caches.values(), cpus)),
        "per_node": on_nodes,
        "whole_cores": all(
            core.issubset(cpus) for core in facts.cores if not core.isdisjoint(cpus)
        ),
    }
    for field, value in seen.items():
        if field in _WHERE and not applies("placement", context.level):
            continue
        want = getattr(expectation, field)
        if want is not None and want != value:
            yield _of_count(field, want, value, cpus)


def _of_count(field: str, want: Any, value: Any, cpus: CPUSet) -> tuple[str, str]:
    if field == "whole_cores":
        return "whole cores only" if want else "at least one core in part", format_cpus(cpus)
    words = _WORDS[field]
    if field == "per_node":
        expected, got = (", ".join(map(str, one)) or "no" for one in (want, value))
        counts = (f"{one} CPU{'' if one == '1' else 's'} per node" for one in (expected, got))
        return next(counts), next(counts) + (f" ({cpus})" if cpus else "")
    return amount(want, words), _format_count(value, cpus, words)


def _per_group(groups: Any, cpus: CPUSet) -> list[int]:
    return [len(group & cpus) for group in groups if not group.isdisjoint(cpus)]


def _set(text: str, context: Context) -> CPUSet:
    if text == "shared":
        return context.shared if context.shared is not None else CPUSet()
    return CPUSet.parse(text)


def _subset(where: str, expected: Any, actual: Any) -> Iterator[Finding]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key not in actual:
                yield Finding("expectation", where, expected=key, kind="no field")
            else:
                yield from _subset(f"{where}.{key}", value, actual[key])
    elif expected != (list(actual) if isinstance(actual, tuple) else actual):
        yield differs(where, expected, actual)


Nodes = tuple[int, ...]


def memory_problems(
    rule: str, expected: Memory | None, actual: Iterable[MemoryBlock], level: Level
) -> Iterator[Finding]:
    """How memory blocks deviate from the expectation.

    Args:
        rule: a description of the blocks.
        expected: blocks in any order, compared at level ``placement`` and above; or bytes by type.
        actual: the blocks in the answer.
        level: how closely answers are compared.
    """
    blocks = list(actual)
    if expected is None:
        return
    if isinstance(expected, dict):
        sums: Counter[str] = Counter()
        for block in blocks:
            sums[block.type] += block.size
        if dict(sums) != expected:
            yield differs(rule, expected, dict(sums))
    elif applies("placement", level):
        has = sorted((block.type, tuple(block.numa), block.size) for block in blocks)
        want = sorted((one.type, _ids(one.numa), int(one.size)) for one in expected)
        if has != want:
            twice = lists.repetition_remark(has)
            yield Finding("expectation", rule, "", _blocks(want), _blocks(has), remark=twice)


def device_problems(
    resource: str,
    expected: int | str | tuple[str, ...] | DevicesExpected,
    actual: tuple[str, ...],
    nodes: Mapping[str, Nodes],
    level: Level,
) -> Iterator[Finding]:
    """How a container's devices of a resource deviate from the expectation.

    Args:
        resource: the resource.
        expected: the number of devices, their ids, or the nodes of each.
        actual: the ids in the answer.
        nodes: the NUMA nodes of each device, by id.
        level: ids and nodes are compared at level ``placement`` and above.
    """
    if isinstance(expected, int | str):
        if len(actual) != int(expected):
            counts = amount(expected, "devices"), amount(len(actual), "devices")
            yield Finding("expectation", resource, "", *counts)
    elif applies("placement", level):
        if isinstance(expected, DevicesExpected):
            has = sorted(nodes.get(one, ()) for one in actual)
            want = sorted(_ids(one) for one in expected.numa)
            if has != want:
                yield Finding("expectation", resource, "", _nodes(want), _nodes(has))
        elif sorted(actual) != sorted(expected):
            yield differs(
                resource, sorted(expected), sorted(actual), lists.repetition_remark(actual)
            )


def differs(rule: str, expected: object, actual: object, remark: str = "") -> Finding:
    """The finding that a value differs from the expected one."""
    return Finding("expectation", rule, "", short_text(expected), short_text(actual), remark=remark)


def amount(count: int | str, things: str) -> str:
    """Formats a count, such as ``1 CPU`` or ``2 CPUs``; `things` is a plural noun."""
    return f"{count} {things.removesuffix('s') if str(count) == '1' else things}"


def _blocks(blocks: Iterable[tuple[str, Nodes, int]]) -> str:
    listed = (f"{amount(size, 'bytes')} of {kind} on {_on(nodes)}" for kind, nodes, size in blocks)
    return "; ".join(listed) or "no memory"


def _nodes(devices: Sequence[Nodes]) -> str:
    """Formats the nodes of each device."""
    if not devices:
        return "no devices"
    return f"device{'' if len(devices) == 1 else 's'} on {'; '.join(map(_on, devices))}"


def _on(nodes: Nodes) -> str:
    return format_numbers("NUMA node", NUMASet(nodes))


def nodes_of(resource: str, devices: Iterable[DeviceResource]) -> dict[str, Nodes]:
    """The NUMA nodes of each device of a resource, by id; empty if no topology is reported."""
    return {
        device.id: tuple(device.numa or ())
        for one in devices
        if one.resource == resource
        for device in one.ids
    }


def _ids(numbers: Iterable[int | str]) -> Nodes:
    return tuple(sorted(map(int, numbers)))
