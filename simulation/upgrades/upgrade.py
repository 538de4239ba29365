"""Plays an upgrade of a node: the kubelet of one release, then that of another on its files.

Two ways are played: the pods stay while the kubelet changes, and the node is drained before. A file
that the new kubelet refuses is removed, as its message asks for, to see how the node goes on.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.reference.implementation import Reference
from numaproof.simulation import configuration_check
from numaproof.simulation.admission import CannotAnswerError, Kubelet, Question, answered
from numaproof.simulation.checkpoints import STATE_DIR
from numaproof.simulation.defects import notes
from numaproof.simulation.upgrades import outcomes
from numaproof.simulation.upgrades.outcomes import (
    Fate,
    FileFate,
    Files,
    Held,
    Outcome,
    PodFate,
    Upgrade,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numaproof.protocol.messages import Container
    from numaproof.simulation.configuration_check import ConfigurationFinding, ConfigurationVerdict
    from numaproof.simulation.defects import DefectNote
    from numaproof.simulation.pods import DescribedPod


def answers(found: Upgrade) -> dict[tuple[str, str], object]:
    """The answers by the part of the upgrade and what they are about."""
    by_subject: dict[tuple[str, str], object] = {("today", ""): found.today or True}
    by_subject |= {("today", name): "refused" for name in found.never_here}
    for part, errors in (("today", found.errors_today), ("configuration", found.errors)):
        by_subject |= {(part, one.message): one for one in errors}
    for part, outcome in (("staying", found.staying), ("drained", found.drained)):
        by_subject[part, ""] = outcome.starts
        by_subject |= {(part, one.file): one for one in outcome.files}
        by_subject |= {(part, one.pod): one for one in outcome.pods}
        by_subject |= {("today", one.pod): "admitted" for one in outcome.pods}
    return by_subject


def telling(notes: tuple[DefectNote, ...]) -> tuple[DefectNote, ...]:
    """The notes without those about what only one side has, which follows from the others."""
    on_both_sides = (one for one in notes if None not in (one.kubelet, one.documented))
    return tuple(on_both_sides) or notes


class UpgradeQuestion(msgspec.Struct, frozen=True):
    """A node before an upgrade.

    `files` are the checkpoints of its kubelet, None to have them written by the pods.
    """

    machine: MachineInfo
    config: messages.KubeletConfiguration
    before: str
    after: str
    devices: tuple[messages.DeviceResource, ...] = ()
    files: Files | None = None


def upgrade(
    question: UpgradeQuestion,
    pods: Sequence[DescribedPod],
    scratch: Path,
    kubelet: Kubelet | None = None,
) -> Upgrade:
    """Upgrades a node with pods, in the order of their admission.

    Args:
        question: the node.
        pods: those on it; with files given, they have the uids that the files name.
        scratch: an empty directory.
        kubelet: answers as both releases, each start naming its own (default: the reference).

    Raises:
        CannotAnswerError: what the configuration asks for is not supported.
    """
    if kubelet is not None:
        return _play(question, pods, scratch, kubelet)
    places = count()

    def play(without: frozenset[str]) -> Upgrade:
        folder = scratch / f"{next(places)}"
        folder.mkdir()
        return _play(question, pods, folder, Reference(exceptions=without), without)

    found = play(frozenset())
    releases = (question.before, question.after)
    every = notes(releases, answers(found), lambda without: answers(play(without)))
    return msgspec.structs.replace(found, warnings=telling(every))


def _play(
    question: UpgradeQuestion,
    pods: Sequence[DescribedPod],
    scratch: Path,
    kubelet: Kubelet,
    without: frozenset[str] = frozenset(),
) -> Upgrade:
    """Upgrades a node whose kubelets lack these defects."""
    node = _Node(kubelet, question, scratch)
    before, after, config = question.before, question.after, question.config
    old, new = (
        configuration_check.judge(Question(question.machine, config, release, exceptions=without))
        for release in (before, after)
    )
    given = question.files
    known = {pod.manifest["metadata"]["uid"] for pod in pods}
    unknown = [uid for uid in outcomes.holders(given or {}) if uid not in known]
    stay = pods if given is not None else ()
    today = node.start(before, config, given or {}, stay)
    running = today is None
    if not running and old.fixed != config:
        running = node.start(before, old.fixed, given or {}, stay) is None
    held: dict[str, Held] = {}
    left = drained = given or {}
    if running:
        for pod in pods:
            answer = node.admit(pod)
            if isinstance(answer, messages.Admitted):
                held[pod.name] = _in_order(pod, answer.containers)
        written = node.files()
        left = written if given is None else given
        for pod in pods:
            if pod.name in held:
                node.call("remove", messages.RemoveArgs(pod.manifest["metadata"]["uid"]))
        drained = node.files()
    here = [pod for pod in pods if pod.name in held]
    return Upgrade(
        before=before,
        after=after,
        today=today,
        errors_today=_errors(old),
        errors=tuple(one for one in _errors(new) if not _among(_errors(old), one)),
        gates=outcomes.gates_of_interest(before, after, config),
        options=outcomes.options_of_interest(before, after, config),
        unknown=tuple(unknown),
        never_here=tuple(pod.name for pod in pods if running and pod.name not in held),
        staying=_outcome(node, node.restart(new.fixed, left, here), held, staying=here),
        drained=_outcome(node, node.restart(new.fixed, drained, ()), held, drained=here),
    )


def _in_order(pod: DescribedPod, held: Held) -> Held:
    """The containers in the order of the manifest, init containers first."""
    spec = pod.manifest["spec"]
    listed = (*(spec.get("initContainers") or ()), *spec["containers"])
    return {one["name"]: held[one["name"]] for one in listed}


def _errors(verdict: ConfigurationVerdict) -> tuple[ConfigurationFinding, ...]:
    return tuple(one for one in verdict.findings if one.severity == "error")


def _among(errors: Sequence[ConfigurationFinding], error: ConfigurationFinding) -> bool:
    return any((one.path, one.message) == (error.path, error.message) for one in errors)


def _outcome(
    node: _Node,
    restarted: tuple[bool, tuple[FileFate, ...]],
    held: Mapping[str, Held],
    staying: Sequence[DescribedPod] = (),
    drained: Sequence[DescribedPod] = (),
) -> Outcome:
    """How the new kubelet goes on: with pods on the node, or without and then with like ones."""
    starts, fates = restarted
    # The pods lose what a refused file has of them.
    if not starts or (staying and any(one.fate == "refused" for one in fates)):
        return Outcome(starts, fates)
    pods = (
        *(_fate(node, pod, held[pod.name], _same) for pod in staying),
        *(_fate(node, _renewed(pod), held[pod.name], _alike) for pod in drained),
    )
    return Outcome(True, fates, pods)


def _renewed(pod: DescribedPod) -> DescribedPod:
    metadata = pod.manifest["metadata"]
    manifest = {**pod.manifest, "metadata": {**metadata, "uid": f"{metadata['uid']}-again"}}
    return msgspec.structs.replace(pod, manifest=manifest)


def _fate(
    node: _Node, pod: DescribedPod, before: Held, same: Callable[[Container, Container], bool]
) -> PodFate:
    answer = node.admit(pod)
    if isinstance(answer, messages.AdmissionRefused):
        return PodFate(pod.name, "refused", before, refusal=answer)
    after = {name: answer.containers[name] for name in before}
    pairs = [(before[name], after[name]) for name in before]
    fate: Fate = "changes"
    if all(same(*pair) for pair in pairs):
        fate = "stays"
    elif all(_amounts(was) == _amounts(now) for was, now in pairs):
        fate = "moves"
    return PodFate(pod.name, fate, before, after)


def _same(before: Container, after: Container) -> bool:
    """Whether a container keeps what it has of its own."""
    return _alike(before, after) and (before.devices or {}) == (after.devices or {})


def _alike(before: Container, after: Container) -> bool:
    """The same for a container that starts anew: which of equal devices it gets is chance."""
    return (before.exclusive, before.memory) == (after.exclusive, after.memory)


def _amounts(container: Container) -> tuple[object, ...]:
    """How much a container has of its own."""
    memory: dict[str, int] = {}
    for block in container.memory:
        memory[block.type] = memory.get(block.type, 0) + block.size
    devices = {name: len(ids) for name, ids in (container.devices or {}).items() if ids}
    return len(container.exclusive), memory, devices


class _Node:
    """One node: its kubelet, which is one release at a time, and its files."""

    def __init__(self, kubelet: Kubelet, question: UpgradeQuestion, scratch: Path) -> None:
        self._kubelet = kubelet
        self._question = question
        self._scratch = scratch
        self._starts = 0
        self._folder = scratch

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The answer to a call that the running kubelet must have an answer to."""
        return answered(self._kubelet, operation, args)

    def start(
        self,
        release: str,
        config: messages.KubeletConfiguration,
        files: Files,
        pods: Sequence[DescribedPod],
    ) -> messages.StartRefused | None:
        """Starts the kubelet of a release on a copy of the files; why it refuses, if it does.

        A kubelet that panics at its start does not start either.
        """
        self._starts += 1
        self._folder = self._scratch / str(self._starts)
        self._folder.mkdir()
        outcomes.write(self._folder, files)
        args = messages.StartArgs(
            config=config,
            state_dir=str(self._folder),
            kubernetes=release,
            machine=self._question.machine,
            devices=self._question.devices,
            pods=tuple(pod.manifest for pod in pods),
        )
        answer = self._kubelet.call("start", args)
        match answer:
            case messages.StartRefused():
                message = answer.message.replace(str(self._folder), STATE_DIR)
                return messages.StartRefused(answer.stage, message)
            case messages.Fault():
                return messages.StartRefused("config", answer.message)
            case messages.Unsupported():
                raise CannotAnswerError(f"not supported: {answer.what}")
        return None

    def restart(
        self,
        config: messages.KubeletConfiguration,
        files: Files,
        pods: Sequence[DescribedPod],
    ) -> tuple[bool, tuple[FileFate, ...]]:
        """Starts the new kubelet, without the files that it refuses; whether it starts at last."""
        kept = dict(files)
        refused: list[FileFate] = []
        while (refusal := self.start(self._question.after, config, kept, pods)) is not None:
            file = outcomes.BY_STAGE.get(refusal.stage, "")
            if file not in kept:
                return False, tuple(refused)
            del kept[file]
            refused.append(FileFate(file, "refused", refusal.message))
        now = outcomes.read(self._folder)
        # A kubelet never refuses what the Device Manager wrote.
        read = [
            FileFate(name, "read" if now.get(name) == content else "rewritten")
            for name, content in kept.items()
            if name in outcomes.BY_STAGE.values()
        ]
        return True, (*refused, *read)

    def admit(self, pod: DescribedPod) -> messages.Admitted | messages.AdmissionRefused:
        """Offers a pod."""
        answer = self.call("admit", messages.AdmitArgs(pod.manifest))
        assert isinstance(answer, messages.Admitted | messages.AdmissionRefused)
        return answer

    def files(self) -> Files:
        """The checkpoints as they are now, what belongs to pods that have gone reclaimed."""
        self.call("state", messages.NoArgs())
        return outcomes.read(self._folder)
