"""The oracle: makes the same calls to the reference and compares the answers.

The protocol page describes the levels. Where the kubelet itself is nondeterministic, the oracle
either steers the reference towards the implementation's choice or compares only what doesn't depend
on the choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging import machine_comparison
from numaproof.conformance.judging.finding import Finding, Source
from numaproof.protocol import codec, lists, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.mismatch import ABSENT, short_text
from numaproof.protocol.sets import CPUSet
from numaproof.reference.choices import NO_CHOICES, Choices

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.messages import Level


_SEVERAL = 2


def difference(actual: messages.Answer, expected: messages.Answer, level: Level) -> Finding | None:
    """How an answer differs from the expected one at a level; None if they agree.

    An `Unsupported` on either side counts as agreement. The order of lists that represent sets is
    ignored (`numaproof.protocol.lists`).
    """
    if isinstance(actual, messages.Unsupported) or isinstance(expected, messages.Unsupported):
        return None
    if not applies("admission", level):
        return None
    kinds = _kind(expected), _kind(actual)
    if kinds[0] != kinds[1]:
        return Finding("other side", "the outcome", "", *kinds, kind="outcome")
    if not applies("placement", level) or actual == expected:
        return None
    exact = applies("kubelet", level)
    if isinstance(expected, messages.State) and isinstance(actual, messages.State):
        actual = _with_metrics_like(actual, expected, exact=exact)
    sides = (_comparable(one, exact=exact) for one in (expected, actual))
    return _first_difference("", *sides)


def _with_metrics_like(
    actual: messages.State, expected: messages.State, *, exact: bool
) -> messages.State:
    """A state with only those metrics that can be compared.

    Metrics are compared at level ``kubelet``. After a restart, an implementation may admit the
    pods before it is asked to, so nothing is compared until the reference has its metrics.
    """
    if not exact or expected.metrics is None:
        return msgspec.structs.replace(actual, metrics=expected.metrics)
    return actual


_NAMED_OPTION = re.compile(
    r"(?:CPU|Topology) Manager Policy (?:Alpha|Beta)-level Options not enabled, "
    r"but option .* provided"
    r"|unknown (?:CPU|Topology) Manager Policy option: .*"
    r"|bad value for option .*"
    r"|unable to convert policy option to integer .*|the minimum value of .*"
)


def any_option(answer: messages.Answer) -> messages.Answer:
    """A refusal, excluding the name of the refused option.

    If several options are invalid, the kubelet names an arbitrary one, because it iterates over a
    map.
    """
    if isinstance(answer, messages.StartRefused):
        message = _NAMED_OPTION.sub("one of the options is refused", answer.message)
        return msgspec.structs.replace(answer, message=message)
    return answer


_NAMED_GATE = re.compile(r"(failed to set feature gates from initial flags-based config): .*")


def any_gate(answer: messages.Answer) -> messages.Answer:
    """A refusal, excluding the names of the refused feature gates.

    The kubelet iterates over a map and stops at the first unknown gate, so which gates it names is
    arbitrary.
    """
    if isinstance(answer, messages.StartRefused):
        return msgspec.structs.replace(answer, message=_NAMED_GATE.sub(r"\1", answer.message))
    return answer


_UNAVAILABLE = re.compile(
    r"requested number of devices unavailable for \S+ Requested: \d+, Available: \d+"
    r"|(?:no healthy devices present|previously allocated devices are no longer healthy);"
    r" cannot allocate unhealthy devices [^, ]+"
    r"|cannot allocate unregistered device [^, ]+"
)


def any_resource(answer: messages.Answer) -> messages.Answer:
    """A refusal for lack of devices, excluding the name of the resource.

    If several resources are unavailable, the kubelet names an arbitrary one, because it iterates
    over a map.
    """
    if not isinstance(answer, messages.AdmissionRefused):
        return answer

    def without_name(text: str) -> str:
        return _UNAVAILABLE.sub("the devices of a resource are unavailable", text)

    pod = answer.pod
    if pod is not None:
        pod = msgspec.structs.replace(
            pod, message=without_name(pod.message), event=without_name(pod.event)
        )
    return msgspec.structs.replace(answer, message=without_name(answer.message), pod=pod)


def _kind(answer: messages.Answer) -> str:
    match answer:
        case messages.StartRefused():
            return f"refused at stage {answer.stage}"
        case messages.AdmissionRefused():
            return f"refused with {answer.reason}" if answer.reason else "refused without a reason"
        case messages.Fault():
            return "a fault"
        case _:
            return "accepted"


def _comparable(answer: messages.Answer, *, exact: bool) -> Any:
    plain = lists.in_order(answer, exact=exact)
    match answer:
        case messages.StartRefused() | messages.AdmissionRefused() | messages.Fault():
            return plain if exact else {}
        case messages.State():
            files = {name: comparable_file(text) for name, text in answer.files.items()}
            return {**plain, "files": files if exact else {}}
        case _ if "topology" in plain:
            listed = plain.pop("topology") or ()
            nodes = {str(node["node_id"]): node for node in listed}
            order = [node["node_id"] for node in listed]
            return {
                **plain,
                "nodes": nodes,
                "order": order if exact and _is_ordered(listed) else [],
            }
        case _:
            return plain


def _is_ordered(nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the kubelet lists the nodes in a fixed order.

    It doesn't if the nodes are packages with neither memory nor distances, because it iterates over
    a map.
    """
    return any(node.get("memory") or node.get("distances") for node in nodes)


