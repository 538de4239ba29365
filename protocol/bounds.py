"""Limits on the size of answers, derived from the pods in the requests.

Answers are stored, compared and displayed, so a program stuck in a loop could fill the harness's
memory and reports. The limits leave room for mistakes worth reporting, such as a leftover pod or
an extra container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol import messages
from numaproof.protocol.codec import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable

SPARE_PODS = 100
SPARE_CONTAINERS = 1000
MAX_FILES = 16
FILE_BYTES = 1024 * 1024
"""Maximum number of characters in all checkpoint files of a node without pods."""

FILE_BYTES_PER_POD = 16 * 1024


class AnswerBounds:
    """Counts the pods and containers in requests, and limits answers accordingly."""

    def __init__(self) -> None:
        """Starts with no pods counted."""
        self._pods = 0
        self._containers = 0

    def ask(self, args: messages.Args) -> None:
        """Counts the pods in a request."""
        match args:
            case messages.StartArgs(pods=pods):
                self._count(pods)
            case (
                messages.AdmitArgs(pod=pod)
                | messages.ResizeArgs(pod=pod)
                | messages.HintsArgs(pod=pod)
            ):
                self._count((pod,))

    def _count(self, pods: Iterable[messages.Pod]) -> None:
        for pod in pods:
            self._pods += 1
            spec = pod.get("spec")
            lists = (spec.get("initContainers"), spec.get("containers")) if spec else ()
            self._containers += sum(len(one) for one in lists if one)

    def check_answer(self, answer: messages.Answer) -> messages.Answer:
        """Returns the answer if it is within the limits for the requests so far.

        Raises:
            ProtocolError: the answer exceeds a limit.
        """
        match answer:
            case messages.Admitted(containers=containers):
                self._check("containers", len(containers), self._containers + SPARE_CONTAINERS)
                self._check("preempted pods", len(answer.preempted), self._pods + SPARE_PODS)
            case messages.Reconciled(updates=updates):
                self._check("updates", len(updates), self._containers + SPARE_CONTAINERS)
            case messages.State():
                self._check_state(answer)
        return answer

    def _check_state(self, state: messages.State) -> None:
        self._check("pods", len(state.pods), self._pods + SPARE_PODS)
        held = sum(map(len, state.pods.values()))
        self._check("containers", held, self._containers + SPARE_CONTAINERS)
        self._check("files", len(state.files), MAX_FILES)
        size = sum(map(len, state.files.values()))
        most = FILE_BYTES + FILE_BYTES_PER_POD * self._pods
        self._check("characters of files", size, most)

    def _check(self, what: str, count: int, most: int) -> None:
        if count > most:
            raise ProtocolError(
                f"the answer has {count:,} {what} (expected at most {most:,}; pods in requests:"
                f" {self._pods:,})"
            )
