"""The CPU Manager's checkpoint file ``cpu_manager_state``: its formats, reading and writing.

Version 1 stores containers' CPUs by container id, version 2 by pod uid and container name. Version
3 adds the CPUs of whole pods. Version 4 stores everything in a separate part, next to the fields of
version 2, and adds baselines: the CPUs that each container was first assigned. The error for a
damaged file depends on the version that the release tries first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.protocol.sets import CPUSet
from numaproof.reference.checkpoints import files
from numaproof.reference.checkpoints.formats import Format, Formats, TwoPartFormat
from numaproof.reference.config.cpulist import CPUListError
from numaproof.reference.config.cpulist import parse as parse_cpus
from numaproof.reference.cpu.state import CPUState
from numaproof.reference.golang import decoding

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME = "cpu_manager_state"


def _check_pod(entry: Mapping[str, str]) -> None:
    try:
        parse_cpus(entry["cpuSet"])
    except CPUListError as error:
        raise CPUListError(f"failed to parse cpuset: {error}") from None


def _dump_pod_entry(entry: Mapping[str, str]) -> str:
    """Formats a pod's CPUs the way Go dumps a set: as a map to empty structures."""
    cpus = " ".join(f"{cpu}:{{}}" for cpu in parse_cpus(entry.get("cpuSet", "")))
    return f"{{CPUSet:(cpuset.CPUSet){{elems:(map[int]struct {{}})map[{cpus}]}}}}"


_BY_ID = decoding.Map(decoding.Text(), "map[string]string", starts_empty=True)
_BY_POD = decoding.Map(
    decoding.Map(decoding.Text(), "map[string]string"),
    "map[string]map[string]string",
    starts_empty=True,
)
_POD_ENTRIES = decoding.Map(
    decoding.Fields(
        "state.podEntryJSON",
        {"cpuSet": decoding.Text()},
        check=_check_pod,
        dump=_dump_pod_entry,
    ),
    "state.PodCPUAssignments",
    starts_empty=True,
)
_BASELINES = decoding.Map(
    decoding.Map(
        decoding.Fields("state.ContainerCPUs", {"baseline": decoding.Text()}),
        "map[string]state.ContainerCPUs",
    ),
    "map[string]map[string]state.ContainerCPUs",
    starts_empty=True,
)
_POLICY: Mapping[str, decoding.Kind] = {
    "policyName": decoding.Text(),
    "defaultCpuSet": decoding.Text(),
}
_WRITTEN_TYPE = "state.CPUManagerCheckpoint"
"""The structure for the checksum in written files, which all releases accept."""


def version_1() -> Format:
    """Returns the format that stores each container's CPUs by container id."""
    return Format(
        f"{_WRITTEN_TYPE}V1",
        {**_POLICY, "entries": _BY_ID},
        (_WRITTEN_TYPE,),
    )


def version_2(structure: str, *more: str) -> Format:
    """Returns the format that stores each container's CPUs by pod uid and container name.

    `structure` is the type that the file is read into; the checksums of `more` types are also
    accepted.
    """
    return Format(
        structure,
        {**_POLICY, "entries": _BY_POD},
        (_WRITTEN_TYPE, *more),
    )


def version_3(structure: str, *more: str) -> Format:
    """Returns the format that adds the CPUs of whole pods; for the arguments, see `version_2`."""
    return Format(
        structure,
        {**_POLICY, "entries": _BY_POD, "podEntries": _POD_ENTRIES},
        (_WRITTEN_TYPE, *more),
        takes_no_checksum=False,
    )


def version_4() -> TwoPartFormat:
    """Returns the format with a part for earlier releases and a part that contains everything."""
    return TwoPartFormat(
        _WRITTEN_TYPE,
        "v4",
        "cpu manager",
        version_2(f"{_WRITTEN_TYPE}V2"),
        f"{_WRITTEN_TYPE}Data",
        {**_POLICY, "entries": _BY_POD, "podEntries": _POD_ENTRIES, "baselines": _BASELINES},
    )


