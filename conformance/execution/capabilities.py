"""What an implementation says it can do: nothing else is asked of it.

``hello`` lists operations, policies, policy options and features (`numaproof.protocol.features`).
What a call needs and the lists lack is never requested.
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
    """The implementation does not have what a call needs; the message names it."""


@dataclass(frozen=True)
class Capabilities:
    """What one implementation can do.

    Attributes:
        hello: its answer to the handshake.
        kubernetes: the release that it behaves as.
    """

    hello: Hello
    kubernetes: str

    def of(self, kubernetes: str) -> Capabilities:
        """What it can do as another release.

        Raises:
            NotSupportedError: it does not claim that release.
        """
        if kubernetes not in self.hello.kubernetes:
            raise NotSupportedError(f"Kubernetes {kubernetes}")
        return replace(self, kubernetes=kubernetes)

    def has(self, operation: str) -> bool:
        """Whether an operation may be called."""
        return operation == "hello" or operation in self.hello.operations

    @property
    def can_be_fuzzed(self) -> bool:
        """Whether scenarios can be made for it: lives of nodes, or calls that need no node."""
        return any(map(self.has, ("start", "merge", "assign")))

    def makes(self, *claims: str) -> bool:
        """Whether all these claims are made, or assumed to be."""
        return self.claims.issuperset(claims)

    @cached_property
    def discovers(self) -> frozenset[str] | None:
        """What it finds out of a machine; None for all of it."""
        return discovery.discovers(self.hello)

    def cpu_options(self) -> tuple[str, ...]:
        """The CPU Manager policy options of the release that may be requested, by name."""
        return tuple(sorted(release(self.kubernetes).cpu_options.keys() & self.hello.options.cpu))

    def topology_options(self) -> tuple[str, ...]:
        """The Topology Manager policy options of the release that may be requested, by name."""
        known = release(self.kubernetes).topology_options
        return tuple(sorted(known.keys() & self.hello.options.topology))

    @cached_property
    def claims(self) -> frozenset[str]:
        """All that is claimed, in the words in which `numaproof.conformance.claims.needs` asks."""
        hello = self.hello
        found = {f"operation {one}" for one in (*hello.operations, "hello")}
        if self.has("discover"):
            found |= {discovery.claim(one) for one in self.discovers or discovery.DISCOVERED}
            found |= {discovery.WHOLE} if self.discovers is None else set()
        found |= {f"CPU Manager option {one}" for one in hello.options.cpu}
        found |= {f"Topology Manager option {one}" for one in hello.options.topology}
        found |= {f"feature {one}" for one in features.claimed_features(hello)}
        for field in POLICY_FIELDS.values():
            # Who lists no policy lacks the manager, as if it were switched off.
            policies = getattr(hello.policies, field.manager) or field.policies[:1]
            found |= {f"{field.label} {one}" for one in policies}
        return frozenset(found)

    def require(self, needs: Iterable[str]) -> None:
        """Checks that all that is needed is claimed.

        Raises:
            NotSupportedError: something is not.
        """
        for need in needs:
            if need not in self.claims:
                raise NotSupportedError(need)
