"""Why a kubelet ended, by the end of its log."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from numaproof.conformance.execution.programs.process import ending
from numaproof.formats.machines import kubelet_log
from numaproof.kubelet.process import parse_line
from numaproof.protocol import messages
from numaproof.reference.pods import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numaproof.kubelet.process import LogLine

_PANIC = re.compile(r"^(?:panic: |fatal error: |\[signal )", re.MULTILINE)
_FAILED_MANAGER = re.compile(r"Failed to initialize (cpu|memory|device) manager")
_FAILED_START = re.compile(r"start (cpu|memory|device) manager error")
_FATAL = frozenset({"command failed", "Failed to start ContainerManager"})
_TOPOLOGY = re.compile(r"topology manager|policy option|numa.nodes", re.IGNORECASE)
MAX_TRACE = 20_000
"""Characters of a log that are shown in the place of a stack trace."""

_ALLOCATABLE = "invalid Node Allocatable configuration."
_EXCESS = re.compile(r'Resource ".*?" has a reservation .*? Expected capacity >= reservation[.]')
_QUANTITY = re.compile(
    r"\{\{(-?\d+) (-?\d+)\} \{<nil>\} \S* ?(BinarySI|DecimalSI|DecimalExponent)\}"
)
_STYLES: dict[str, quantity.Style] = {
    "BinarySI": "binary",
    "DecimalSI": "decimal",
    "DecimalExponent": "exponent",
}

_GATES = "require feature gates"
_RUN = "failed to run Kubelet: "
_AROUND = re.compile(
    rf"^{_RUN}|, path: &TypeMeta\{{.*$"
    r"|^failed to load kubelet config file, path: \S+, error: "
    r"failed to load Kubelet config file \S+, error ",
    re.DOTALL,
)
"""What the kubelet puts around the error of one of its parts."""


def refusal(log: str, code: int) -> messages.StartRefused | messages.Fault:
    """Why a kubelet did not start: a refusal in its own words, or a crash.

    Args:
        log: the end of its log.
        code: its exit code, or a negative signal.
    """
    crash = _PANIC.search(log)
    if crash is not None:
        return messages.Fault(log[crash.start() :].splitlines()[0], log[crash.start() :])
    if code < 0:
        return messages.Fault(f"it ended with {ending(code)}", log[-MAX_TRACE:])
    lines = [line for line in map(parse_line, log.splitlines()) if line is not None]
    silent = f"it wrote nothing and ended with {ending(code)}"
    text = _error(lines) or (log.splitlines() or [silent])[-1]
    return messages.StartRefused(_stage(lines, text), _readable(_AROUND.sub("", text)))


def is_about_allocatable(answer: messages.Answer) -> bool:
    """Whether a kubelet did not start because of the node's allocatable resources."""
    return isinstance(answer, messages.StartRefused) and answer.message.startswith(_ALLOCATABLE)


def _readable(message: str) -> str:
    """The message with quantities as people write them, and resources in order.

    A kubelet prints the fields of these quantities, in any order of the resources.
    """
    if not message.startswith(_ALLOCATABLE):
        return message
    plain = _QUANTITY.sub(
        lambda match: quantity.canonical(
            int(match[1]) * Fraction(10) ** int(match[2]), _STYLES[match[3]]
        ),
        message,
    )
    return " ".join((_ALLOCATABLE, *sorted(_EXCESS.findall(plain))))


def _error(lines: Sequence[LogLine]) -> str:
    """The error that ended the kubelet; other parts may log theirs until it has ended."""
    errors = [one for one in lines if one.severity in "EF" and "err" in one.values]
    fatal = [one for one in errors if one.message in _FATAL] or errors
    return fatal[-1].values["err"] if fatal else ""


def _stage(lines: Sequence[LogLine], error: str) -> messages.Stage:
    """The part that failed: the one that the log names, or else the one that comes next."""
    named = [_FAILED_MANAGER.search(one.message) for one in lines]
    found = next(filter(None, named), None) or _FAILED_START.search(error)
    if found is not None:
        managers: dict[str, messages.Stage] = {
            "cpu": "cpu",
            "memory": "memory",
            "device": "devices",
        }
        return managers[found[1]]
    if not error.startswith(_RUN):
        return "config"
    has_machine = any(one.message.startswith(kubelet_log.LINE) for one in lines)
    if not has_machine:
        return "discovery"
    is_topology = _TOPOLOGY.search(error) and _GATES not in error
    return "topology" if is_topology else "config"
