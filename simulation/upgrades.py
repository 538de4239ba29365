"""Simulates upgrading a node: one release's kubelet runs, then another's on the same files.

Both ways are simulated: pods stay on the node during the upgrade, or the node is drained first. If
the new kubelet refuses a file, the file is removed, as the error message advises.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Literal

import msgspec

from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.reference.config.gates import Gate, Maturity
from numaproof.reference.deviations.releases import Release, release
from numaproof.reference.implementation import Reference
from numaproof.simulation import configuration_check
from numaproof.simulation.admission import CannotAnswerError, Kubelet, Question, require_answer
from numaproof.simulation.configuration_check import ConfigurationFinding, ConfigurationVerdict
from numaproof.simulation.defects import DefectNote, notes
from numaproof.simulation.state_files import (
    BY_STAGE,
    STATE_DIR,
    Files,
    absent_files,
    for_reference,
    holders,
    read_files,
    write_files,
)
from numaproof.simulation.unknown_devices import have_devices, unknown_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.protocol.messages import Container, KubeletConfiguration
    from numaproof.simulation.pods import DescribedPod

    Pods = Sequence[DescribedPod]


_OF_MANAGERS = ("CPUManager", "MemoryManager", "PodLevelResource", "TopologyManager")
"""Prefixes of the resource managers' own feature gates."""

Kind = Literal["gone", "new", "locked", "unlocked", "default", "maturity"]


class GateChange(msgspec.Struct, frozen=True):
    """A feature gate that differs between two releases.

    `before` and `after` describe its state, such as ``beta, on``, and are None if the release does
    not have the gate. `configured_value` is its value in the configuration, if any.
    """

    gate: str
    change: Kind
    before: str | None
    after: str | None
    configured_value: bool | None = None


class OptionChange(msgspec.Struct, frozen=True):
    """A policy option whose maturity changes; it is None if a release does not have the option."""

    field: str
    option: str
    before: Maturity | None
    after: Maturity | None


def gates(before: str, after: str) -> Iterator[GateChange]:
    """Yields every feature gate that differs, sorted by name."""
    old, new = release(before).gates, release(after).gates
    for name in sorted(old.keys() | new.keys()):
        mine, theirs = old.get(name), new.get(name)
        kind = _kind(mine, theirs)
        if kind:
            yield GateChange(name, kind, _standing(mine), _standing(theirs))


def gates_of_interest(
    before: str, after: str, config: KubeletConfiguration
) -> tuple[GateChange, ...]:
    """Returns the changes to gates that the configuration sets or that belong to the managers."""
    given = config.get("featureGates")
    values = given if isinstance(given, dict) else {}
    return tuple(
        msgspec.structs.replace(one, configured_value=values.get(one.gate))
        for one in gates(before, after)
        if one.gate in values or one.gate.startswith(_OF_MANAGERS)
    )


def options(before: str, after: str) -> Iterator[OptionChange]:
    """Yields every policy option that differs, field by field."""
    old, new = options_of(release(before)), options_of(release(after))
    for field, known in old.items():
        for name in sorted(known.keys() | new[field].keys()):
            mine, theirs = known.get(name), new[field].get(name)
            if mine != theirs:
                yield OptionChange(field, name, mine, theirs)


def options_of_interest(
    before: str, after: str, config: KubeletConfiguration
) -> tuple[OptionChange, ...]:
    """Returns the changes to options that the configuration sets."""
    return tuple(
        one for one in options(before, after) if one.option in (config.get(one.field) or {})
    )


def options_of(kubelet_release: Release) -> Mapping[str, Mapping[str, Maturity]]:
    """Returns the options of a release by the field that sets them."""
    return {
        "cpuManagerPolicyOptions": kubelet_release.cpu_options,
        "topologyManagerPolicyOptions": kubelet_release.topology_options,
    }


def _kind(before: Gate | None, after: Gate | None) -> Kind | None:
    if before is None or after is None:
        return "gone" if after is None else "new"
    if before.is_locked != after.is_locked:
        return "locked" if after.is_locked else "unlocked"
    if before.default != after.default:
        return "default"
    return "maturity" if before.maturity != after.maturity else None


def _standing(gate: Gate | None) -> str | None:
    if gate is None:
        return None
    on = "on" if gate.default else "off"
    return f"{gate.maturity}, locked {on}" if gate.is_locked else f"{gate.maturity}, {on}"


