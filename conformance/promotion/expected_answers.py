"""An answer turned into what a case expects: the other way round from `expectations`.

How much is expected follows from the level. Below ``placement`` an implementation picks the CPUs
and nodes itself, so sets become counts; below ``kubelet`` it need not have the kubelet's words
and files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases.loading import applies
from numaproof.conformance.cases.manifests import pod_name
from numaproof.conformance.cases.schema import (
    BlockExpected,
    ContainerExpected,
    DevicesExpected,
    Expected,
    UpdateExpected,
)
from numaproof.conformance.judging.comparison import any_option
from numaproof.conformance.judging.node_expectations import nodes_of
from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.conformance.cases.schema import Memory
    from numaproof.conformance.execution.session import Session
    from numaproof.protocol.messages import Container, Level, MemoryBlock
    from numaproof.protocol.sets import CPUSet

SHARED = "shared"
_CHECKSUMS = frozenset({"checksum", "dataChecksum"})


def accepted_or_refused(
    answer: messages.Answer, readmissions: Mapping[str, messages.Answer]
) -> Expected:
    """Whether a step was accepted, and the documented reason where it was not.

    Args:
        answer: to the step.
        readmissions: the answers to the pods, by uid, that a start admitted again.
    """
    match answer:
        case messages.StartRefused(stage=word) | messages.AdmissionRefused(reason=word):
            return Expected(refused=word)
    refused = {
        pod_name(uid): one.reason
        for uid, one in readmissions.items()
        if isinstance(one, messages.AdmissionRefused)
    }
    return Expected(readmission=refused)


class Expecting:
    """What can be expected of answers at a level.

    Args:
        level: how much counts.
        session: in which the answers were given, with the devices that were reported last.
        shared: the shared pool after the answer; None where it is not known.
    """

    def __init__(self, level: Level, session: Session, shared: CPUSet | None) -> None:
        self._exact = applies("placement", level)
        self._verbatim = applies("kubelet", level)
        self._session = session
        self._shared = shared

    def all_of(self, answer: messages.Answer, begun: Expected) -> Expected:
        """Everything that an answer says and that counts, added to `begun`."""
        return msgspec.structs.replace(begun, **self._fields(answer))

    def _fields(self, answer: messages.Answer) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        match answer:
            case messages.StartRefused() | messages.AdmissionRefused():
                fields = self._message(answer)
            case messages.Started():
                cpus = answer.cpus
                fields = {"all": self._set(cpus.all), "allocatable": self._set(cpus.allocatable)}
                if answer.memory:
                    fields["memory"] = self._memory(answer.memory)
            case messages.Admitted():
                fields = {"containers": self._containers(answer.containers)}
            case messages.State():
                fields = self._state(answer)
            case messages.NodeHints() if self._exact:
                told = codec.to_plain(answer)
                fields = {"hints": {name: one for name, one in told.items() if one is not None}}
            case messages.Reconciled() if self._exact:
                fields = {"updates": tuple(self._update(one) for one in answer.updates)}
            case _:
                fields = self._without_node(answer)
        return fields

    def _without_node(self, answer: messages.Answer) -> dict[str, Any]:
        match answer:
            case messages.Assigned():
                return {"cpus": self._set(answer.cpus)}
            case messages.Merged() if self._exact:
                return {"admit": answer.admit, "hint": codec.to_plain(answer.hint)}
            case messages.Merged():
                return {"admit": answer.admit}
        return {}

    def _update(self, update: messages.CPUUpdate) -> UpdateExpected:
        return UpdateExpected(pod_name(update.uid), update.container, self._runs_on(update.cpus))

    def _message(self, answer: messages.StartRefused | messages.AdmissionRefused) -> dict[str, Any]:
        """The text of a refusal, unless it names any one of several options."""
        told = self._session.normal(answer)
        if not self._verbatim or any_option(told) != told:
            return {}
        return {"message": codec.to_plain(told)["message"]}

    def _set(self, cpus: CPUSet) -> int | str:
        return str(cpus) if self._exact else len(cpus)

    def _runs_on(self, cpus: CPUSet) -> str:
        return SHARED if cpus == self._shared else str(cpus)

    def _containers(self, held: Mapping[str, Container]) -> dict[str, ContainerExpected]:
        return {name: self._container(one) for name, one in held.items()}

    def _container(self, held: Container) -> ContainerExpected:
        config = self._session.config
        aligned = config.get("topologyManagerPolicy", "none") != "none"
        pinned = held.memory or config.get("memoryManagerPolicy") == "Static"
        return ContainerExpected(
            exclusive=self._set(held.exclusive),
            cpus=self._runs_on(held.cpus) if self._exact and held.cpus != held.exclusive else None,
            affinity=codec.to_plain(held.affinity) if self._exact and aligned else None,
            memory=self._memory(held.memory) if pinned else None,
            devices=self._devices(held) or None,
        )

    def _memory(self, blocks: Sequence[MemoryBlock]) -> Memory:
        if self._exact:
            return tuple(_block(one) for one in blocks)
        sums: dict[str, int] = {}
        for one in blocks:
            sums[one.type] = sums.get(one.type, 0) + one.size
        return dict(sums)

    def _devices(self, held: Container) -> dict[str, Any]:
        """How many; or their nodes where the affinity leaves no choice of these."""
        wanted: dict[str, Any] = {}
        for resource, ids in (held.devices or {}).items():
            nodes = nodes_of(resource, self._session.devices)
            on = tuple(nodes.get(one, ()) for one in ids)
            near = self._exact and set(on) == {tuple(held.affinity.numa or ())} and len(on[0]) == 1
            wanted[resource] = DevicesExpected(on) if near else len(ids)
        return wanted

    def _state(self, answer: messages.State) -> dict[str, Any]:
        pods = {pod_name(uid): self._containers(held) for uid, held in answer.pods.items()}
        files = {name: _file(text) for name, text in answer.files.items()}
        return {
            "shared": self._set(answer.shared),
            "pods": pods,
            **({"files": files} if self._verbatim else {}),
        }


def _block(block: MemoryBlock) -> BlockExpected:
    """A block, whose type is left out where it need not be said."""
    said = {"type": block.type} if block.type != "memory" else {}
    return BlockExpected(tuple(block.numa), block.size, **said)


def _file(text: str) -> str | dict[str, Any]:
    """A checkpoint by what it says, without the checksum over that."""
    try:
        content = codec.decode_any(text)
    except codec.ProtocolError:
        return text
    if not isinstance(content, dict):
        return text
    return {key: value for key, value in content.items() if key not in _CHECKSUMS}
