"""Relations: what follows from earlier answers, without knowing which answers are right.

A node that shows the same state in the same circumstances must treat equal pods alike, so removing
a pod and admitting an equal one restores the node. A restart with nothing changed changes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.judging.entitlement import topology_policy
from numaproof.conformance.judging.invariants.memory import FILE_NAME
from numaproof.conformance.judging.invariants.view import Violation
from numaproof.inputs.plurals import format_numbers
from numaproof.protocol import codec, messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.judging.invariants.view import View


class Outcomes:
    """The pods that were admitted and refused, with the node's state at that time."""

    def __init__(self) -> None:
        self._admitted: dict[bytes, tuple[str, bool]] = {}
        self._machines: list[Facts] = []

    def on_admission(
        self, before: View, pod: messages.Pod, answer: messages.Answer
    ) -> Iterator[Violation]:
        """Checks that an equal pod fared alike when the node was in the same state.

        `before` is the view before the admission. Pods that were on the node aren't checked.
        """
        uid = pod["metadata"]["uid"]
        if uid in before.pods:
            return
        if not isinstance(answer, messages.Admitted | messages.AdmissionRefused):
            return
        admitted = isinstance(answer, messages.Admitted)
        place = self._circumstances(before, pod)
        earlier, was_admitted = self._admitted.setdefault(place, (uid, admitted))
        if was_admitted != admitted:
            said = ("refused", "admitted")
            message = (
                f"pod {uid} was {said[admitted]}, but an equal pod, {earlier}, was"
                f" {said[was_admitted]} when the node had the same state"
            )
            yield Violation("same-state-same-outcome", "NODE-STATE-001", message)

    def _circumstances(self, view: View, pod: messages.Pod) -> bytes:
        """Everything that may decide about a pod, except its name and uid."""
        if not any(view.facts is one for one in self._machines):
            self._machines.append(view.facts)
        number = next(n for n, one in enumerate(self._machines) if view.facts is one)
        metadata = {name: value for name, value in pod["metadata"].items() if name not in _NAMES}
        # Which nodes of a group have free memory is known only from the file.
        is_grouped = any(
            len(block.numa) > 1 for _, one in view.containers() for block in one.memory
        )
        memory = view.state.files.get(FILE_NAME) if is_grouped else None
        return codec.encode(
            (
                number,
                view.config,
                view.kubernetes,
                view.devices,
                view.start_answer,
                sorted(view.ended_containers),
                sorted(view.pods),
                msgspec.structs.replace(view.state, files={}, metrics=None),
                memory,
                {**pod, "metadata": metadata},
            )
        )


_NAMES = ("name", "uid")


def on_start(before: View, after: View) -> Iterator[Violation]:
    """Checks that a restart with nothing changed reports the same resources."""
    if not _is_unchanged(before, after.config, after):
        return
    was, now = before.start_answer, after.start_answer
    if was.cpus != now.cpus:
        message = (
            f"{format_numbers('CPU', was.cpus.allocatable)} were allocatable, but after a restart"
            f" with nothing changed, {format_numbers('CPU', now.cpus.allocatable)}"
        )
        yield Violation("restart-reports-the-same", "NODE-RESTART-001", message)
    elif Counter(was.memory) != Counter(now.memory):
        message = "a restart with nothing changed reports other allocatable memory"
        yield Violation("restart-reports-the-same", "NODE-RESTART-001", message)


def on_readmission(before: View, now: View, uid: str) -> Iterator[Violation]:
    """Checks the refusal of a pod after a restart.

    `before` is the view before the restart, and `now` the one after it.
    """
    has_ended = any(pod == uid for pod, _ in before.ended_containers)
    aligned = topology_policy(now.config) != "none"
    # Devices may have become unhealthy, and those without a node can't be aligned again.
    healthy = all(
        one.healthy and not listed.fails and not aligned
        for listed in now.devices
        for one in listed.ids
    )
    came = before.came_under(uid)
    if has_ended or not healthy or came != now.config or not _is_unchanged(before, came, now):
        return
    message = f"pod {uid} was on the node, but is refused after a restart with nothing changed"
    yield Violation("restart-admits-again", "NODE-RESTART-001", message)


def _is_unchanged(before: View, config: messages.KubeletConfiguration, after: View) -> bool:
    return (
        before.facts is after.facts
        and before.config == config
        and before.kubernetes == after.kubernetes
        and before.devices == after.devices
        and before.check_node == after.check_node
    )
