"""The CPU Manager's checkpoint file ``cpu_manager_state``: its formats, read and written.

Version 1 has the CPUs of each container by container id, version 2 by pod uid and container name;
version 3 adds the CPUs of pods as a whole. Releases differ in the version that they try first,
which shows in the error for a damaged file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.golang import decoding
from numaproof.reference.golang.syntax import GoJSONError
from numaproof.reference.kubelet.checkpoints import files
from numaproof.reference.kubelet.cpulist import CPUListError
from numaproof.reference.kubelet.cpulist import parse as parse_cpus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.departures.releases import Release

FILE_NAME = "cpu_manager_state"

_NAMED = decoding.Keyed(
    decoding.Keyed(decoding.Text(), "map[string]string"), "map[string]map[string]string", made=True
)
_ENTRIES = {
    "V1": decoding.Keyed(decoding.Text(), "map[string]string", made=True),
    "": _NAMED,
    "V3": _NAMED,
}
_POD_ENTRIES = decoding.Keyed(
    decoding.Fields("state.podEntryJSON", {"cpuSet": decoding.Text()}),
    "state.PodCPUAssignments",
    made=True,
)
_WRITTEN_TYPE = "state.CPUManagerCheckpoint"


def restore(
    content: bytes, policy: str, running: Mapping[str, tuple[str, str]], release: Release
) -> CPUState:
    """The state that a checkpoint file holds, for the configured policy.

    `running` are pod uid and container name by container id, which version 1 needs.

    Raises:
        CheckpointError: the file is damaged, or of another policy.

    Requirements: CPU-CHECKPOINT-007, CPU-CHECKPOINT-013, CPU-CHECKPOINT-014, CPU-CHECKPOINT-015.
    """
    version, found = first_readable(content, release)
    entries = found["entries"] or {}
    if version == "V1":
        entries = _by_pod(entries, running, release)
    if found["policyName"] != policy:
        raise files.CheckpointError(
            f'configured policy "{policy}" differs from state checkpoint policy '
            f'"{found["policyName"]}"'
        )
    shared = _cpus(found["defaultCpuSet"], "could not parse default cpu set {0}: {1}")
    exclusive = {
        uid: {
            name: _cpus(
                text,
                f'could not parse cpuset {{0}} for container "{name}" in pod "{uid}": {{1}}',
            )
            for name, text in (containers or {}).items()
        }
        for uid, containers in entries.items()
    }
    return CPUState(
        shared,
        {uid: containers for uid, containers in exclusive.items() if containers},
        _pods(content) if release.pod_entries else {},
    )


def _by_pod(
    entries: Mapping[str, str], running: Mapping[str, tuple[str, str]], release: Release
) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for container, cpus in entries.items():
        if container not in running:
            raise files.CheckpointError(
                f"{release.migration_error}: containerID '{container}' not found in initial "
                "containers list"
            )
        uid, name = running[container]
        found.setdefault(uid, {})[name] = cpus
    return found


def _pods(content: bytes) -> dict[str, int]:
    """The CPUs of pods as a whole, whichever version the rest of the file is read as."""
    try:
        found = decoding.decode(
            content,
            decoding.Fields("state.CPUManagerCheckpoint", {"podEntries": _POD_ENTRIES}),
        )
        entries = found["podEntries"] or {}
        return {uid: parse_cpus(entry["cpuSet"]).mask for uid, entry in entries.items()}
    except (GoJSONError, CPUListError):
        return {}


def dump(state: CPUState, policy: str, *, with_pods: bool = False) -> bytes:
    """The file that holds the state, byte for byte as the kubelet writes it.

    `with_pods` writes the version that has the CPUs of pods as a whole.

    Requirements: CPU-CHECKPOINT-001, CPU-CHECKPOINT-003, CPU-CHECKPOINT-019, NODE-PODLEVEL-015.
    """
    entries = {
        uid: {name: str(CPUSet.from_mask(cpus)) for name, cpus in sorted(containers.items())}
        for uid, containers in sorted(state.exclusive.items())
    }
    pods = state.pods if with_pods else {}
    document = {
        "policyName": policy,
        "defaultCpuSet": str(CPUSet.from_mask(state.shared)),
        "entries": entries,
        "podEntries": {
            uid: {"cpuSet": str(CPUSet.from_mask(cpus))} for uid, cpus in sorted(pods.items())
        },
    }
    checksum = _checksum("V3" if with_pods else "", document)
    for name in ("entries", "podEntries"):
        if not document[name]:
            del document[name]
    return files.encode({**document, "checksum": checksum})


def first_readable(content: bytes, release: Release) -> tuple[str, dict[str, Any]]:
    """The first format of the release that the content is in, and what it holds in that.

    Raises:
        CheckpointError: it is in none of them; the problem is that with the last.

    Requirements: CPU-CHECKPOINT-008, CPU-CHECKPOINT-009, CPU-CHECKPOINT-019.
    """
    problem: Exception = files.CorruptCheckpointError()
    for version in release.checkpoint_attempts:
        try:
            return version, read_as(version, content, release)
        except (GoJSONError, files.CheckpointError) as error:
            problem = error
    raise files.CheckpointError(str(problem))


def read_as(version: str, content: bytes, release: Release) -> dict[str, Any]:
    """What the content holds in one format, its checksum checked.

    Raises:
        GoJSONError: it is not in that format.
        CheckpointError: the checksum is another.

    Requirements: CPU-CHECKPOINT-005, CPU-CHECKPOINT-006, CPU-CHECKPOINT-010, CPU-CHECKPOINT-011.
    """
    found: dict[str, Any] = decoding.decode(
        content,
        decoding.Fields(
            f"state.CPUManagerCheckpoint{version}",
            {
                "policyName": decoding.Text(),
                "defaultCpuSet": decoding.Text(),
                "entries": _ENTRIES[version],
                **({"podEntries": _POD_ENTRIES} if version == "V3" else {}),
                "checksum": decoding.Unsigned("checksum.Checksum"),
            },
        ),
    )
    # A file from before there were checksums has none, and is trusted.
    if not found["checksum"] and version != "V3":
        return found
    structures = {_WRITTEN_TYPE}
    if not version and not release.pod_entries:
        structures.add(release.cpu_checkpoint_type)
    try:
        checksums = {_checksum(version, found, structure) for structure in structures}
    except CPUListError as error:
        raise files.CheckpointError(str(error)) from None
    if found["checksum"] not in checksums:
        raise files.CorruptCheckpointError
    return found


def _checksum(version: str, found: Mapping[str, Any], structure: str = _WRITTEN_TYPE) -> int:
    pods = ""
    if version == "V3":
        entries = {uid: _dumped(entry) for uid, entry in (found["podEntries"] or {}).items()}
        pods = f"PodEntries:({_POD_ENTRIES.go}){_map(entries)} "
    return files.checksum(
        f"(*{structure}){{PolicyName:(string){found['policyName']} "
        f"DefaultCPUSet:(string){found['defaultCpuSet']} "
        f"Entries:({_ENTRIES[version].go}){_map(found['entries'])} "
        f"{pods}Checksum:(checksum.Checksum)0}}"
    )


def _dumped(entry: Mapping[str, str]) -> str:
    """The CPUs of a pod as Go's dump shows a set: a map to empty structures."""
    cpus = " ".join(f"{cpu}:{{}}" for cpu in parse_cpus(entry["cpuSet"]))
    return f"{{CPUSet:(cpuset.CPUSet){{elems:(map[int]struct {{}})map[{cpus}]}}}}"


def _map(entries: Mapping[str, Any] | None) -> str:
    if entries is None:
        return "<nil>"
    parts = (
        f"{key}:{value if isinstance(value, str) else _map(value)}"
        for key, value in sorted(entries.items())
    )
    return f"map[{' '.join(parts)}]"


def _cpus(text: str, problem: str) -> int:
    try:
        return parse_cpus(text).mask
    except CPUListError as error:
        raise files.CheckpointError(problem.format(f'"{text}"', error)) from None
