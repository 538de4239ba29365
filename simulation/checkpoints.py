"""What a kubelet would say to a checkpoint file at its start, and what it does not notice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu import checkpoint as cpu_checkpoint
from numaproof.reference.kubernetes import checkpoint
from numaproof.simulation.admission import Question, begin

if TYPE_CHECKING:
    from pathlib import Path

STATE_DIR = "/var/lib/kubelet"
"""Where a kubelet keeps its checkpoints unless told otherwise."""


class UnknownFileError(ValueError):
    """The file is no checkpoint that can be judged; the text says what to do."""


class Judgement(msgspec.Struct, frozen=True):
    """The kubelet's refusal, None where it starts, and what else is wrong with the file."""

    refusal: messages.StartRefused | None
    findings: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether there is nothing to mend."""
        return self.refusal is None and not self.findings


def assumed_config(content: bytes) -> messages.KubeletConfiguration:
    """A configuration that fits the file: its policy, with one of its shared CPUs reserved.

    Raises:
        UnknownFileError: the file tells too little.
    """
    found = _content(content)
    policy = found.get("policyName")
    if policy == "none":
        return {}
    shared = _cpus(found.get("defaultCpuSet"))
    if policy != "static" or not shared:
        raise UnknownFileError("the file does not tell its configuration; give --config")
    return {"cpuManagerPolicy": "static", "reservedSystemCPUs": str(min(shared))}


def judge(question: Question, content: bytes, state_dir: Path) -> Judgement:
    """Starts on a copy of the file in `state_dir`, an empty directory.

    Raises:
        UnknownFileError: the file is not the CPU Manager's.
        CannotAnswerError: the reference does not have what the configuration asks for.
    """
    found = _content(content)
    if found and "defaultCpuSet" not in found:
        raise UnknownFileError("not a cpu_manager_state file, the only kind that is judged")
    checkpoint.write(state_dir / cpu_checkpoint.FILE_NAME, content)
    _, start = begin(question, str(state_dir))
    refusal = None
    if isinstance(start, messages.StartRefused):
        message = start.message.replace(str(state_dir), STATE_DIR)
        refusal = messages.StartRefused(start.stage, message)
    return Judgement(refusal, tuple(_overlaps(found.get("entries"))))


def _overlaps(entries: Any) -> list[str]:
    """CPUs of two pods at once, which no kubelet gives and none looks for."""
    if not isinstance(entries, dict):
        return []
    held: dict[str, CPUSet] = {}
    for uid, containers in entries.items():
        if isinstance(containers, dict):
            sets = [_cpus(text) for text in containers.values()]
            held[uid] = CPUSet(cpu for one in sets for cpu in one)
    pods = list(held.items())
    return [
        f"pods {uid} and {other} both hold CPUs {both}"
        for number, (uid, cpus) in enumerate(pods)
        for other, others in pods[number + 1 :]
        if (both := cpus & others)
    ]


def _content(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _cpus(text: Any) -> CPUSet:
    try:
        return CPUSet.parse(text) if isinstance(text, str) else CPUSet()
    except ValueError:
        return CPUSet()
