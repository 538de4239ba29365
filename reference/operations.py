"""Operations that need no started node: assigning CPUs and merging hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol import messages
from numaproof.protocol.sets import CPUSet, NUMASet
from numaproof.reference.config.options import OptionError
from numaproof.reference.cpu import options as cpu_options
from numaproof.reference.cpu.assignment import NotEnoughCPUsError
from numaproof.reference.cpu.distribution import AccountingError
from numaproof.reference.cpu.topology import TopologyError, derive
from numaproof.reference.errors import AdmissionError, RequestError, StartError
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.hints import ANYWHERE, TopologyHint
from numaproof.reference.topology.search import evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.protocol.machine import MachineInfo
    from numaproof.reference.deviations.releases import Release
    from numaproof.reference.topology.hints import Resources

_POLICIES = (policies.BEST_EFFORT, policies.RESTRICTED, policies.SINGLE_NUMA_NODE)
_LARGEST_NODE = 63


def assign(args: messages.AssignArgs, release: Release) -> CPUSet:
    """Assigns some of the available CPUs, with all policy options enabled.

    Nothing is reserved, and no affinity applies.

    Raises:
        StartError: a policy option is invalid, or the machine has no CPUs.
        AdmissionError: the request cannot be met.

    Requirements: CPU-ERROR-005, CPU-OPT-ALIGNSOCKET-005, CPU-OPT-FULLPCPUS-003, CPU-STATIC-027.
    """
    take = assigner(args.machine, args.options, release)
    if args.count < 1:
        return CPUSet()
    return CPUSet.from_mask(take(args.available.mask, args.count))


def assigner(
    machine: MachineInfo, options: Mapping[str, str], release: Release
) -> Callable[[int, int], int]:
    """Prepares assignments on a machine: a function from available CPUs and a count to CPUs.

    Sets of CPUs are bit masks. The function raises an AdmissionError if it cannot meet a request.

    Raises:
        StartError: a policy option is invalid, or the machine has no CPUs.
    """
    try:
        topology = derive(machine)
        parsed = cpu_options.parse(options, release.cpu_options, gates=None)
        cpu_options.validate(parsed, topology, "none")
    except (OptionError, TopologyError) as error:
        raise StartError("cpu", str(error)) from None
    policy = release.cpu_rules.without_reservation(topology, parsed)

    def take(available: int, count: int) -> int:
        try:
            policy.check_alignment(count, available.bit_count())
            return policy.assignment.take(available, count)
        except (NotEnoughCPUsError, AccountingError) as error:
            raise AdmissionError("UnexpectedAdmissionError", str(error)) from None

    return take


def merge(args: messages.MergeArgs, release: Release) -> messages.Merged:
    """Merges hints according to a policy, with all policy options enabled and any number of nodes.

    Raises:
        StartError: a policy option is invalid, or distances are missing.
        RequestError: the policy does not exist, or a node's id is out of range.
    """
    if args.policy == policies.NONE:
        return messages.Merged(messages.Hint(None, preferred=False), admit=True)
    policy = merging_policy(args.nodes, args.policy, args.options, args.distances or {}, release)
    kept, admit = policy.merge([resources(provider) for provider in args.providers])
    return messages.Merged(messages.Hint(kept.numa, kept.preferred), admit)


def merging_policy(
    nodes: tuple[int, ...],
    policy: str,
    options: Mapping[str, str],
    distances: Mapping[str, tuple[int, ...]],
    release: Release,
) -> policies.TopologyPolicy:
    """Creates a policy other than ``none``, with all policy options enabled.

    Raises:
        StartError: a policy option is invalid, or distances are missing.
        RequestError: the policy does not exist, or a node's id is out of range.
    """
    try:
        parsed = topology_options.parse(options, release.topology_options, gates=None)
        rows = {node: distances.get(str(node)) for node in _check_nodes(nodes)}
        if policy not in _POLICIES:
            raise RequestError(f"unknown Topology Manager policy {policy!r}")
        return policies.of_nodes(policy, parsed, rows, release.rule(Distances))
    except (OptionError, policies.TopologyManagerError) as error:
        raise StartError("topology", str(error)) from None


def to_messages(resources: Resources) -> messages.ProviderHints:
    """Converts a provider's hints to protocol messages."""
    return {
        resource: None
        if hints is None
        else tuple(
            messages.Hint(hint.numa, hint.preferred) for hint in evaluation.list_hints(hints)
        )
        for resource, hints in resources.items()
    }


def resources(provider: messages.ProviderHints | None) -> Resources:
    """Converts a provider's hints from protocol messages."""
    return {
        resource: None
        if hints is None
        else tuple(
            TopologyHint(
                ANYWHERE if hint.numa is None else NUMASet(_check_nodes(hint.numa)).mask,
                hint.preferred,
            )
            for hint in hints
        )
        for resource, hints in (provider or {}).items()
    }


def _check_nodes(nodes: tuple[int, ...] | NUMASet) -> tuple[int, ...] | NUMASet:
    for node in nodes:
        if not 0 <= node <= _LARGEST_NODE:
            raise RequestError(f"NUMA node {node} is out of range (expected 0 to {_LARGEST_NODE})")
    return nodes
