"""What an implementation says it can do: nothing else is asked of it.

``hello`` lists operations, policies and policy options (the conformance protocol, "hello"). What
Kubernetes has and the list lacks is never requested. A name that Kubernetes does not know either is
sent, because how it is refused is part of the test.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference.departures.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.protocol.messages import Args, Hello


class NotSupportedError(Exception):
    """The implementation does not have what a call needs; the message names it."""


@dataclass(frozen=True)
class _PolicyField:
    """A field of the configuration that names a policy; its first value is the default."""

    kind: str
    called: str
    known: tuple[str, ...]


_POLICY_FIELDS = {
    "cpuManagerPolicy": _PolicyField("cpu", "CPU Manager policy", ("none", "static")),
    "memoryManagerPolicy": _PolicyField("memory", "Memory Manager policy", ("None", "Static")),
    "topologyManagerPolicy": _PolicyField(
        "topology",
        "Topology Manager policy",
        ("none", "best-effort", "restricted", "single-numa-node"),
    ),
    "topologyManagerScope": _PolicyField("scope", "Topology Manager scope", ("container", "pod")),
}


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

    def cpu_policies(self) -> tuple[str, ...]:
        """The CPU Manager policies that may be requested; empty if it lists none."""
        known = _POLICY_FIELDS["cpuManagerPolicy"].known
        return tuple(policy for policy in known if policy in self.hello.policies.cpu)

    def cpu_options(self) -> tuple[str, ...]:
        """The CPU Manager policy options of the release that may be requested, by name."""
        return tuple(sorted(release(self.kubernetes).cpu_options.keys() & self.hello.options.cpu))

    def require(self, operation: str, args: Args) -> None:
        """Checks that a call needs nothing the implementation lacks.

        Raises:
            NotSupportedError: it does.
        """
        missing = next(self._unclaimed(operation, args), None)
        if missing:
            raise NotSupportedError(missing)

    def _unclaimed(self, operation: str, args: Args) -> Iterator[str]:
        if not self.has(operation):
            yield f"operation {operation}"
        match args:
            case messages.StartArgs():
                yield from self._of_config(args.config)
            case messages.AssignArgs():
                yield from self._of_cpu_options(args.options)
            case messages.MergeArgs():
                yield from self._of_policy("topologyManagerPolicy", args.policy)
                yield from self._of_topology_options(args.options)

    def _of_config(self, config: Mapping[str, Any]) -> Iterator[str]:
        for name, field in _POLICY_FIELDS.items():
            yield from self._of_policy(name, config.get(name, field.known[0]))
        yield from self._of_cpu_options(config.get("cpuManagerPolicyOptions"))
        yield from self._of_topology_options(config.get("topologyManagerPolicyOptions"))

    def _of_policy(self, name: str, policy: object) -> Iterator[str]:
        field = _POLICY_FIELDS[name]
        claimed = getattr(self.hello.policies, field.kind)
        # An implementation that lists no policy lacks the manager, as if it were switched off.
        allowed = claimed or field.known[:1]
        if policy in field.known and policy not in allowed:
            yield f"{field.called} {policy}"

    def _of_cpu_options(self, options: object) -> Iterator[str]:
        known = release(self.kubernetes).cpu_options
        return _missing("CPU Manager option", options, known, self.hello.options.cpu)

    def _of_topology_options(self, options: object) -> Iterator[str]:
        known = release(self.kubernetes).topology_options
        return _missing("Topology Manager option", options, known, self.hello.options.topology)


def _missing(
    called: str, options: object, known: Iterable[str], claimed: tuple[str, ...]
) -> Iterator[str]:
    """Options may be any value: a case can test how a malformed one is refused."""
    given = sorted(options.keys() & set(known)) if isinstance(options, dict) else []
    return (f"{called} {name}" for name in given if name not in claimed)
