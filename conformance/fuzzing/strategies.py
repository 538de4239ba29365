"""Hypothesis strategies for machines, configurations, pods and whole scenarios.

They are for the project's own fuzzing and for properties that people write about their own
programs. What they make is legal more often than not, with the odd shapes that real machines
have. Everything shrinks towards one core, one node, one Guaranteed container with one CPU::

    @given(machine=strategies.machines(most_nodes=2), data=st.data())
    def test_a_pod_never_gets_more_than_the_machine_has(machine, data):
        config = data.draw(strategies.kubelet_configurations(machine))
        pod = data.draw(strategies.pods(machine, "web"))
        ...

A pod becomes a manifest with `numaproof.conformance.cases.manifests.manifest`. What a seed makes
without Hypothesis is `seeded_scenario`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.fuzzing.generation import pods as making
from numaproof.conformance.fuzzing.generation.choices import Choices, strategy_of
from numaproof.conformance.fuzzing.generation.configurations import configuration
from numaproof.conformance.fuzzing.generation.focus import focus
from numaproof.conformance.fuzzing.generation.machines import (
    MAX_CPUS,
    MAX_NODES,
    machine,
    page_kinds,
)
from numaproof.conformance.fuzzing.generation.scenarios import scenario, seeded_scenario
from numaproof.protocol.releases import NEWEST
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from hypothesis import strategies as st

    from numaproof.conformance.cases.schema import Case, PodSpec
    from numaproof.protocol.machine import MachineInfo
    from numaproof.protocol.messages import KubeletConfiguration

__all__ = ["kubelet_configurations", "machines", "pods", "scenarios", "seeded_scenario"]


@cache
def _everything() -> Capabilities:
    """The claims of the reference: all that can be asked of a kubelet."""
    return Capabilities(Reference().hello(hello_args("numaproof")), NEWEST)


def machines(
    *, most_nodes: int = MAX_NODES, most_cpus: int = MAX_CPUS
) -> st.SearchStrategy[MachineInfo]:
    """Machines, from one core to `most_nodes` NUMA nodes and `most_cpus` CPUs.

    One to four sockets (or a node that spans them), one, two or four threads a core, numbered
    either way, some offline or missing; node ids with gaps; nodes without CPUs or without
    memory; unequal memory, huge pages of 2 MiB and 1 GiB; uncore caches of any size; distances.
    """
    return strategy_of(lambda choices: machine(choices, most_nodes=most_nodes, most_cpus=most_cpus))


def kubelet_configurations(
    machine: MachineInfo, capabilities: Capabilities | None = None
) -> st.SearchStrategy[KubeletConfiguration]:
    """Configurations for a machine, with the policies and options that are claimed.

    Without `capabilities`, with all that the newest release has. About one in ten is one that a
    kubelet refuses.
    """

    def make(choices: Choices) -> KubeletConfiguration:
        facts = Facts(machine)
        about = focus(choices, facts, capabilities or _everything(), page_kinds(machine))
        return configuration(choices, facts, about)

    return strategy_of(make)


def pods(
    machine: MachineInfo, name: str = "pod", capabilities: Capabilities | None = None
) -> st.SearchStrategy[PodSpec]:
    """Pods whose sizes fit the machine, or nearly.

    Of every QoS class, with init containers, sidecars, huge pages, devices of `vendor.example`,
    and rarely with resources of the pod as a whole.
    """

    def make(choices: Choices) -> PodSpec:
        facts = Facts(machine)
        about = focus(choices, facts, capabilities or _everything(), page_kinds(machine))
        reported = dict.fromkeys(making.RESOURCES[: about.devices], 4)
        return making.pod(choices, name, making.Room(facts, len(facts.all), reported), about)

    return strategy_of(make)


def scenarios(capabilities: Capabilities | None = None) -> st.SearchStrategy[Case]:
    """Whole scenarios as cases: a machine, a start, and up to sixteen things that happen then.

    Every step expects anything: play them with `numaproof.conformance.execution.run`, which holds
    the answers against the invariants, and against the reference where it is asked to.
    """
    return strategy_of(lambda choices: scenario(choices, capabilities or _everything()))
