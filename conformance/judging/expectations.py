"""Compares what a case expects of an answer with the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.manifests import uid
from numaproof.conformance.cases.schema import (
    ContainerExpected,
    CPUs,
    CPUsExpected,
    Expected,
    UpdateExpected,
)
from numaproof.conformance.judging.comparison import comparable_file
from numaproof.conformance.judging.discovered import described, kept
from numaproof.conformance.judging.node_expectations import (
    device_problems,
    memory_problems,
    nodes_of,
)
from numaproof.protocol import codec, messages
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import Level


@dataclass(frozen=True)
class Context:
    """What sets are compared with: the machine, the pool, and what other containers have.

    Of a discovered machine it is compared what `discovers` names; None stands for all.
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
) -> list[str]:
    """What is wrong with an answer, one sentence each; nothing if it is as expected.

    Args:
        expected: with every expression expanded.
        answer: any but an `Unsupported`, which is neither right nor wrong.
        context: what the sets are compared with, and the level that says how much counts.
    """
    match answer:
        case messages.Fault():
            return [f"the implementation broke: {answer.message}"]
        case _ if expected == "anything":
            return []
        case messages.StartRefused(stage=word):
            return list(_refusal(expected, word, answer.message, context))
        case messages.AdmissionRefused(reason=word):
            problems = list(_refusal(expected, word, answer.message, context))
            return problems or list(_told("the refused pod", expected.pod, answer.pod))
        case _ if expected.refused is not None:
            return [f"accepted: expected a refusal with {expected.refused}"]
    return list(_result(expected, answer, context))


def _refusal(expected: Expected, word: str, message: str, context: Context) -> Iterator[str]:
    if expected.refused is None:
        yield f"refused with {word} ({message}): expected success"
    elif expected.refused != word:
        yield f"refused with {word} ({message}): expected {expected.refused}"
    elif expected.message is not None and applies("kubelet", context.level):
        shown = message.replace(context.state_dir, "$STATE_DIR")
        if shown != expected.message:
            yield f"the message: expected {expected.message!r}, got {shown!r}"


def _told(what: str, wanted: dict[str, Any] | None, given: object) -> Iterator[str]:
    """Compares what is told on request: as many of its fields as the case names."""
    if wanted is not None and given is None:
        yield f"{what} is not told, though the start asked for it"
    elif wanted is not None:
        yield from _subset(what, wanted, codec.to_plain(given))


def _result(expected: Expected, answer: messages.Answer, context: Context) -> Iterator[str]:
    match answer:
        case messages.Started():
            yield from _cpus("all CPUs", expected.all, answer.cpus.all, context)
            yield from _cpus(
                "allocatable CPUs", expected.allocatable, answer.cpus.allocatable, context
            )
            yield from memory_problems(
                "allocatable memory", expected.memory, answer.memory, context.level
            )
            yield from _told("the configuration in force", expected.config, answer.config)
        case messages.Merged():
            yield from _merged(expected, answer, context.level)
        case messages.Admitted():
            yield from _containers("", expected.containers, answer.containers, context)
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


def _hints(expected: Mapping[messages.Provider, Any], answer: messages.NodeHints) -> Iterator[str]:
    """Compares the hints of each provider exactly: an empty answer is not an empty list."""
    for provider, wanted in expected.items():
        given = {
            resource: None if hints is None else [codec.to_plain(hint) for hint in hints]
            for resource, hints in (getattr(answer, provider) or {}).items()
        }
        if wanted != given:
            yield f"hints of {provider}: expected {wanted}, got {given}"


def _merged(expected: Expected, answer: messages.Merged, level: Level) -> Iterator[str]:
    hint = codec.to_plain(answer.hint)
    if expected.admit is not None and expected.admit != answer.admit:
        yield f"admit: expected {expected.admit}, got {answer.admit}"
    if expected.hint is not None and expected.hint != hint and applies("placement", level):
        yield f"the merged hint: expected {expected.hint}, got {hint}"


