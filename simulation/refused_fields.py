"""Which field a kubelet's refusal is about, how to fix it, and where it is documented.

A kubelet's message names a flag, an option, a signal, or nothing at all. This table matches the
messages to fields; `cured` changes a configuration to get past one error, so that the next shows.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from numaproof.inputs import documents, fitting
from numaproof.inputs.documents import PathTuple
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from numaproof.protocol.machine import MachineInfo

ConfigFields = dict[str, Any]


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a message of the kubelet is about; the table ``refused_fields.yaml`` explains it.

    `section` is the page of the Kubernetes documentation.
    """

    pattern: str
    path: tuple[str, ...]
    fix: str
    section: str
    cure: Literal["", "cpu", "memory"] = ""
    others: tuple[PathTuple, ...] = ()


def _with_reserved_cpu(config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    cpus = sorted(
        cpu
        for node in machine.topology or ()
        for core in node.cores or ()
        for cpu in core.thread_ids or ()
    )
    return {**config, "reservedSystemCPUs": str(cpus[0])} if cpus else config


def _with_reserved_memory(config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    """The configuration with a memory reservation that adds up, without huge pages."""
    nodes = sorted(node.node_id for node in machine.topology or ())
    amounts = {nodes[0] if nodes else 0: 100 << 20}
    for entry in config.get("reservedMemory") or []:
        named, limits = (entry or {}).get("numaNode") or 0, (entry or {}).get("limits") or {}
        if named in nodes and limits.get("memory") is not None:
            amounts[named] = max(quantity.value(limits["memory"]), 1 << 20)
    kept = [{"numaNode": node, "limits": {"memory": str(size)}} for node, size in amounts.items()]
    without = {**config, "reservedMemory": kept, "evictionHard": {"nodefs.available": "10%"}}
    for name in ("kubeReserved", "systemReserved"):
        given = config.get(name) or {}
        without[name] = {key: text for key, text in given.items() if key != "memory"}
    without["systemReserved"]["memory"] = str(sum(amounts.values()))
    return without


@cache
def rules() -> tuple[Rule, ...]:
    """The rules, in the order in which they are tried."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    document = documents.load(text, file="refused_fields.yaml")
    return fitting.convert(document, tuple[Rule, ...])


def cured(rule: Rule, config: ConfigFields, machine: MachineInfo) -> ConfigFields:
    """The configuration with the reservation by which the cure of a rule gets past its error."""
    cures = {"cpu": _with_reserved_cpu, "memory": _with_reserved_memory}
    return cures[rule.cure](config, machine)


UNKNOWN = Rule("", (), "change or remove it", "")
"""For messages that match no rule."""


def rule_for(stage: str, message: str) -> tuple[Rule, PathTuple] | None:
    """The rule that matches the message, and the path of the field; None if no rule matches."""
    for text in (message, f"stage {stage}: {message}"):
        for rule in rules():
            found = re.search(rule.pattern, text)
            if found:
                groups = {name: part or "" for name, part in found.groupdict().items()}
                return rule, tuple(step.format(**groups) for step in rule.path)
    return None
