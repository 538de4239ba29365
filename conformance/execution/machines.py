"""The machines of a run: profiles, their trees and what the reference discovers in them.

Each is created on first use, once per run.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from numaproof import fakesys
from numaproof.conformance.cases.expressions import ExpressionError, evaluate
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.cases.machine_properties import Facts, Property, facts_of
from numaproof.conformance.trees import GeneratedTree, InMemoryTree
from numaproof.inputs import documents, typed
from numaproof.protocol.machine import MachineInfo
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover
from numaproof.workdir import cache

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case, Comparison


DISCOVERY_ONLY = "discovery-only"
"""The tag of machines that add nothing to cases without discovery."""


class _Info(msgspec.Struct, frozen=True):
    """A bundled machine's entry in the cache that is kept between commands."""

    info: MachineInfo | None


@dataclass(frozen=True)
class ProfileMachine:
    """A machine from a profile; its tree is written below `folder` when a program needs the files.

    `requested_name` is the name that the user gave, if it differs from the profile's.
    """

    profile: fakesys.Profile
    folder: Path
    requested_name: str = ""

    def __getstate__(self) -> dict[str, object]:
        """Pickles the fields and the discovered machine; the rest is recreated on demand."""
        return {name: value for name, value in vars(self).items() if name in _PICKLED_FIELDS}

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.profile.name

    @cached_property
    def cpus(self) -> int:
        """The number of online CPUs, computed without generating the tree."""
        return sum(cpu.online for cpu in fakesys.lay_out(self.profile).cpus)

    @property
    def is_for_discovery(self) -> bool:
        """Whether it runs only the cases that discover machines, and those that name it."""
        return DISCOVERY_ONLY in self.profile.tags

    @cached_property
    def repeats_core_ids(self) -> bool:
        """Whether cores of a package and a NUMA node have equal ids.

        The kubelet takes them for one core (`numaproof.reference.deviations.discovery`).
        """
        machine = fakesys.lay_out(self.profile)
        nodes = {cpu: node.number for node in machine.nodes for cpu in node.cpus}
        cores: dict[object, set[object]] = {}
        for cpu in machine.cpus:
            if cpu.core_id is not None:
                ids = nodes.get(cpu.number), cpu.socket, cpu.core_id
                cores.setdefault(ids, set()).add(cpu.threads)
        return any(len(threads) > 1 for threads in cores.values())

    @cached_property
    def tree(self) -> GeneratedTree:
        """The machine's tree: in memory, and in a directory when a program needs it."""
        return GeneratedTree(
            lambda: InMemoryTree(fakesys.build_tree(self.profile)), self.folder / self.name
        )

    @cached_property
    def info(self) -> MachineInfo | None:
        """The machine as the reference discovers it; None if discovery fails."""
        if self.name not in fakesys.bundled_profiles():
            return self._discover()
        key = cache.digest(("fakesys", "reference"), [msgspec.json.encode(self.profile)])
        saved: _Info | None = cache.read(f"machine-{self.name}", key, _Info)
        if saved is None:
            saved = _Info(self._discover())
            cache.write(f"machine-{self.name}", key, saved)
        return saved.info

    @cached_property
    def kernel_info(self) -> MachineInfo | None:
        """The machine with the cores that the kernel lists, rather than those of the kubelet."""
        return self._discover(by_siblings=True)

    def _discover(self, *, by_siblings: bool = False) -> MachineInfo | None:
        try:
            return discover(self.tree.in_memory_tree.root, by_siblings=by_siblings)
        except DiscoveryError:
            return None

    @cached_property
    def facts(self) -> Facts | None:
        """The machine's properties; None if discovery fails."""
        return facts_of(self.info) if self.info else None


@dataclass(frozen=True)
class GivenMachine:
    """A machine described in a case file; its tree is generated on demand."""

    info: MachineInfo
    name: str = "its own machine"
    tree: None = None

    @cached_property
    def facts(self) -> Facts:
        """The machine's properties."""
        return Facts(self.info)


AnyMachine = ProfileMachine | GivenMachine

_PICKLED_FIELDS = frozenset({"profile", "folder", "given", "cpus", "info"})


_WITHOUT_NODE = frozenset({"assign", "merge"})


def starts_from_tree(machine: ProfileMachine, case: Case) -> bool:
    """Whether a case starts from the machine's tree, according to ``discovered.yaml``.

    If the kubelet misreads the tree, implementations needn't find the machine that cases describe.
    """
    if discovers(case) or machine.repeats_core_ids:
        return False
    if all(step.verb in _WITHOUT_NODE for step in case.steps):
        return False
    return any(
        machine.cpus <= row.most_cpus and any(fnmatchcase(case.id, one) for one in row.cases)
        for row in _load_tree_cases()
    )


def discovers(case: Case) -> bool:
    """Whether a case discovers the machine from its tree."""
    return any(step.discover or (step.start and step.start.tree) for step in case.steps)


class _TreeCases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cases that start from the machine's tree, on machines with at most `most_cpus` CPUs."""

    most_cpus: int
    cases: tuple[str, ...]


@functools.cache
def _load_tree_cases() -> tuple[_TreeCases, ...]:
    file = resources.files("numaproof.conformance") / "discovered.yaml"
    document = documents.load(file.read_text(encoding="utf-8"), file=file.name)
    return typed.convert(document, tuple[_TreeCases, ...])


def matches(machine: ProfileMachine, case: Case) -> bool:
    """Whether a case runs on the machine.

    A machine that can't be discovered has no properties, so only its name can select it.

    Raises:
        CaseError: a comparison or condition is invalid.
    """
    try:
        return _fits(machine, case)
    except ExpressionError as error:
        raise CaseError(case.id, 0, f"machines: {error}") from None


def _fits(machine: ProfileMachine, case: Case) -> bool:
    selector = case.machines
    named = any(fnmatchcase(machine.name, pattern) for pattern in selector.names)
    if selector.names and not named:
        return False
    if machine.is_for_discovery and not (named or discovers(case)):
        return False
    if machine.facts is None:
        return named
    properties = machine.facts.properties
    if not machine.facts.all and not named:
        return False
    return all(
        _holds(properties[name], comparison) for name, comparison in selector.comparisons().items()
    ) and (not selector.where or bool(evaluate(selector.where, properties)))


def _holds(value: Property, comparison: Comparison) -> bool:
    if isinstance(comparison, int):
        return value == comparison
    return bool(evaluate(f"value {comparison}", {"value": value}))


def select(machines: Iterable[ProfileMachine], case: Case) -> list[ProfileMachine]:
    """The machines that a case runs on, in the given order.

    Raises:
        CaseError: a comparison or condition is invalid.
    """
    return [machine for machine in machines if matches(machine, case)]
