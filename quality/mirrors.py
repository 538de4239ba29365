"""Correct implementations that choose other resources than the reference.

Each is the documented reference behind a mirror that renumbers CPUs, cores and NUMA nodes
backwards and translates the answers, or with other choices where the documents leave them open.
Whatever blames one of them below level ``placement`` is a bug of the harness.

`python -m quality.mirrors NAME [--level LEVEL]` serves a mirror on stdin and stdout.
"""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.features import CHECKPOINT_FILES
from numaproof.protocol.machine import Core, MachineInfo, Node, UncoreCache
from numaproof.protocol.sets import CPUSet, ListFormatError, NUMASet
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.deviations.deviation import UndocumentedBehaviour
from numaproof.reference.implementation import Reference
from numaproof.reference.memory import state as memory_state
from numaproof.reference.memory.policy import StaticMemoryPolicy
from numaproof.reference.server import serve
from numaproof.reference.topology.search import evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numaproof.reference.deviations.releases import Release
    from numaproof.reference.topology.hints import Demand, TopologyHint

Struct = TypeVar("Struct", bound=msgspec.Struct)

_CPUS, _NODES, _CORES = 1 << 13, 1 << 6, 1 << 16
"""Sizes of the numberings that are reversed, powers of two that exceed every id."""

_SETS = re.compile(r"[0-9]+(-[0-9]+)?")

_OUTSIDE = ("discover",)
_UNTRANSLATED = {CHECKPOINT_FILES, "flags", "metrics"}
"""What mirrors don't claim: trees, files, command lines and metrics have numbers of their own."""


