"""Hints in the protocol: as the providers' answers, and merged without a started node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.protocol import messages
from numaproof.protocol.sets import NUMASet
from numaproof.reference.errors import StartError
from numaproof.reference.kubelet.options import OptionError
from numaproof.reference.topology import evaluation
from numaproof.reference.topology import options as topology_options
from numaproof.reference.topology import policy as policies
from numaproof.reference.topology.distances import Distances
from numaproof.reference.topology.hints import ANYWHERE, Hint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.reference.kubelet.gates import Maturity
    from numaproof.reference.topology.hints import Resources

_POLICIES = (policies.BEST_EFFORT, policies.RESTRICTED, policies.SINGLE_NUMA_NODE)
_LARGEST_NODE = 63


def merge(
    args: messages.MergeArgs,
    available: Mapping[str, Maturity],
    distances: type[Distances] = Distances,
) -> messages.Merged:
    """What a policy makes of the given hints, with every option open and any number of nodes.

    `available` has the options that exist and their maturity; `distances` orders sets of nodes if
    the closest are wanted.

    Raises:
        StartError: invalid policy options, or missing distances.
        ValueError: there is no such policy, or a node's id is not from 0 to 63.
    """
    if args.policy == policies.NONE:
        return messages.Merged(messages.Hint(None, preferred=False), admit=True)
    try:
        options = topology_options.parse(args.options, available, gates=None)
        rows = {node: (args.distances or {}).get(str(node)) for node in _checked(args.nodes)}
        if args.policy not in _POLICIES:
            raise ValueError(f"no Topology Manager policy {args.policy!r}")
        policy = policies.of_nodes(args.policy, options, rows, distances)
    except (OptionError, policies.TopologyManagerError) as error:
        raise StartError("topology", str(error)) from None
    kept, admit = policy.merge([_resources(provider) for provider in args.providers])
    return messages.Merged(messages.Hint(kept.numa, kept.preferred), admit)


def to_messages(resources: Resources) -> messages.ProviderHints:
    """A provider's hints as the protocol has them."""
    return {
        resource: None
        if hints is None
        else tuple(
            messages.Hint(NUMASet.from_mask(hint.nodes), hint.preferred)
            for hint in evaluation.listed(hints)
        )
        for resource, hints in resources.items()
    }


def _resources(provider: messages.ProviderHints | None) -> Resources:
    return {
        resource: None
        if hints is None
        else tuple(
            Hint(
                ANYWHERE if hint.numa is None else NUMASet(_checked(hint.numa)).mask,
                hint.preferred,
            )
            for hint in hints
        )
        for resource, hints in (provider or {}).items()
    }


def _checked(nodes: tuple[int, ...] | NUMASet) -> tuple[int, ...] | NUMASet:
    for node in nodes:
        if not 0 <= node <= _LARGEST_NODE:
            raise ValueError(f"NUMA node {node} is not from 0 to {_LARGEST_NODE}")
    return nodes