def _machine(
    expected: Mapping[str, Any], answer: object, discovers: Collection[str] | None
) -> Iterator[str]:
    machine: MachineInfo = answer  # type: ignore[assignment]
    wanted = expected if discovers is None else kept(expected, discovers)
    yield from _subset("machine", wanted, described(machine, discovers))


def _state(expected: Expected, answer: messages.State, context: Context) -> Iterator[str]:
    yield from _cpus("the shared pool", expected.shared, answer.shared, context)
    if expected.pods is not None:
        wanted = {uid(name) for name in expected.pods}
        if wanted != set(answer.pods):
            yield f"pods in the state: expected {sorted(wanted)}, got {sorted(answer.pods)}"
            return
        for name, containers in expected.pods.items():
            yield from _containers(f"{name}/", containers, answer.pods[uid(name)], context)
    for name, wanted_file in expected.files.items():
        yield from _file(name, wanted_file, answer.files.get(name))
    for name, fields in expected.checkpoints.items():
        content = answer.files.get(name)
        text = checkpoints.text(checkpoints.like(fields, content))
        if content is None or comparable_file(content) != comparable_file(text):
            yield from _file(name, text, content)


def _file(name: str, wanted: str | dict[str, Any], content: str | None) -> Iterator[str]:
    if content is None:
        yield f"there is no file {name}"
    elif isinstance(wanted, str):
        if content != wanted:
            yield f"{name}: expected {wanted!r}, got {content!r}"
    else:
        try:
            parsed = codec.decode_any(content)
        except codec.ProtocolError as error:
            yield f"{name} is not JSON: {error}"
        else:
            yield from _subset(name, wanted, parsed)


def _updates(expected: Expected, answer: messages.Reconciled, context: Context) -> Iterator[str]:
    if expected.updates is None:
        return
    told = [(update.uid, update.container) for update in answer.updates]
    wanted = [(uid(update.pod), update.container) for update in expected.updates]
    if told != wanted:
        yield f"updates: expected {_pairs(wanted)}, got {_pairs(told)}"
        return
    for want, update in zip(expected.updates, answer.updates, strict=True):
        yield from _cpus(_name(want), want.cpus, update.cpus, context)


def _name(update: UpdateExpected) -> str:
    return f"the update of {update.pod}/{update.container}"


def _pairs(pairs: list[tuple[str, str]]) -> str:
    return ", ".join("/".join(pair) for pair in pairs) or "nothing"


def _containers(
    prefix: str,
    expected: Mapping[str, ContainerExpected],
    given: Mapping[str, messages.Container],
    context: Context,
) -> Iterator[str]:
    for name, wanted in expected.items():
        if name not in given:
            yield f"there is no container {prefix}{name} in the answer"
            continue
        container = given[name]
        where = f"{prefix}{name}"
        yield from _cpus(
            f"exclusive CPUs of {where}", wanted.exclusive, container.exclusive, context
        )
        yield from _cpus(f"CPUs of {where}", wanted.cpus, container.cpus, context)
        affinity = codec.to_plain(container.affinity)
        if wanted.affinity is not None and wanted.affinity != affinity:
            yield f"the affinity of {where}: expected {wanted.affinity}, got {affinity}"
        level = context.level
        yield from memory_problems(f"memory of {where}", wanted.memory, container.memory, level)
        if wanted.quota is not None and container.quota is None:
            yield f"the CFS quota of {where} is not told, though the start asked for it"
        elif wanted.quota is not None and wanted.quota is not container.quota:
            yield f"the CFS quota of {where}: expected {wanted.quota}, got {container.quota}"
        held = container.devices or {}
        for resource, devices in (wanted.devices or {}).items():
            what = f"{resource} of {where}"
            yield from device_problems(
                what, devices, held.get(resource, ()), nodes_of(resource, context.devices), level
            )


