"""A kubelet's configuration, judged: every refusal of a start, and what is legal and unwise."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.protocol import messages
from numaproof.simulation.admission import Question, begin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.protocol.messages import KubeletConfiguration


class Finding(msgspec.Struct, frozen=True):
    """A refusal or a warning about a field; `mend` says what to do."""

    severity: Literal["error", "warning"]
    field: str
    message: str
    mend: str


def judge(question: Question) -> tuple[Finding, ...]:
    """The findings, errors first in the order in which starts meet them.

    Raises:
        CannotAnswerError: the reference does not have what the configuration asks for.
    """
    return (*_errors(question), *_warnings(question.config))


def _errors(question: Question) -> Iterator[Finding]:
    """Takes out the field that a refusal hangs on, and starts again, until nothing is refused."""
    refusal = _refusal(question)
    while refusal is not None:
        for key in question.config:
            less = {name: value for name, value in question.config.items() if name != key}
            without = msgspec.structs.replace(question, config=less)
            after = _refusal(without)
            if after != refusal:
                yield Finding("error", key, refusal.message, f"change or remove {key}")
                question, refusal = without, after
                break
        else:
            yield Finding("error", "", refusal.message, "no single field is to blame")
            return


def _refusal(question: Question) -> messages.StartRefused | None:
    with tempfile.TemporaryDirectory() as state_dir:
        _, start = begin(question, state_dir)
    return start if isinstance(start, messages.StartRefused) else None


def _warnings(config: KubeletConfiguration) -> Iterator[Finding]:
    static = config.get("cpuManagerPolicy") == "static"
    if config.get("reservedSystemCPUs"):
        for key in ("kubeReserved", "systemReserved"):
            amounts = config.get(key)
            if isinstance(amounts, dict) and "cpu" in amounts:
                message = "its cpu has no effect: reservedSystemCPUs overrides it"
                yield Finding("warning", key, message, "remove its cpu")
    if config.get("reservedMemory") and config.get("memoryManagerPolicy", "None") == "None":
        message = "has no effect without memoryManagerPolicy Static"
        yield Finding("warning", "reservedMemory", message, "remove it, or set the policy")
    if config.get("topologyManagerPolicy", "none") == "none":
        if config.get("topologyManagerScope"):
            message = "has no effect with topologyManagerPolicy none"
            yield Finding("warning", "topologyManagerScope", message, "remove it")
    elif not static and config.get("memoryManagerPolicy") != "Static":
        message = "aligns devices only: neither CPU nor Memory Manager is static"
        yield Finding("warning", "topologyManagerPolicy", message, "set cpuManagerPolicy: static")
