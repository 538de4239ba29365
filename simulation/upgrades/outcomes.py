"""The answer about an upgrade: what becomes of the node, of its files and of its pods."""

from __future__ import annotations

from typing import Literal

import msgspec

from numaproof.protocol import messages
from numaproof.simulation.configuration_check import ConfigurationFinding
from numaproof.simulation.defects import DefectNote
from numaproof.simulation.upgrades.changes import GateChange, OptionChange
from numaproof.simulation.upgrades.state_files import FileFate

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
