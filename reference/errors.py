"""Why a call can end without a result; each error becomes an answer of its own kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.protocol.messages import Stage


class StartError(Exception):
    """The kubelet refuses to start, at some stage."""

    def __init__(self, stage: Stage, message: str) -> None:
        """Takes the stage and the kubelet's message."""
        super().__init__(message)
        self.stage = stage


class AdmissionError(Exception):
    """A pod, or a request for CPUs, is refused."""

    def __init__(self, reason: str, message: str) -> None:
        """Takes the documented reason and the kubelet's message."""
        super().__init__(message)
        self.reason = reason


class AllocationError(Exception):
    """A manager cannot allocate what a pod is due; the text is the kubelet's."""


class UnsupportedError(Exception):
    """The reference does not implement what was asked for; the text says what."""


class NotStartedError(Exception):
    """The operation needs a started node, and there is none."""


class RequestError(Exception):
    """A request asks for something that does not exist: it is wrong, and nothing broke."""
