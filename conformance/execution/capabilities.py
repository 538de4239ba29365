"""The capabilities that an implementation claims in ``hello``.

A call is never made if it needs an operation, policy, policy option or feature
(`numaproof.protocol.features`) that isn't claimed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from numaproof.conformance.claims.needs import POLICY_FIELDS
from numaproof.protocol import discovery, features
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.messages import Hello


class NotSupportedError(Exception):
    """A call needs something that the implementation doesn't claim; the message names it."""


@dataclass(frozen=True)
class Capabilities:
    """What an implementation can do.

    Attributes:
        hello: its answer to the handshake.
        kubernetes: the release that it behaves as.
    """

    hello: Hello
    kubernetes: str

    def of(self, kubernetes: str) -> Capabilities:
        """The capabilities for another release.

        Raises:
            NotSupportedError: the implementation doesn't claim that release.
        """
        if kubernetes not in self.hello.kubernetes:
            raise NotSupportedError(f"Kubernetes {kubernetes}")
        return replace(self, kubernetes=kubernetes)

    def has(self, operation: str) -> bool:
        """Whether an operation may be called."""
        return operation == "hello" or operation in self.hello.operations

    @property
    def can_be_fuzzed(self) -> bool:
        """Whether it can start nodes, merge hints or assign CPUs, as generated scenarios do."""
        return any(map(self.has, ("start", "merge", "assign")))

    def makes(self, *claims: str) -> bool:
        """Whether all these claims are made or implied."""
        return self.claims.issuperset(claims)

    @cached_property
    def discovers(self) -> frozenset[str] | None:
        """The fields of a machine that it discovers; None for all."""
        return discovery.discovers(self.hello)

    def cpu_options(self) -> tuple[str, ...]:
        """The claimed CPU Manager policy options that the release has, sorted."""
        return tuple(sorted(release(self.kubernetes).cpu_options.keys() & self.hello.options.cpu))

    def topology_options(self) -> tuple[str, ...]:
        """The claimed Topology Manager policy options that the release has, sorted."""
        known = release(self.kubernetes).topology_options
        return tuple(sorted(known.keys() & self.hello.options.topology))

    @cached_property
    def claims(self) -> frozenset[str]:
        """All claims, in the terms of `numaproof.conformance.claims.needs`."""
        hello = self.hello
        found = {f"operation {one}" for one in (*hello.operations, "hello")}
        if self.has("discover"):
            found |= {discovery.claim(one) for one in self.discovers or discovery.DISCOVERED}
            found |= {discovery.WHOLE} if self.discovers is None else set()
        found |= {f"CPU Manager option {one}" for one in hello.options.cpu}
        found |= {f"Topology Manager option {one}" for one in hello.options.topology}
        found |= {f"feature {one}" for one in features.claimed_features(hello)}
        for field in POLICY_FIELDS.values():
            # Listing no policies means having no such manager, as if it were disabled.
            policies = getattr(hello.policies, field.manager) or field.policies[:1]
            found |= {f"{field.label} {one}" for one in policies}
        return frozenset(found)

    def up_to(self, other: Capabilities) -> Capabilities:
        """The same, but claims that another implementation doesn't make can't be required."""
        return _Limited(self.hello, self.kubernetes, other)

    def require(self, needs: Iterable[str]) -> None:
        """Checks that all needed claims are made.

        Raises:
            NotSupportedError: a claim is missing.
        """
        for need in needs:
            if need not in self.claims:
                raise NotSupportedError(need)


@dataclass(frozen=True)
class _Limited(Capabilities):
    other: Capabilities

    def require(self, needs: Iterable[str]) -> None:
        for require in (super().require, self.other.require):
            require(needs)
