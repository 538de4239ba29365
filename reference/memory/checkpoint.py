"""The Memory Manager's checkpoint file ``memory_manager_state``, as the policy None keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.reference.kubernetes import checkpoint, gojson
from numaproof.reference.kubernetes.gosyntax import GoJSONError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.kubernetes.releases import Release

FILE_NAME = "memory_manager_state"

_FIELDS: Mapping[str, gojson.Kind] = {
    "policyName": gojson.Text(),
    "machineState": gojson.Keyed(gojson.Anything(), "state.NUMANodeMap"),
    "entries": gojson.Keyed(gojson.Anything(), "state.ContainerMemoryAssignments"),
    "checksum": gojson.Unsigned("checksum.Checksum"),
}


class StaticStateError(Exception):
    """The file holds what only the policy Static keeps, which the reference cannot read."""


def restore(content: bytes, policy: str, release: Release) -> None:
    """Checks the file that an earlier start left behind; the policy None takes nothing from it.

    Raises:
        checkpoint.CheckpointError: the file is damaged, or another policy's.
        StaticStateError: the file holds memory of nodes or containers.
    """
    try:
        found: dict[str, Any] = gojson.decode(
            content, gojson.Fields(release.memory_checkpoint_type, _FIELDS)
        )
    except GoJSONError as error:
        raise checkpoint.CheckpointError(str(error)) from None
    if found["machineState"] or found["entries"]:
        raise StaticStateError("a state file of the Memory Manager policy Static")
    trusted = release.memory_takes_no_checksum and not found["checksum"]
    if not trusted and found["checksum"] != _checksum(found["policyName"]):
        raise checkpoint.CorruptCheckpointError
    if found["policyName"] != policy:
        raise checkpoint.CheckpointError(
            f'[memorymanager] configured policy "{policy}" differs from state checkpoint policy '
            f'"{found["policyName"]}"'
        )


def dump(policy: str) -> bytes:
    """The file of a policy that keeps nothing, byte for byte as the kubelet writes it."""
    return (
        f'{{"policyName":{checkpoint.quoted(policy)},"machineState":{{}},'
        f'"checksum":{_checksum(policy)}}}'
    ).encode()


def _checksum(policy: str) -> int:
    return checkpoint.checksum(
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){policy} "
        "MachineState:(state.NUMANodeMap)map[] "
        "Entries:(state.ContainerMemoryAssignments)map[] Checksum:(checksum.Checksum)0}"
    )
