"""What judging sees of a session: the call it made last, and what the harness did to the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.protocol import messages


class ObservedCapabilities(Protocol):
    """What may be called."""

    def has(self, operation: str) -> bool:
        """Whether an operation may be called."""


class ObservedCall(Protocol):
    """A call that was made."""

    @property
    def args(self) -> messages.Args:
        """Its arguments."""


class ObservedSession(Protocol):
    """A session as invariants see it; `numaproof.conformance.execution.session` has one."""

    @property
    def capabilities(self) -> ObservedCapabilities:
        """What may be called."""

    @property
    def kubernetes(self) -> str:
        """The release that the implementation behaves as."""

    @property
    def level(self) -> messages.Level:
        """How much of the answers is compared."""

    @property
    def pods(self) -> Mapping[str, messages.Pod]:
        """Manifests of the pods on the node, by uid, in the order of their admission."""

    @property
    def ended(self) -> Mapping[str, frozenset[str]]:
        """Names of the containers that have ended, by pod uid."""

    @property
    def config(self) -> messages.KubeletConfiguration:
        """The configuration of the last start."""

    @property
    def started(self) -> messages.Started | None:
        """The answer to the last start; None if it was refused or never made."""

    @property
    def devices(self) -> tuple[messages.DeviceResource, ...]:
        """What the device plugins reported last."""

    @property
    def calls(self) -> Sequence[ObservedCall]:
        """Every call so far."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Makes one more call."""
