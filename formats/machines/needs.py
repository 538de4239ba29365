"""Settings whose effect depends on what a text doesn't say.

With these, an answer would rest on the assumption alone, so there is none.
"""

from __future__ import annotations

import re
from math import ceil
from typing import TYPE_CHECKING, Any

from numaproof.inputs.errors import DocumentError
from numaproof.protocol.sets import CPUSet, ListFormatError
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.formats.machines.description import MachineText, Subject

_ALIGNING = ("restricted", "single-numa-node")


def of_node(text: str, node: str) -> str:
    """Returns a text in which ``--assume`` and ``--devices`` are about one of several nodes."""
    return re.sub(r"--(assume|devices) ", rf"--\1 {node}:", text) if node else text


def require_enough(
    text: MachineText, config: Mapping[str, Any], *, state: bool = False, node: str = ""
) -> None:
    """Checks that a text says what a configuration depends on.

    Args:
        text: the machine.
        config: the configuration.
        state: whether the state of the CPU Manager is read, which names CPUs.
        node: the node's name if there are several.

    Raises:
        DocumentError: it doesn't; the message says how to supply it.
    """
    missing = {gap.subject: gap for gap in text.missing}
    needs = [*_needs(config)]
    if config.get("cpuManagerPolicy") == "static" and len(text.machine.topology or ()) > 1:
        # Without NUMA nodes, any CPU is like any other.
        needs += [("numbers", "reservedSystemCPUs")] if config.get("reservedSystemCPUs") else []
        needs += [("numbers", "cpu_manager_state")] if state else []
    for subject, setting in needs:
        gap = missing.get(subject)
        if gap is not None:
            raise DocumentError(
                text.file,
                0,
                "",
                f"{setting} depends on {gap.what}, which {text.format} doesn't show",
                f"add {of_node(gap.remedy, node)}, or use a tree" if gap.remedy else "use a tree",
            )


_DEFAULTS = {
    "cpuManagerPolicy": "none",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}


def differing_settings(text: MachineText, config: Mapping[str, Any]) -> Iterator[str]:
    """Yields notes about settings and reservations of a machine's kubelet.

    They are about those that differ from a configuration.
    """
    for name, value in text.settings.items():
        other = config.get(name) or _DEFAULTS.get(name, value)
        if other != value:
            yield f"its kubelet has {name} {value}, but the configuration has {other}"
    own, reserved = text.reserved_cpus, _reserved_cpus(config)
    # With exclusive CPUs, whole CPUs are reserved.
    if None not in (own, reserved) and own not in (reserved, ceil(reserved or 0)):
        yield f"its kubelet reserves {own:g} CPU, but the configuration reserves {reserved:g}"


def _reserved_cpus(config: Mapping[str, Any]) -> float | None:
    """Returns how many CPUs a configuration reserves; None if it is invalid."""
    amounts = (config.get(name) for name in ("kubeReserved", "systemReserved"))
    try:
        if named := config.get("reservedSystemCPUs"):
            return len(CPUSet.parse(str(named)))
        cpus = (one.get("cpu", 0) for one in amounts if isinstance(one, dict))
        return float(sum(quantity.parse(str(one)) for one in cpus))
    except (ListFormatError, quantity.QuantityError, UnsupportedError):
        return None


def _needs(config: Mapping[str, Any]) -> Iterator[tuple[Subject, str]]:
    if config.get("memoryManagerPolicy") == "Static":
        yield from (
            ("nodes", "memoryManagerPolicy: Static"),
            ("memory", "memoryManagerPolicy: Static"),
        )
    policy = config.get("topologyManagerPolicy")
    if policy in _ALIGNING:
        yield "nodes", f"topologyManagerPolicy: {policy}"
    for field, option, subject in _OPTIONS:
        options = config.get(field)
        if isinstance(options, dict) and options.get(option) == "true":
            yield subject, f"{field}.{option}"


_OPTIONS: tuple[tuple[str, str, Subject], ...] = (
    ("cpuManagerPolicyOptions", "full-pcpus-only", "threads"),
    ("cpuManagerPolicyOptions", "distribute-cpus-across-numa", "nodes"),
    ("cpuManagerPolicyOptions", "align-by-socket", "nodes"),
    ("cpuManagerPolicyOptions", "prefer-align-cpus-by-uncorecache", "caches"),
    ("topologyManagerPolicyOptions", "prefer-closest-numa-nodes", "distances"),
)
"""Policy options, and what each depends on."""
