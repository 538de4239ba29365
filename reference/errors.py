"""The errors that end a call; each becomes its own kind of answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.protocol.messages import Stage


class StartError(Exception):
    """The kubelet refuses to start, at the given stage."""

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class AdmissionError(Exception):
    """A pod or a request for CPUs is refused."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class AllocationError(Exception):
    """A manager cannot allocate a pod's resources; the text is the kubelet's."""


class UnsupportedError(Exception):
    """The reference does not implement part of a request; the text names it."""


class NotStartedError(Exception):
    """The operation needs a started node, but no node is running."""


class RequestError(Exception):
    """The request itself is invalid, for example because it names something that does not exist."""