class FileOutcome(msgspec.Struct, frozen=True):
    """What the new kubelet does with a file.

    It reads the file unchanged, rewrites it in its own format (`rewritten`), or refuses to start
    because of it (`message` gives the reason).
    """

    file: str
    effect: Literal["read", "rewritten", "refused"]
    message: str = ""


Held = messages.Containers
Effect = Literal["stays", "moves", "changes", "refused"]
"""A pod keeps its resources, gets equal amounts elsewhere, gets other amounts, or is refused."""


class PodOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome for a pod: its containers before and after, or the refusal."""

    pod: str
    effect: Effect
    before: Held
    after: Held | None = None
    refusal: messages.AdmissionRefused | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of an upgrade under the new kubelet.

    Attributes:
        starts: whether the kubelet starts in the end, with a fixed configuration and without the
            files that it refuses.
        files: the outcome for each file.
        pods: the outcomes for the pods in the order of their admission. Empty if the kubelet does
            not start, or if pods stay and it starts only without a file.
    """

    starts: bool
    files: tuple[FileOutcome, ...] = ()
    pods: tuple[PodOutcome, ...] = ()

    @property
    def refused_files(self) -> tuple[str, ...]:
        """The files to delete."""
        return tuple(one.file for one in self.files if one.effect == "refused")

    def having(self, effect: Effect) -> tuple[PodOutcome, ...]:
        """Returns the pods with this outcome."""
        return tuple(one for one in self.pods if one.effect == effect)


