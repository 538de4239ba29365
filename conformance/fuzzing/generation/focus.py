"""The focus of a run: each run leaves out some managers, options and kinds of pods.

Runs that use a little of everything never reach deep states; runs that each leave out a lot do
(swarm testing). The focus also limits the size of merges: the kubelet tries every combination of
hints, so machines with many nodes get few hint providers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from numaproof.reference.cpu.options import ACROSS_NUMA, FULL_CORES
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.conformance.cases.machine_properties import Facts
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices


MAX_MERGES = 1 << 18
"""Maximum number of combinations of hints for a container; a kubelet merges this many in 0.1 s."""

_SINGLE = ("none", "single-numa-node")
"""Topology policies that merge at most one hint for each node and provider."""

_MAX_PROVIDERS = 5


InitKind = Literal["init", "sidecar"]


@dataclass(frozen=True, slots=True)
class Focus:
    """The features that a run may use.

    Attributes:
        cpu_policies: the CPU Manager policies to choose from; similarly for the other managers.
        cpu_options: the static policy's options to choose from.
        endless: whether to combine the two options that can make a kubelet loop forever. Every
            start of the run then has both, so that no core is ever partly used.
        hugepages: the huge page resources that pods may request.
        devices: the number of device plugins.
        inits: the kinds of init containers in pods; empty for none.
        any_class: whether pods that are not Guaranteed are common.
        pod_level: whether pods may have pod-level resources.
        pod_level_gates: the release's feature gates for such pods, and their defaults.
        mistakes: whether configurations may be invalid.
        gates: whether feature gates may be changed.
    """

    cpu_policies: tuple[str, ...]
    cpu_options: tuple[str, ...]
    endless: bool
    memory_policies: tuple[str, ...]
    hugepages: tuple[str, ...]
    topology_policies: tuple[str, ...]
    topology_options: tuple[str, ...]
    scopes: tuple[str, ...]
    devices: int
    inits: tuple[InitKind, ...]
    any_class: bool
    pod_level: bool
    pod_level_gates: Mapping[str, bool]
    mistakes: bool
    gates: bool

    @property
    def static_memory(self) -> bool:
        """Whether the Memory Manager can use the Static policy."""
        return "Static" in self.memory_policies


def most_providers(nodes: int) -> int:
    """Returns how many resources may have hints for all subsets of `nodes` nodes."""
    hints = (1 << nodes) - 1
    count, product = 1, hints * hints
    while product <= MAX_MERGES and count < _MAX_PROVIDERS:
        count, product = count + 1, product * hints
    return count


def focus(
    choices: Choices, facts: Facts, capabilities: Capabilities, page_kinds: Sequence[str]
) -> Focus:
    """Chooses the focus of a run on a machine, within the capabilities."""
    hello = capabilities.hello
    policies = _topology_policies(choices, hello.policies.topology)
    room = 6 if set(policies) <= set(_SINGLE) else most_providers(len(facts.nodes))
    cpu = "static" in hello.policies.cpu and not choices.chance(8)
    room -= cpu
    memory = "Static" in hello.policies.memory and room > 0 and not choices.chance(3)
    room -= memory
    pages = tuple(page_kinds) if memory and room >= len(page_kinds) and choices.chance(2) else ()
    if not capabilities.makes("feature huge-pages"):
        pages = ()
    room -= len(pages)
    devices = 0
    if capabilities.has("devices") and room > 0:
        devices = choices.pick((0, 0, 1, min(2, room)))
    options, endless = _cpu_options(choices, capabilities.cpu_options()) if cpu else ((), False)
    return Focus(
        cpu_policies=_only(hello.policies.cpu, "static", "none", on=cpu),
        cpu_options=options,
        endless=endless,
        memory_policies=_only(hello.policies.memory, "Static", "None", on=memory),
        hugepages=pages,
        topology_policies=policies,
        topology_options=capabilities.topology_options() if choices.chance(2) else (),
        scopes=_scopes(choices, hello.policies.scope),
        devices=devices,
        inits=_inits(capabilities) if choices.chance(2) else (),
        any_class=choices.chance(4),
        pod_level=choices.chance(8) and capabilities.makes("feature pod-level-resources"),
        pod_level_gates={
            name: gate.default
            for name, gate in release(capabilities.kubernetes).gates.items()
            if name.startswith("PodLevelResource")
        },
        mistakes=choices.chance(4) and capabilities.makes("feature configuration-validation"),
        gates=choices.chance(4) and capabilities.makes("feature feature-gates"),
    )


def _inits(capabilities: Capabilities) -> tuple[InitKind, ...]:
    kinds: tuple[tuple[InitKind, str], ...] = (
        ("init", "feature init-containers"),
        ("sidecar", "feature sidecars"),
    )
    return tuple(kind for kind, claim in kinds if capabilities.makes(claim))


def _only(
    claimed_policies: Sequence[str], main_policy: str, other_policy: str, *, on: bool
) -> tuple[str, ...]:
    """Returns the claimed policies to choose from, mostly `main_policy` if `on`."""
    weighted = (main_policy,) * 7 + (other_policy,) if on else (other_policy,)
    return tuple(policy for policy in weighted if policy in claimed_policies)


def _topology_policies(choices: Choices, claimed_policies: Sequence[str]) -> tuple[str, ...]:
    if not claimed_policies:
        return ()
    kind = choices.pick(("one", "one", "some", "single"))
    if kind == "one":
        return (choices.pick(claimed_policies),)
    if kind == "single":
        return tuple(policy for policy in claimed_policies if policy in _SINGLE) or (
            claimed_policies[0],
        )
    return tuple(claimed_policies)


def _scopes(choices: Choices, claimed_scopes: Sequence[str]) -> tuple[str, ...]:
    return tuple(choices.some(claimed_scopes, 1, len(claimed_scopes))) if claimed_scopes else ()


def _cpu_options(choices: Choices, claimed_options: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Chooses options, and whether the pair that can cause an endless loop is always on."""
    both = {FULL_CORES, ACROSS_NUMA} <= set(claimed_options)
    if both and choices.chance(8):
        return tuple(claimed_options), True
    chosen = choices.some(claimed_options, 0, 3)
    if both and FULL_CORES in chosen and ACROSS_NUMA in chosen:
        chosen.remove(choices.pick((ACROSS_NUMA, FULL_CORES)))
    return tuple(chosen), False
