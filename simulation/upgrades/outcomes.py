"""The answer about an upgrade: what becomes of the node, of its files and of its pods."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.inputs import door
from numaproof.protocol import messages
from numaproof.reference.checkpoints import cpu, devices, files, memory
from numaproof.reference.config.gates import Maturity
from numaproof.reference.deviations.releases import release
from numaproof.simulation.checkpoints import MOST_BYTES
from numaproof.simulation.configuration_check import ConfigurationFinding
from numaproof.simulation.defects import DefectNote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numaproof.protocol.messages import KubeletConfiguration
    from numaproof.reference.config.gates import Gate
    from numaproof.reference.deviations.releases import Release


_OF_MANAGERS = ("CPUManager", "MemoryManager", "PodLevelResource", "TopologyManager")
"""What the names of the resource managers' own gates begin with."""

Kind = Literal["gone", "new", "locked", "unlocked", "default", "maturity"]


class GateChange(msgspec.Struct, frozen=True):
    """A feature gate that is not in both releases as it was.

    `before` and `after` say how it stands, such as ``beta, on``, and are None where the release
    does not know it. `given` is its value in the configuration, None if it has none.
    """

    gate: str
    change: Kind
    before: str | None
    after: str | None
    given: bool | None = None


class OptionChange(msgspec.Struct, frozen=True):
    """A policy option whose maturity differs; None where the release does not know it."""

    field: str
    option: str
    before: Maturity | None
    after: Maturity | None


def gates(before: str, after: str) -> Iterator[GateChange]:
    """Every feature gate that differs, by name."""
    old, new = release(before).gates, release(after).gates
    for name in sorted(old.keys() | new.keys()):
        mine, theirs = old.get(name), new.get(name)
        kind = _kind(mine, theirs)
        if kind:
            yield GateChange(name, kind, _standing(mine), _standing(theirs))


def gates_of_interest(
    before: str, after: str, config: KubeletConfiguration
) -> tuple[GateChange, ...]:
    """The changes of gates that a configuration sets, and of those of the resource managers."""
    given = config.get("featureGates")
    values = given if isinstance(given, dict) else {}
    return tuple(
        msgspec.structs.replace(one, given=values.get(one.gate))
        for one in gates(before, after)
        if one.gate in values or one.gate.startswith(_OF_MANAGERS)
    )


def options(before: str, after: str) -> Iterator[OptionChange]:
    """Every policy option that differs, field by field."""
    old, new = options_of(release(before)), options_of(release(after))
    for field, known in old.items():
        for name in sorted(known.keys() | new[field].keys()):
            mine, theirs = known.get(name), new[field].get(name)
            if mine != theirs:
                yield OptionChange(field, name, mine, theirs)


def options_of_interest(
    before: str, after: str, config: KubeletConfiguration
) -> tuple[OptionChange, ...]:
    """The changes of options that a configuration sets."""
    return tuple(
        one for one in options(before, after) if one.option in (config.get(one.field) or {})
    )


def options_of(one: Release) -> Mapping[str, Mapping[str, Maturity]]:
    """The options of a release by the field that sets them."""
    return {
        "cpuManagerPolicyOptions": one.cpu_options,
        "topologyManagerPolicyOptions": one.topology_options,
    }


def _kind(before: Gate | None, after: Gate | None) -> Kind | None:
    if before is None or after is None:
        return "gone" if after is None else "new"
    if before.locked != after.locked:
        return "locked" if after.locked else "unlocked"
    if before.default != after.default:
        return "default"
    return "maturity" if before.maturity != after.maturity else None


def _standing(gate: Gate | None) -> str | None:
    if gate is None:
        return None
    on = "on" if gate.default else "off"
    return f"{gate.maturity}, locked {on}" if gate.locked else f"{gate.maturity}, {on}"


CPU, MEMORY = cpu.FILE_NAME, memory.FILE_NAME
NAMES = (CPU, MEMORY, devices.FILE_NAME)
"""The checkpoints of the CPU, Memory and Device Managers, below the kubelet's directory."""

BY_STAGE = {"cpu": CPU, "memory": MEMORY}
"""The file that a start has read by the stage at which it is refused."""

Files = dict[str, bytes]


class FileFate(msgspec.Struct, frozen=True):
    """What the new kubelet makes of a file.

    It reads it and leaves it as it is, or `rewritten` in its own form; or it refuses to start with
    it, for the reason in `message`.
    """

    file: str
    fate: Literal["read", "rewritten", "refused"]
    message: str = ""