class Upgrade(msgspec.Struct, frozen=True):
    """The result of a simulated upgrade.

    Attributes:
        before, after: the releases.
        today: why the kubelet does not start even before the upgrade; None if it does.
        errors_today: the errors that the old kubelet finds in the configuration.
        errors: the errors that only the new kubelet finds. All other fields assume a configuration
            without the parts that either kubelet refuses.
        product_settings: what the configuration lacks but its product sets by default. All other
            fields assume that it does.
        gates, options: changes that affect the node.
        unknown: uids of pods that hold resources according to the given files but are not among
            the pods.
        absent: files that are not among the given ones although their manager records pods in
            them. What pods hold according to them is assumed, the oldest pod first.
        unknown_devices: the number of pods that request devices which are not described, by
            resource.
        never_here: pods that the old kubelet refuses.
        staying: the outcome if the pods stay on the node.
        after_drain: the outcome if the node is drained first.
        warnings: the effects of named defects of either kubelet; empty if a program answered.
        notes: what was read as the configuration, what was left out, and what was assumed about
            the machine.
    """

    before: str
    after: str
    today: messages.StartRefused | None
    errors_today: tuple[ConfigurationFinding, ...]
    errors: tuple[ConfigurationFinding, ...]
    product_settings: tuple[ConfigurationFinding, ...]
    gates: tuple[GateChange, ...]
    options: tuple[OptionChange, ...]
    unknown: tuple[str, ...]
    absent: tuple[str, ...]
    unknown_devices: dict[str, int]
    never_here: tuple[str, ...]
    staying: Outcome
    after_drain: Outcome
    warnings: tuple[DefectNote, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def attention(self) -> bool:
        """Whether the upgrade needs attention."""
        staying, drained = self.staying, self.after_drain
        calm = staying.starts and len(staying.having("stays")) == len(staying.pods)
        lost = drained.having("changes") or drained.having("refused")
        wrong = self.today or self.errors or staying.refused_files or lost
        unsure = self.product_settings or self.unknown or self.absent or self.unknown_devices
        return not calm or bool(wrong or unsure)


def answers(result: Upgrade) -> dict[tuple[str, str], object]:
    """Returns the answers by part of the upgrade and subject."""
    by_subject: dict[tuple[str, str], object] = {("today", ""): result.today or True}
    by_subject |= {("today", name): "refused" for name in result.never_here}
    for part, errors in (("today", result.errors_today), ("configuration", result.errors)):
        by_subject |= {(part, one.message): one for one in errors}
    for part, outcome in (("staying", result.staying), ("drained", result.after_drain)):
        by_subject[part, ""] = outcome.starts
        by_subject |= {(part, one.file): one for one in outcome.files}
        by_subject |= {(part, one.pod): one for one in outcome.pods}
        by_subject |= {("today", one.pod): "admitted" for one in outcome.pods}
    return by_subject


def two_sided_notes(notes: tuple[DefectNote, ...]) -> tuple[DefectNote, ...]:
    """Drops notes on answers that only one side has, because they follow from the other notes."""
    on_both_sides = (one for one in notes if None not in (one.kubelet, one.documented_answer))
    return tuple(on_both_sides) or notes


class UpgradeQuestion(msgspec.Struct, frozen=True):
    """A node before an upgrade.

    `files` are its kubelet's checkpoints; None if admitting the pods should write them. `flags` are
    in the form ``--name=value``; `config` also has the fields that they set. `adds_defaults` is the
    product that may add settings to the configuration; empty if none does.
    """

    machine: MachineInfo
    config: messages.KubeletConfiguration
    before: str
    after: str
    devices: tuple[messages.DeviceResource, ...] = ()
    files: Files | None = None
    flags: tuple[str, ...] = ()
    adds_defaults: str = ""


def upgrade(
    question: UpgradeQuestion, pods: Pods, scratch: Path, kubelet: Kubelet | None = None
) -> Upgrade:
    """Simulates an upgrade of a node with pods.

    Args:
        question: the node.
        pods: its pods in the order of admission; with `files`, they have the uids in the files.
        scratch: an empty directory.
        kubelet: answers for both releases; each start names its release (default: the reference).

    Raises:
        CannotAnswerError: the configuration is not supported.
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
    return msgspec.structs.replace(found, warnings=two_sided_notes(every))


def _play(
    question: UpgradeQuestion,
    pods: Pods,
    scratch: Path,
    kubelet: Kubelet,
    without: frozenset[str] = frozenset(),
) -> Upgrade:
    """Simulates an upgrade with kubelets that do not have these defects."""
    node = _Node(kubelet, question, scratch)
    flag_names = {(one.partition("=")[0],) for one in question.flags}
    before, after, config = question.before, question.after, question.config
    old, new = (
        configuration_check.judge(
            Question(question.machine, config, release, exceptions=without, flags=question.flags),
            question.adds_defaults,
        )
        for release in (before, after)
    )
    given = question.files
    if given is not None and isinstance(kubelet, Reference):
        given = for_reference(given, before)
    known = {pod.manifest["metadata"]["uid"] for pod in pods}
    unknown = [uid for uid in holders(question.files or {}) if uid not in known]
    stay = pods if given is not None else ()
    refused_flag = next((one for one in old.findings if one.path[0:1] in flag_names), None)
    lacking = tuple(dict.fromkeys(one for one in (*old.findings, *new.findings) if one.set_by))
    today = node.start(before, config, given or {}, stay)
    if today and lacking and not _errors(old):
        today = node.start(before, old.fixed_config, given or {}, stay)
    if refused_flag:
        today = messages.StartRefused("config", refused_flag.message)
    running = today is None
    if not running and (refused_flag or old.fixed_config != config):
        running = node.start(before, old.fixed_config, given or {}, stay) is None
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
    before_too = {(one.path, one.message) for one in _errors(old)}
    return Upgrade(
        before=before,
        after=after,
        today=today,
        errors_today=_errors(old),
        errors=tuple(one for one in _errors(new) if (one.path, one.message) not in before_too),
        product_settings=lacking,
        gates=gates_of_interest(before, after, config),
        options=options_of_interest(before, after, config),
        unknown=tuple(unknown),
        absent=()
        if question.files is None
        else absent_files(question.files, config, has_devices=have_devices(pods, question.devices)),
        unknown_devices=unknown_devices(pods, question.devices),
        never_here=tuple(pod.name for pod in pods if running and pod.name not in held),
        staying=_outcome(node, node.restart(new.fixed_config, left, here), held, staying=here),
        after_drain=_outcome(
            node, node.restart(new.fixed_config, drained, ()), held, drained_pods=here
        ),
    )


def _in_order(pod: DescribedPod, containers: Held) -> Held:
    spec = pod.manifest["spec"]
    listed = (*(spec.get("initContainers") or ()), *spec["containers"])
    return {one["name"]: containers[one["name"]] for one in listed}


def _errors(verdict: ConfigurationVerdict) -> tuple[ConfigurationFinding, ...]:
    return tuple(one for one in verdict.findings if one.severity == "error")


def _outcome(
    node: _Node,
    restart: tuple[bool, tuple[FileOutcome, ...]],
    held_by_pod: Mapping[str, Held],
    staying: Pods = (),
    drained_pods: Pods = (),
) -> Outcome:
    """Returns the outcome for pods that stay on the node, or are drained and recreated."""
    starts, fates = restart
    # The pods lose the resources recorded in a refused file.
    if not starts or (staying and any(one.effect == "refused" for one in fates)):
        return Outcome(starts, fates)
    pods = (
        *(_pod_outcome(node, pod, held_by_pod[pod.name], _same) for pod in staying),
        *(
            _pod_outcome(node, _with_new_uid(pod), held_by_pod[pod.name], _alike)
            for pod in drained_pods
        ),
    )
    return Outcome(True, fates, pods)


def _with_new_uid(pod: DescribedPod) -> DescribedPod:
    metadata = pod.manifest["metadata"]
    manifest = {**pod.manifest, "metadata": {**metadata, "uid": f"{metadata['uid']}-again"}}
    return msgspec.structs.replace(pod, manifest=manifest)


def _pod_outcome(
    node: _Node, pod: DescribedPod, before: Held, same: Callable[[Container, Container], bool]
) -> PodOutcome:
    answer = node.admit(pod)
    if isinstance(answer, messages.AdmissionRefused):
        return PodOutcome(pod.name, "refused", before, refusal=answer)
    after = {name: answer.containers[name] for name in before}
    pairs = [(before[name], after[name]) for name in before]
    fate: Effect = "changes"
    if all(same(*pair) for pair in pairs):
        fate = "stays"
    elif all(_amounts(was) == _amounts(now) for was, now in pairs):
        fate = "moves"
    return PodOutcome(pod.name, fate, before, after)


def _same(before: Container, after: Container) -> bool:
    """Whether a container keeps its own resources."""
    return _alike(before, after) and (before.devices or {}) == (after.devices or {})


def _alike(before: Container, after: Container) -> bool:
    """Whether a recreated container gets the same resources; equal devices are interchangeable."""
    return (before.exclusive, before.memory) == (after.exclusive, after.memory)


def _amounts(container: Container) -> tuple[object, ...]:
    memory: dict[str, int] = {}
    for block in container.memory:
        memory[block.type] = memory.get(block.type, 0) + block.size
    devices = {name: len(ids) for name, ids in (container.devices or {}).items() if ids}
    return len(container.exclusive), memory, devices


class _Node:
    """A node: its kubelet, running one release at a time, and its files."""

    def __init__(self, kubelet: Kubelet, question: UpgradeQuestion, scratch: Path) -> None:
        self._kubelet = kubelet
        self._question = question
        self._scratch = scratch
        self._starts = 0
        self._folder = scratch

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Sends a request that the running kubelet must be able to answer."""
        return require_answer(self._kubelet, operation, args)

    def start(
        self, release: str, config: messages.KubeletConfiguration, files: Files, pods: Pods
    ) -> messages.StartRefused | None:
        """Starts the kubelet of a release on a copy of the files; returns its refusal, if any.

        A panic also counts as a refusal.
        """
        self._starts += 1
        self._folder = self._scratch / str(self._starts)
        self._folder.mkdir()
        write_files(self._folder, files)
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
        self, config: messages.KubeletConfiguration, files: Files, pods: Pods
    ) -> tuple[bool, tuple[FileOutcome, ...]]:
        """Starts the new kubelet without the files it refuses; returns whether it starts."""
        kept = dict(files)
        refused: list[FileOutcome] = []
        while (refusal := self.start(self._question.after, config, kept, pods)) is not None:
            file = BY_STAGE.get(refusal.stage, "")
            if file not in kept:
                return False, tuple(refused)
            del kept[file]
            refused.append(FileOutcome(file, "refused", refusal.message))
        now = read_files(self._folder)
        # A kubelet never refuses the Device Manager's file.
        read = [
            FileOutcome(name, "read" if now.get(name) == content else "rewritten")
            for name, content in kept.items()
            if name in BY_STAGE.values()
        ]
        return True, (*refused, *read)

    def admit(self, pod: DescribedPod) -> messages.Admitted | messages.AdmissionRefused:
        answer = self.call("admit", messages.AdmitArgs(pod.manifest))
        assert isinstance(answer, messages.Admitted | messages.AdmissionRefused)
        return answer

    def files(self) -> Files:
        """Returns the current checkpoints, excluding the resources of removed pods."""
        self.call("state", messages.NoArgs())
        return read_files(self._folder)
