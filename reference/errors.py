"""How a call can end without a result; each becomes an answer of its own kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaproof.protocol.messages import Stage


class StartError(Exception):
    """The start was refused at a stage."""

    def __init__(self, stage: Stage, message: str) -> None:
        """Takes the stage and the kubelet's text."""
        super().__init__(message)
        self.stage = stage


class AdmissionError(Exception):
    """The pod, or the request for CPUs, is refused."""

    def __init__(self, reason: str, message: str) -> None:
        """Takes the documented reason and the kubelet's text."""
        super().__init__(message)
        self.reason = reason


class NotBuiltError(Exception):
    """The reference does not have what was asked for; the text says what."""


class NotStartedError(Exception):
    """The operation needs a node, and there was no start or the last one was refused."""