def comparable_file(text: str) -> Any:
    """A checkpoint in a form that is the same in every run, usually its text.

    The kubelet writes a container's blocks of different memory types in an arbitrary order, which
    affects the checksum. Such a file is compared by its contents and the validity of its checksums.
    """
    content = _object(text)
    data = _object(content.get(checkpoints.DATA))
    blocks = [*_blocks(content), *_blocks(data)]
    if all(len(one) < _SEVERAL for one in blocks):
        return text
    fits = {checkpoints.CHECKSUM: _fits(content)}
    if data:
        fits[checkpoints.DATA_CHECKSUM] = _data_fits(content)
        content[checkpoints.DATA] = data
    for one in blocks:
        one.sort(key=lambda block: str(block.get("type")))
    return {**content, **fits}


def _object(text: Any) -> dict[str, Any]:
    """Parses a JSON object; returns an empty one for anything else."""
    try:
        return codec.decode(text, dict[str, Any]) if isinstance(text, str) else {}
    except codec.ProtocolError:
        return {}


def _blocks(content: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The lists of blocks in the Memory Manager's checkpoint, one per container or pod."""
    if "machineState" not in content:
        return
    pods, entries = (_values(content.get(name)) for name in ("podEntries", "entries"))
    found = [one.get("memoryBlocks") for one in pods if isinstance(one, dict)]
    found += [one for containers in entries for one in _values(containers)]
    for one in found:
        if isinstance(one, list) and all(isinstance(block, dict) for block in one):
            yield one


def _values(value: Any) -> list[Any]:
    return [*value.values()] if isinstance(value, dict) else []


def _fits(content: Mapping[str, Any]) -> bool:
    """Whether the checksum matches the fields that it covers."""
    of_others = (checkpoints.CHECKSUM, checkpoints.DATA, checkpoints.DATA_CHECKSUM)
    fields = {name: value for name, value in content.items() if name not in of_others}
    try:
        return bool(content.get(checkpoints.CHECKSUM) == checkpoints.checksum(fields))
    except checkpoints.FieldsError:
        return False


def _data_fits(content: Mapping[str, Any]) -> bool:
    """Whether the checksum of the second part matches its text."""
    right = checkpoints.data_checksum(content[checkpoints.DATA])
    return bool(content.get(checkpoints.DATA_CHECKSUM) == right)


def _first_difference(where: str, expected: Any, actual: Any) -> Finding | None:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            place = f"{where}.{key}" if where else key
            if key not in actual:
                return _on_one_side(place, short_text(expected[key]), ABSENT)
            if key not in expected:
                return _on_one_side(place, ABSENT, short_text(actual[key]))
            found = _first_difference(place, expected[key], actual[key])
            if found:
                return found
        return None
    if expected == actual:
        return None
    return Finding(
        "other side",
        where,
        expected=short_text(expected),
        actual=short_text(actual),
        kind="field",
        remark=lists.remark(expected, actual),
    )


def _on_one_side(place: str, expected: str, actual: str) -> Finding:
    return Finding("other side", place, "", expected, actual, kind="field on one side")


class SteerableReference(Protocol):
    """An implementation that can be steered, such as the reference."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer to a request."""

    def prefer(self, choices: Choices) -> None:
        """Sets the choices to make in the next call wherever they are equally good."""


Meets = Callable[[messages.Answer, messages.State | None], bool]
"""Checks whether an answer, with the state after it, meets an expectation."""


class AnswerJudge(Protocol):
    """The session's judge of answers."""

    @property
    def answer(self) -> messages.Answer | None:
        """The correct answer to the last call."""

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How `answer` differs from the correct one; None if they agree."""

    def alter(self, change: Callable[[Path], object]) -> None:
        """Edits a checkpoint by hand; `change` receives the state directory."""


@dataclass
class Oracle:
    """The reference, with its own state directory.

    To stay in step with the implementation, the oracle skips calls that the implementation doesn't
    support. After a call that the reference doesn't support, the oracle `is_silent`, because it no
    longer knows the node's state.

    Attributes:
        level: how closely answers are compared.
        discovers: the fields of a discovered machine to compare; None for all.
        is_silent: whether it has stopped comparing answers.
        source: whether it is the reference or another implementation.
        answer: the reference's last answer; None before the first call and after a skipped one.
    """

    reference: SteerableReference
    state_dir: Path
    level: messages.Level
    discovers: Collection[str] | None = None
    is_silent: bool = False
    answer: messages.Answer | None = None
    source: Source = "reference"
    _reserved: CPUSet = field(default_factory=CPUSet)

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How the reference's answer differs from `answer`; None if they agree."""
        right = self.respond(operation, args, answer)
        if right is None:
            return None
        found = disagreement(args, answer, right, self.level, self.discovers)
        return replace(found, source=self.source) if found else None

    def respond(
        self,
        operation: str,
        args: messages.Args,
        answer: messages.Answer,
        choices: Choices | None = None,
    ) -> messages.Answer | None:
        """Makes a call to the reference after the implementation has answered `answer`.

        The reference makes the choices in `answer` that the level leaves open, so that later calls
        find the same resources in use; `choices` replace these. Returns None if the call is
        skipped.
        """
        self.answer = None
        if self.is_silent or isinstance(answer, messages.Unsupported):
            return None
        if isinstance(args, messages.StartArgs):
            args = msgspec.structs.replace(args, state_dir=str(self.state_dir))
        self.reference.prefer(choices or self._choices(args, answer))
        self.answer = without_path(self.reference.call(operation, args), self.state_dir)
        self.is_silent = operation in _CHANGES and isinstance(self.answer, messages.Unsupported)
        return self.answer

    def _choices(self, args: messages.Args, answer: messages.Answer) -> Choices:
        """The choices in an answer.

        From level ``placement`` on, only devices can be chosen. A refused start doesn't show which
        CPUs it would reserve; they are assumed to be the ones of the start before.
        """
        only_devices = applies("placement", self.level)
        match args, answer:
            case messages.StartArgs(), _:
                if isinstance(answer, messages.Started):
                    self._reserved = answer.cpus.all - answer.cpus.allocatable
                return Choices(self._reserved, only_devices=only_devices)
            case (
                messages.AdmitArgs(pod=pod) | messages.ResizeArgs(pod=pod),
                messages.Admitted(containers=containers),
            ):
                pods = {pod["metadata"]["uid"]: containers}
                return Choices(pods=pods, only_devices=only_devices)
            case _:
                return NO_CHOICES

    def alter(self, change: Callable[[Path], object]) -> None:
        """Edits a checkpoint in the reference's state directory."""
        change(self.state_dir)


_CHANGES = frozenset({"start", "admit", "resize", "remove", "end", "devices"})
"""Operations that change the node."""


def disagreement(
    args: messages.Args,
    actual: messages.Answer,
    expected: messages.Answer,
    level: messages.Level,
    discovers: Collection[str] | None = None,
) -> Finding | None:
    """How an answer to a call differs from the expected one; None if they agree.

    If a kubelet may refuse a call for several reasons, these are treated as equivalent. `discovers`
    lists the fields of a discovered machine to compare; None stands for all.
    """
    if (
        isinstance(actual, MachineInfo)
        and isinstance(expected, MachineInfo)
        and discovers is not None
    ):
        seen = machine_comparison.difference(actual, expected, discovers)
        return seen if applies("placement", level) else None
    if _has_several_options(args):
        actual, expected = any_option(actual), any_option(expected)
    if isinstance(args, messages.StartArgs) and _is_several(args.config.get("featureGates")):
        actual, expected = any_gate(actual), any_gate(expected)
    if _asks_for_several_devices(args):
        actual, expected = any_resource(actual), any_resource(expected)
    return difference(actual, expected, level)


STATE_DIR = "$STATE_DIR"
"""Replaces the state directory in everything that is compared or displayed."""


def without_path(answer: messages.Answer, state_dir: Path) -> messages.Answer:
    """Replaces the state directory in an answer with `STATE_DIR`."""
    if isinstance(answer, messages.StartRefused):
        message = answer.message.replace(str(state_dir), STATE_DIR)
        return msgspec.structs.replace(answer, message=message)
    return answer


def _has_several_options(args: messages.Args) -> bool:
    match args:
        case messages.StartArgs():
            names = ("cpuManagerPolicyOptions", "topologyManagerPolicyOptions")
            return any(_is_several(args.config.get(name)) for name in names)
        case messages.AssignArgs():
            return _is_several(args.options)
        case _:
            return False


def _is_several(entries: object) -> bool:
    """Whether a configuration field, which can have any type, is a map with several entries."""
    return isinstance(entries, dict) and len(entries) > 1


def _asks_for_several_devices(args: messages.Args) -> bool:
    if not isinstance(args, messages.AdmitArgs):
        return False
    return any(sum("/" in resource for resource in limits) > 1 for limits in _limits(args.pod))


def _limits(pod: messages.Pod) -> Iterator[Mapping[str, object]]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield (container.get("resources") or {}).get("limits") or {}