@dataclass(frozen=True)
class Numbering:
    """Which numbers are reversed; applying it twice changes nothing."""

    cpus: bool = False
    cores: bool = False
    nodes: bool = False

    def cpu(self, number: int) -> int:
        return number ^ _CPUS - 1 if self.cpus else number

    def core(self, number: int) -> int:
        return number ^ _CORES - 1 if self.cores else number

    def node(self, number: int) -> int:
        return number ^ _NODES - 1 if self.nodes and number >= 0 else number

    def of(self, value: Any) -> Any:
        """Returns a message, or a part of one, with the other numbers."""
        if isinstance(value, dict):
            return {key: self.of(one) for key, one in value.items()}
        if isinstance(value, tuple):
            return tuple(map(self.of, value))
        for kind, change in self._changes.items():
            if isinstance(value, kind):
                return change(value)
        return value

    @property
    def _changes(self) -> Mapping[type, Callable[[Any], Any]]:
        return {
            CPUSet: lambda cpus: CPUSet(map(self.cpu, cpus)),
            NUMASet: lambda nodes: NUMASet(map(self.node, nodes)),
            MachineInfo: self._machine,
            messages.MergeArgs: self._merge_args,
            messages.StartArgs: self._start_args,
            msgspec.Struct: self._struct,
        }

    def _start_args(self, args: messages.StartArgs) -> messages.StartArgs:
        return msgspec.structs.replace(self._struct(args), config=self._config(args.config))

    def _struct(self, value: Struct) -> Struct:
        return msgspec.structs.replace(
            value, **{name: self.of(getattr(value, name)) for name in value.__struct_fields__}
        )

    def _machine(self, machine: MachineInfo) -> MachineInfo:
        return msgspec.structs.replace(machine, topology=self._topology(machine.topology or ()))

    def _topology(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        found = [
            msgspec.structs.replace(
                node,
                node_id=self.node(node.node_id),
                cores=node.cores and tuple(sorted(map(self._core, node.cores), key=_first_cpu)),
                distances=node.distances and self._row(node.distances),
            )
            for node in nodes
        ]
        return tuple(sorted(found, key=lambda node: node.node_id) if self.nodes else found)

    def _core(self, core: Core) -> Core:
        threads, caches = core.thread_ids or (), core.uncore_caches
        return msgspec.structs.replace(
            core,
            core_id=self.core(core.core_id),
            socket_id=self.core(core.socket_id),
            thread_ids=tuple(sorted(map(self.cpu, threads))),
            uncore_caches=caches and tuple(map(self._cache, caches)),
        )

    def _cache(self, cache: UncoreCache) -> UncoreCache:
        return msgspec.structs.replace(cache, id=self.core(cache.id))

    def _row(self, distances: tuple[int, ...]) -> tuple[int, ...]:
        return distances[::-1] if self.nodes else distances

    def _merge_args(self, args: messages.MergeArgs) -> messages.MergeArgs:
        rows = args.distances
        return msgspec.structs.replace(
            args,
            nodes=tuple(sorted(map(self.node, args.nodes))) if self.nodes else args.nodes,
            providers=self.of(args.providers),
            distances=rows
            and {str(self.node(int(node))): row and self._row(row) for node, row in rows.items()},
        )

    def _config(self, config: messages.KubeletConfiguration) -> messages.KubeletConfiguration:
        """The configuration with other numbers; what is malformed stays malformed."""
        changed = dict(config)
        with suppress(KeyError, ListFormatError, AttributeError, ValueError):
            named = config["reservedSystemCPUs"]
            changed["reservedSystemCPUs"] = _SETS.sub(
                lambda text: str(self.of(CPUSet.parse(text[0]))), named
            )
        with suppress(KeyError, TypeError, AttributeError):
            changed["reservedMemory"] = [
                {**one, "numaNode": self.node(one.get("numaNode", 0))}
                for one in config["reservedMemory"]
            ]
        return changed


def _first_cpu(core: Core) -> int:
    return min(core.thread_ids or (0,))


class HighReservation(Assignment):
    """Reserves the CPUs with the highest numbers, if the documents leave the choice open."""

    deviation = UndocumentedBehaviour("high-reservation", ())

    def reserve(self, count: int) -> int:
        if self.options.place_cpus:
            return super().reserve(count)
        chosen = sorted(CPUSet.from_mask(self.topology.cpus))[-count:]
        return CPUSet(chosen).mask if count else 0


class HighMemory(StaticMemoryPolicy):
    """Takes the highest of equally good sets of NUMA nodes."""

    deviation = UndocumentedBehaviour("high-memory", ())

    def best(self, demand: Demand, containing: int, first_choice: int) -> TopologyHint | None:
        del first_choice
        return min(
            (hint for hint in evaluation.list_hints(demand) if not containing & ~hint.nodes),
            key=lambda hint: (not hint.preferred, hint.nodes.bit_count(), -hint.nodes),
            default=None,
        )


class _Chooser(Reference):
    """The documented reference with other rules of choice."""

    def __init__(self, rules: tuple[type, ...]) -> None:
        super().__init__(follows_docs=True)
        self._rules = rules

    def _release(self, version: str | None) -> Release:
        release = super()._release(version)
        return replace(release, deviations=(*release.deviations, *self._rules))


@dataclass(frozen=True)
class Choices:
    """What sets a correct implementation apart from the reference.

    Attributes:
        numbering: the numbers that it reverses.
        rules: the rules of the reference that it overrides.
        unclaimed: features that it doesn't claim. Without huge pages, it ignores the machine's.
    """

    numbering: Numbering = Numbering()
    rules: tuple[type, ...] = ()
    unclaimed: tuple[str, ...] = ()


MIRRORS: Mapping[str, Choices] = {
    "cpus": Choices(Numbering(cpus=True, cores=True)),
    "cores": Choices(Numbering(cores=True)),
    "nodes": Choices(Numbering(nodes=True)),
    "both": Choices(Numbering(cpus=True, cores=True, nodes=True)),
    "reservation": Choices(rules=(HighReservation,)),
    "memory": Choices(rules=(HighMemory,)),
    "no-huge-pages": Choices(unclaimed=("huge-pages",)),
    "everything": Choices(
        Numbering(cpus=True, nodes=True), (HighReservation, HighMemory), ("huge-pages",)
    ),
}


class _Descending(NUMASet):
    """A set that starts with its highest member."""

    __slots__ = ()

    def __iter__(self) -> Iterator[int]:
        return reversed([*super().__iter__()])


@contextmanager
def _filling_from(*, lowest: bool) -> Iterator[None]:
    """Lets memory blocks fill the lowest node first, or else the highest.

    The documents leave no choice here (MEM-GROUP-003), so a mirror must reverse it.
    """
    if lowest:
        yield
        return
    vars(memory_state)["NUMASet"] = _Descending
    try:
        yield
    finally:
        vars(memory_state)["NUMASet"] = NUMASet


class Mirror:
    """A correct implementation with other choices.

    Args:
        name: which choices, a key of `MIRRORS`.
        level: the level to claim.
    """

    def __init__(self, name: str, level: messages.Level = "admission") -> None:
        self._choices = MIRRORS[name]
        self._name = name
        self._level = level
        self._reference = _Chooser(self._choices.rules)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer in the numbers of the request."""
        if "huge-pages" in self._choices.unclaimed and isinstance(args, messages.StartArgs):
            args = msgspec.structs.replace(args, machine=_without_huge_pages(args.machine))
        numbering = self._choices.numbering
        with _filling_from(lowest=not numbering.nodes):
            answer: messages.Answer = numbering.of(
                self._reference.call(operation, numbering.of(args))
            )
        match answer:
            case messages.Hello():
                return self._hello(answer)
            case messages.State():
                return msgspec.structs.replace(answer, files={})
            case _:
                return answer

    def _hello(self, hello: messages.Hello) -> messages.Hello:
        without = _UNTRANSLATED.union(self._choices.unclaimed)
        return msgspec.structs.replace(
            hello,
            name=f"mirror {self._name}",
            level=self._level,
            operations=tuple(one for one in hello.operations if one not in _OUTSIDE),
            features=tuple(one for one in hello.features or () if one not in without),
        )


def _without_huge_pages(machine: MachineInfo | None) -> MachineInfo | None:
    if machine is None:
        return None
    nodes = [msgspec.structs.replace(one, hugepages=()) for one in machine.topology or ()]
    return msgspec.structs.replace(machine, hugepages=(), topology=tuple(nodes))


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves a mirror on stdin and stdout."""
    parser = argparse.ArgumentParser("python -m quality.mirrors")
    parser.add_argument("name", choices=[*MIRRORS])
    parser.add_argument("--level", choices=messages.LEVELS, default="admission")
    options = parser.parse_args(arguments)
    serve(sys.stdin.buffer, sys.stdout.buffer, Mirror(options.name, options.level))


if __name__ == "__main__":
    main()