def _cpus(what: str, wanted: CPUs | None, given: CPUSet, context: Context) -> Iterator[str]:
    if wanted is None:
        return
    for problem in _set_problems(_normal(wanted), given, context):
        yield f"{what} ({given}): {problem}"


def _normal(wanted: CPUs) -> CPUsExpected:
    if isinstance(wanted, int):
        return CPUsExpected(count=wanted)
    if isinstance(wanted, str):
        return CPUsExpected(equals=wanted)
    return wanted


def _set_problems(wanted: CPUsExpected, given: CPUSet, context: Context) -> Iterator[str]:
    if wanted.equals is not None and given != (other := _set(wanted.equals, context)):
        yield f"expected {str(other)!r}"
    if wanted.within is not None and not given.issubset(_set(wanted.within, context)):
        yield f"not within {_set(wanted.within, context)}"
    if wanted.contains is not None and not _set(wanted.contains, context).issubset(given):
        yield f"does not contain {_set(wanted.contains, context)}"
    if wanted.disjoint_from and not given.isdisjoint(_set(wanted.disjoint_from, context)):
        yield f"shares CPUs with {_set(wanted.disjoint_from, context)}"
    if wanted.at_least is not None and len(given) < int(wanted.at_least):
        yield f"fewer than {wanted.at_least}"
    yield from _relations(wanted, given, context)
    yield from _counts(wanted, given, context)


def _relations(wanted: CPUsExpected, given: CPUSet, context: Context) -> Iterator[str]:
    for field, holds, words in _RELATIONS:
        name = getattr(wanted, field)
        if name is None:
            continue
        if name not in context.containers:
            yield f"there is no container {name} to compare with"
        elif not holds(given, context.containers[name].exclusive):
            yield f"{words} {name} ({context.containers[name].exclusive})"


_RELATIONS = (
    ("same_as", CPUSet.__eq__, "not the CPUs of"),
    ("within_container", CPUSet.issubset, "not within the CPUs of"),
    ("disjoint_from_container", CPUSet.isdisjoint, "shares CPUs with"),
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
"""Fields about where CPUs are: below level placement, the implementation chooses."""


def _counts(wanted: CPUsExpected, given: CPUSet, context: Context) -> Iterator[str]:
    facts = context.facts
    on_nodes = tuple(sorted(_per_group(facts.nodes.values(), given)))
    seen = {
        "count": len(given),
        "cores": len(_per_group(facts.cores, given)),
        "sockets": len(_per_group(facts.sockets.values(), given)),
        "numa_nodes": len(on_nodes),
        "uncore_caches": len(_per_group(facts.uncore_caches.values(), given)),
        "per_node": on_nodes,
        "whole_cores": all(
            core.issubset(given) for core in facts.cores if not core.isdisjoint(given)
        ),
    }
    for field, value in seen.items():
        if field in _WHERE and not applies("placement", context.level):
            continue
        want = getattr(wanted, field)
        if want is not None and want != value:
            yield _expected(field, want, value)


def _expected(field: str, want: object, value: object) -> str:
    if field == "whole_cores":
        return "expected whole cores only" if want else "expected at least one core in part"
    return f"expected {want} {_WORDS[field]}, got {value}"


def _per_group(groups: Any, given: CPUSet) -> list[int]:
    return [len(group & given) for group in groups if not group.isdisjoint(given)]


def _set(text: str, context: Context) -> CPUSet:
    if text == "shared":
        return context.shared if context.shared is not None else CPUSet()
    return CPUSet.parse(text)


def _subset(where: str, wanted: Any, given: Any) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(given, dict):
        for key, value in wanted.items():
            if key not in given:
                yield f"{where} has no {key}"
            else:
                yield from _subset(f"{where}.{key}", value, given[key])
    elif wanted != (list(given) if isinstance(given, tuple) else given):
        yield f"{where}: expected {wanted!r}, got {given!r}"
