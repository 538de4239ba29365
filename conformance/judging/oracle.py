"""The oracle: makes the same calls to the reference and compares the answers.

The protocol page describes the levels. Where the kubelet's own answers vary from run to run, only
what is the same in every run is compared.

Where a kubelet may do one thing or another, the reference is steered the way the implementation
went, or the answers are compared in a form that is the same either way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from numaproof.conformance.cases import checkpoints
from numaproof.conformance.cases.loading import applies
from numaproof.conformance.judging import machine_comparison
from numaproof.conformance.judging.finding import Finding
from numaproof.protocol import codec, lists, messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.mismatch import ABSENT, short_text

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.messages import Level


_SEVERAL = 2


def difference(actual: messages.Answer, expected: messages.Answer, level: Level) -> Finding | None:
    """How an answer differs from the expected one at a level; None if they agree.

    An `Unsupported` on either side cannot be compared and counts as agreement. The order of a list
    that stands for a set does not count (`numaproof.protocol.lists`).
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
    sides = (_comparable(one, exact=exact) for one in (expected, actual))
    return _first_difference("", *sides)


_NAMED_OPTION = re.compile(
    r"(?:CPU|Topology) Manager Policy (?:Alpha|Beta)-level Options not enabled, "
    r"but option .* provided"
    r"|unknown (?:CPU|Topology) Manager Policy option: .*"
    r"|bad value for option .*"
    r"|unable to convert policy option to integer .*|the minimum value of .*"
)


def any_option(answer: messages.Answer) -> messages.Answer:
    """A refusal of options without the name of the one that it names.

    Of several bad options the kubelet names any: it walks a map.
    """
    if isinstance(answer, messages.StartRefused):
        message = _NAMED_OPTION.sub("one of the options is refused", answer.message)
        return msgspec.structs.replace(answer, message=message)
    return answer


_NAMED_GATE = re.compile(r"(failed to set feature gates from initial flags-based config): .*")


def any_gate(answer: messages.Answer) -> messages.Answer:
    """A refusal of feature gates without the ones that it names.

    Of several bad gates the kubelet names any, and none after the first that it does not know: it
    walks a map.
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
    """A refusal for want of devices without the resource that it names.

    Of several resources that a container can't have the kubelet names any: it walks a map.
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
    """Whether the kubelet lists the nodes in one order.

    It does not where they are packages, which have no memory and no distances: it walks a map.
    """
    return any(node.get("memory") or node.get("distances") for node in nodes)


def comparable_file(text: str) -> Any:
    """A checkpoint in the form that is the same in every run, which mostly is its text.

    Of a container's blocks of several memory types the kubelet writes any first, and the
    checksums go with that: such a file is compared by its content, and its checksums with it.
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
    """The JSON object that is the text; the empty one for anything else."""
    try:
        return codec.decode(text, dict[str, Any]) if isinstance(text, str) else {}
    except codec.ProtocolError:
        return {}


def _blocks(content: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The blocks of each container and pod in the Memory Manager's checkpoint."""
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
    """Whether the checksum is that of the fields that it is of."""
    of_others = (checkpoints.CHECKSUM, checkpoints.DATA, checkpoints.DATA_CHECKSUM)
    fields = {name: value for name, value in content.items() if name not in of_others}
    try:
        return bool(content.get(checkpoints.CHECKSUM) == checkpoints.checksum(fields))
    except checkpoints.FieldsError:
        return False


def _data_fits(content: Mapping[str, Any]) -> bool:
    """Whether the checksum of the second part is that of its text."""
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
    """An implementation that can be steered: the reference in this process."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """The answer to one request."""

    def prefer_devices(self, devices: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        """Says which devices to take where any would do, by container and resource."""


Meets = Callable[[messages.Answer, messages.State | None], bool]
"""Whether an answer, with the state after it, meets an expectation."""


class AnswerJudge(Protocol):
    """What a session asks about each answer."""

    @property
    def answer(self) -> messages.Answer | None:
        """The answer to the last call that would have been right."""

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How `answer` differs from the right one; None if it does not."""

    def alter(self, change: Callable[[Path], object]) -> None:
        """Changes a checkpoint by hand, given the state directory that it is in."""


@dataclass
class Oracle:
    """The reference, in a state directory of its own.

    It keeps in step with the implementation: a call that this does not support changes nothing here
    either. Once the reference itself does not support a call it is `is_silent`, for what it knows
    of the node is no longer so.

    Attributes:
        level: how much of the answers is compared.
        discovers: what is compared of a discovered machine; None for all of it.
        answer: its last answer; None before the first and where it made no call.
    """

    reference: SteerableReference
    state_dir: Path
    level: messages.Level
    discovers: Collection[str] | None = None
    is_silent: bool = False
    answer: messages.Answer | None = None

    def disagreement(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> Finding | None:
        """How the reference's answer to a call differs from `answer`; None if it does not."""
        right = self.respond(operation, args, answer)
        if right is None:
            return None
        found = disagreement(args, answer, right, self.level, self.discovers)
        return replace(found, source="reference") if found else None

    def respond(
        self, operation: str, args: messages.Args, answer: messages.Answer
    ) -> messages.Answer | None:
        """The reference's answer to a call that was answered `answer`; None if it makes no call.

        A kubelet takes any of several equally good devices: the reference takes the same ones if
        it may.
        """
        self.answer = None
        if self.is_silent or isinstance(answer, messages.Unsupported):
            return None
        if isinstance(args, messages.StartArgs):
            args = msgspec.structs.replace(args, state_dir=str(self.state_dir))
        if isinstance(answer, messages.Admitted):
            self.reference.prefer_devices(
                {name: one.devices or {} for name, one in answer.containers.items()}
            )
        self.answer = without_path(self.reference.call(operation, args), self.state_dir)
        self.is_silent = operation in _CHANGES and isinstance(self.answer, messages.Unsupported)
        return self.answer

    def alter(self, change: Callable[[Path], object]) -> None:
        """Changes a checkpoint of its own."""
        change(self.state_dir)


_CHANGES = frozenset({"start", "admit", "remove", "devices"})
"""Operations that change the node."""


def disagreement(
    args: messages.Args,
    actual: messages.Answer,
    expected: messages.Answer,
    level: messages.Level,
    discovers: Collection[str] | None = None,
) -> Finding | None:
    """How an answer to a call differs from the expected one; None if they agree.

    Of several refusals that a kubelet may give, any one is as good as another. Of discovered
    machines it is compared what `discovers` names; None stands for all.
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
"""Replaces the state directory in everything that is compared or shown."""


def without_path(answer: messages.Answer, state_dir: Path) -> messages.Answer:
    """An answer with the state directory written as `STATE_DIR`."""
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
    """Whether a field of a configuration, which may hold anything, is a map of several entries."""
    return isinstance(entries, dict) and len(entries) > 1


def _asks_for_several_devices(args: messages.Args) -> bool:
    if not isinstance(args, messages.AdmitArgs):
        return False
    return any(sum("/" in resource for resource in limits) > 1 for limits in _limits(args.pod))


def _limits(pod: messages.Pod) -> Iterator[Mapping[str, object]]:
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield (container.get("resources") or {}).get("limits") or {}