class NoStateError(ValueError):
    """A directory has no checkpoint of the managers; the message names it."""


def load(folder: Path) -> Files:
    """The checkpoints in a kubelet's directory, or in a copy of it.

    Raises:
        NoStateError: there is none of the CPU Manager and none of the Memory Manager.
        DocumentError: a file cannot be read, or is no file of sane size.
    """
    found = read(folder)
    if not found.keys() & {CPU, MEMORY}:
        raise NoStateError(
            f"{folder}: found neither {CPU} nor {MEMORY}; name a copy of /var/lib/kubelet"
        )
    return found


def read(folder: Path) -> Files:
    """The checkpoints that are in a directory.

    Raises:
        DocumentError: one cannot be read, or is no file of sane size.
    """
    return {
        name: door.read(folder / name, most=MOST_BYTES)
        for name in NAMES
        if os.path.lexists(folder / name)
    }


def write(folder: Path, found: Mapping[str, bytes]) -> None:
    """Puts checkpoints into a directory."""
    for name, content in found.items():
        files.write(folder / name, content)


def holders(found: Mapping[str, bytes]) -> tuple[str, ...]:
    """The uids of the pods that hold something by the files, sorted."""
    uids: set[str] = set()
    for name in (CPU, MEMORY):
        try:
            document = json.loads(found.get(name, b"{}"))
        except (ValueError, RecursionError):
            continue
        entries = document.get("entries") if isinstance(document, dict) else None
        if isinstance(entries, dict):
            uids |= entries.keys()
    return tuple(sorted(uids))


Held = messages.Containers
Fate = Literal["stays", "moves", "changes", "refused"]
"""A pod has what it had, as much elsewhere, something else than it had, or it is refused."""


class PodFate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What becomes of a pod: what its containers held and hold, or why it is refused."""

    pod: str
    fate: Fate
    before: Held
    after: Held | None = None
    refusal: messages.AdmissionRefused | None = None


class Outcome(msgspec.Struct, frozen=True):
    """How the new kubelet goes on.

    Attributes:
        starts: whether it starts in the end: once the configuration is fixed, and without the files
            that it refuses.
        files: what it makes of each file.
        pods: the fates of the pods in the order of their admission; empty if it does not start, or
            for pods that stay, if it starts without a file only.
    """

    starts: bool
    files: tuple[FileFate, ...] = ()
    pods: tuple[PodFate, ...] = ()

    @property
    def refused_files(self) -> tuple[str, ...]:
        """The files that have to go."""
        return tuple(one.file for one in self.files if one.fate == "refused")

    def having(self, fate: Fate) -> tuple[PodFate, ...]:
        """The pods with a fate."""
        return tuple(one for one in self.pods if one.fate == fate)


class Upgrade(msgspec.Struct, frozen=True):
    """What becomes of a node.

    Attributes:
        before, after: the releases.
        today: why the kubelet does not even start before the upgrade; None where it does.
        errors_today: what the old kubelet refuses in the configuration.
        errors: what the new kubelet alone refuses in it. All other fields are about the
            configuration without what either kubelet refuses.
        gates, options: what changes of what the node uses.
        unknown: uids of pods that hold something by the given files and are not among the pods.
        never_here: pods that the old kubelet refuses.
        staying: the outcome if the pods stay on the node.
        drained: the outcome if the node is drained before.
        warnings: what named defects of either kubelet shaped; empty if other programs answered.
    """

    before: str
    after: str
    today: messages.StartRefused | None
    errors_today: tuple[ConfigurationFinding, ...]
    errors: tuple[ConfigurationFinding, ...]
    gates: tuple[GateChange, ...]
    options: tuple[OptionChange, ...]
    unknown: tuple[str, ...]
    never_here: tuple[str, ...]
    staying: Outcome
    drained: Outcome
    warnings: tuple[DefectNote, ...] = ()

    @property
    def attention(self) -> bool:
        """Whether there is anything to do or to know before the upgrade."""
        staying, drained = self.staying, self.drained
        calm = staying.starts and len(staying.having("stays")) == len(staying.pods)
        lost = drained.having("changes") or drained.having("refused")
        return not calm or bool(self.today or self.errors or staying.refused_files or lost)
