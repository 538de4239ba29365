"""What an implementation claims to have: nothing else is ever asked of it.

``hello`` lists operations, policies and policy options (the conformance protocol, "hello"). What
Kubernetes knows and the list lacks is not asked for. A name that Kubernetes does not know either
is sent: how it is refused is part of what is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numaproof.protocol import messages
from numaproof.reference.departures.releases import release

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.protocol.messages import Args, Hello


class NotSupportedError(Exception):
    """The implementation does not have what is asked for; the text names it."""


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
    """The claims of one implementation.

    Attributes:
        hello: its greeting.
        kubernetes: the release that it is asked to behave as.
    """

    hello: Hello
    kubernetes: str

    def has(self, operation: str) -> bool:
        """Whether an operation may be called."""
        return operation == "hello" or operation in self.hello.operations

    def cpu_policies(self) -> tuple[str, ...]:
        """The CPU Manager's policies that may be asked for; none where it claims none."""
        known = _POLICY_FIELDS["cpuManagerPolicy"].known
        return tuple(policy for policy in known if policy in self.hello.policies.cpu)

    def cpu_options(self) -> tuple[str, ...]:
        """The CPU Manager's policy options of the release that may be asked for, by name."""
        return tuple(sorted(release(self.kubernetes).cpu_options.keys() & self.hello.options.cpu))

    def require(self, operation: str, args: Args) -> None:
        """Checks that a call asks for nothing unclaimed.

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
        # Whoever lists no policy does not have the manager, which is as good as switched off.
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
    """Options may be anything: a case can show how a wrong form of them is refused."""
    given = sorted(options.keys() & set(known)) if isinstance(options, dict) else []
    return (f"{called} {name}" for name in given if name not in claimed)
