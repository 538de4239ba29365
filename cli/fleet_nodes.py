"""Reads the nodes of a fleet: captured nodes with names, or in a directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from numaproof.cli import user_files
from numaproof.cli.captured_nodes import (
    NO_PODS,
    NodeFile,
    is_machine,
    missing_parts,
    node_release,
    unknown_release,
    user_file,
)
from numaproof.cli.machine_names import read_machine
from numaproof.cli.node_files import read_state, require_pods_on_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numaproof.formats.machines.description import MachineText
    from numaproof.formats.nodes.reading import CapturedNode
    from numaproof.simulation.fleet import NamedNode

    Assume = tuple[tuple[str, int], ...]


class FleetOptions(NamedTuple):
    """What applies to all nodes of a fleet.

    Attributes:
        configs: the configuration instead of the nodes' own.
        devices: the nodes' devices; ``NODE:DEVICES`` are those of a single node.
        kubernetes: the release instead of the nodes' own; empty if they keep theirs.
        newest: the release of nodes whose own is unknown.
        assume: what to assume where a machine's description says nothing; ``NODE:KEY`` is about
            a single node.
        follows_docs: whether answers follow the documentation.
        lenient: whether unknown fields are ignored with a note.
    """

    configs: tuple[user_files.UserFile, ...]
    devices: tuple[str, ...]
    kubernetes: str
    newest: str
    assume: Assume
    follows_docs: bool
    lenient: bool


def read_fleet(
    files: Sequence[NodeFile], options: FleetOptions
) -> tuple[tuple[NamedNode, ...], tuple[str, ...]]:
    """Reads nodes; returns them and notes on how they were read.

    Raises:
        click.UsageError: two nodes have the same name, or a node has no configuration.
        DocumentError: a file is invalid.
    """
    from numaproof.simulation.devices import split_node

    nodes: dict[str, NamedNode] = {}
    notes: dict[str, list[str]] = {}
    reader = _Reader(options)
    for file in files:
        named, remarks = reader.read(file)
        if named.name in nodes:
            raise click.UsageError(
                f"--node: two nodes are named {named.name}; use --node NAME=FILE"
            )
        nodes[named.name] = named
        for remark in remarks:
            notes.setdefault(remark, []).append(named.name)
    about = [(f"--assume {key}", key.rpartition(":")[0]) for key, _ in options.assume]
    about += [(f"--devices {text}", split_node(text)[0]) for text in options.devices]
    for option, node in about:
        if node and node not in nodes:
            raise click.UsageError(f"{option}: no node {node!r}; it has: {', '.join(nodes)}")
    return tuple(nodes.values()), tuple(
        f"{_names(names)}: {_typed(remark, names)}" for remark, names in notes.items()
    )


_ANY = "NODE"
"""The name of a node in a remark that is the same for several nodes."""


def _typed(remark: str, names: Sequence[str]) -> str:
    """Returns a remark with the option as it must be typed, if it is about a single node."""
    if len(names) > 1:
        return remark
    return re.sub(rf"--(assume|devices) {_ANY}:", rf"--\1 {names[0]}:", remark)


def _names(names: Sequence[str]) -> str:
    others = len(names) - 1
    return f"{names[0]} and {others} more" if others else names[0]


_PARTS = ("machine", "config", "state", "pods")


class _Reader:
    """Reads nodes; equal machines are discovered once."""

    def __init__(self, options: FleetOptions) -> None:
        self._options = options
        self._machines: dict[tuple[str, str, Assume], MachineText] = {}

    def read(self, file: NodeFile) -> tuple[NamedNode, tuple[str, ...]]:
        """Reads a node; its remarks don't contain the name of its file."""
        from numaproof.formats.nodes.reading import CapturedNode, open_node

        if is_machine(file.path):
            return self._read(file, CapturedNode(file.path, "a machine"))
        with open_node(file.path, file.choice) as node:
            return self._read(file, node)

    def _read(self, file: NodeFile, node: CapturedNode) -> tuple[NamedNode, tuple[str, ...]]:
        from numaproof.cli.node_view import assumptions
        from numaproof.formats.machines.needs import differing_settings, of_node, require_enough
        from numaproof.simulation import devices, documents
        from numaproof.simulation.admission import Question
        from numaproof.simulation.fleet import NamedNode

        options = self._options
        kubernetes = options.kubernetes or node_release(node) or options.newest
        configs = options.configs or tuple(map(user_file, node.configuration))
        if not configs:
            raise click.UsageError(f"{node.without_configuration}; add '--config'")
        settings = user_files.find_configuration(configs, (kubernetes,))
        unknown = documents.ignored_field_warnings(settings.unknown)
        documents.refuse(
            settings.type_errors if options.lenient else (*settings.unknown, *settings.type_errors)
        )
        name = file.name or node.node or Path(file.path).name
        described = self._machine(name, node, kubernetes)
        has_state = node.state is not None
        require_enough(described, settings.settings, state=has_state, node=name)
        on_node = (user_file(node.pods),) if node.pods else ()
        state = read_state(
            user_file(node.state) if node.state else None,
            on_node,
            kubernetes,
            lenient=options.lenient,
            node_name="",
        )
        plugins, unsure = devices.as_recorded(
            devices.of_node(options.devices, name, described.machine), state.devices
        )
        described = described.with_known_devices(devices.counts(plugins))
        question = Question(
            described.machine,
            settings.settings,
            kubernetes,
            options.follows_docs,
            plugins,
            flags=settings.flags,
            state=state.state,
            unknown_memory=described.unknown_memory,
        )
        require_pods_on_node(question, on_node, f"collect {name} again, with its pods")
        missing: Iterable[str] = ()
        if node.record:
            # One line for all nodes that lack the same.
            record = msgspec.structs.replace(node.record, node=_ANY)
            missing = missing_parts(node.file, record, _PARTS)
        unchosen = "" if options.kubernetes or node.kubernetes else kubernetes
        notes = (
            *unknown_release(node, kubernetes),
            *user_files.differing_release(described, unchosen),
            *differing_settings(described, settings.settings),
            *missing,
            *(() if node.pods else (NO_PODS,)),
            *described.lines,
            *settings.notes,
            *unknown,
            *state.notes,
            *unsure,
            *assumptions(question),
        )
        remarks = tuple(of_node(note, _ANY).removeprefix(f"{node.file}: ") for note in notes)
        return NamedNode(name, question, settings.adds_defaults), remarks

    def _machine(self, name: str, node: CapturedNode, kubernetes: str) -> MachineText:
        from numaproof.formats.machines.reports import machine_digest

        is_archive = node.record is not None
        assume = self._assume(name)
        key = (machine_digest(node.file) if is_archive else node.machine, kubernetes, assume)
        if key not in self._machines:
            self._machines[key] = read_machine(node.machine, kubernetes, assume)
        return self._machines[key]

    def _assume(self, name: str) -> Assume:
        """Returns what to assume about a node; its own assumptions replace the common ones."""
        common = {key: value for key, value in self._options.assume if ":" not in key}
        own = {
            key.rpartition(":")[2]: value
            for key, value in self._options.assume
            if key.rpartition(":")[0] == name
        }
        return (*(common | own).items(),)