@dataclass(frozen=True, slots=True)
class CPUFormats(Formats):
    """The formats of the CPU Manager's file in a release.

    Attributes:
        migration_error: the beginning of the error if a version 1 file cannot be migrated.
        shared_pool: the name of the shared pool in errors.
        keeps_baselines: whether the file stores the CPUs that each container was first assigned.
    """

    migration_error: str = ""
    shared_pool: str = "default cpu set"
    keeps_baselines: bool = False

    @property
    def empty(self) -> CPUState:
        """The state if there is no file."""
        return CPUState(baselines={} if self.keeps_baselines else None)


def restore(
    content: bytes, policy: str, running: Mapping[str, tuple[str, str]], formats: CPUFormats
) -> CPUState:
    """Restores the state from a checkpoint file for the configured policy.

    `running` maps container ids to pod uids and container names; only version 1 needs it.

    Raises:
        CheckpointError: the file is damaged or was written under another policy.

    Requirements: CPU-CHECKPOINT-007, CPU-CHECKPOINT-013, CPU-CHECKPOINT-014, CPU-CHECKPOINT-015,
    CPU-CHECKPOINT-022.
    """
    found_as, found = formats.read(content)
    entries = found["entries"] or {}
    if found_as.fields["entries"] is _BY_ID:
        entries = _by_pod(entries, running, formats)
    if found["policyName"] != policy:
        raise files.CheckpointError(
            f'configured policy "{policy}" differs from state checkpoint policy '
            f'"{found["policyName"]}"'
        )
    shared = _cpus(found["defaultCpuSet"], f"could not parse {formats.shared_pool} {{0}}: {{1}}")
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
    pods = found["podEntries"] or {}
    return CPUState(
        shared,
        exclusive,
        {uid: parse_cpus(entry["cpuSet"]).mask for uid, entry in pods.items()},
        _baselines(found, exclusive) if formats.keeps_baselines else None,
    )


def _baselines(
    content: Mapping[str, Any], exclusive: Mapping[str, Mapping[str, int]]
) -> Mapping[str, Mapping[str, int]]:
    """Returns the CPUs that containers were first assigned; if unknown, their current CPUs."""
    baselines: Mapping[str, Any] = content.get("baselines") or {}
    if not baselines:
        return exclusive
    return {
        uid: {
            name: _cpus(
                entry["baseline"],
                f'could not parse Baseline cpuset {{0}} for container "{name}" in pod "{uid}": '
                "{1}",
            )
            for name, entry in (containers or {}).items()
        }
        for uid, containers in baselines.items()
    }


def _by_pod(
    entries: Mapping[str, str], running: Mapping[str, tuple[str, str]], formats: CPUFormats
) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for container, cpus in entries.items():
        if container not in running:
            raise files.CheckpointError(
                f"{formats.migration_error}: containerID '{container}' not found in initial "
                "containers list"
            )
        uid, name = running[container]
        found.setdefault(uid, {})[name] = cpus
    return found


def dump(state: CPUState, policy: str, formats: CPUFormats) -> bytes:
    """Encodes the state, byte for byte as the kubelet writes it.

    Requirements: CPU-CHECKPOINT-001, CPU-CHECKPOINT-003, CPU-CHECKPOINT-019, CPU-CHECKPOINT-025,
    NODE-PODLEVEL-015.
    """
    return formats.write_format.write(
        {
            "policyName": policy,
            "defaultCpuSet": _text(state.shared),
            "entries": {
                uid: {name: _text(cpus) for name, cpus in sorted(containers.items())}
                for uid, containers in sorted(state.exclusive.items())
            },
            "podEntries": {
                uid: {"cpuSet": _text(cpus)} if cpus else {}
                for uid, cpus in sorted(state.pods.items())
            },
            "baselines": {
                uid: {name: {"baseline": _text(cpus)} for name, cpus in sorted(containers.items())}
                for uid, containers in sorted((state.baselines or {}).items())
            },
        }
    )


def _text(cpus: int) -> str:
    return str(CPUSet.from_mask(cpus))


def _cpus(text: str, problem: str) -> int:
    try:
        return parse_cpus(text).mask
    except CPUListError as error:
        raise files.CheckpointError(problem.format(f'"{text}"', error)) from None
