"""Hypothesis strategies for machines, configurations, pods and whole scenarios.

The project's own fuzzing uses them, and so can property-based tests of other programs. Most values
are valid, and some machines are unusual. Everything shrinks towards one core, one node and one
Guaranteed container with one CPU::

    @given(machine=strategies.machines(most_nodes=2), data=st.data())
    def test_a_pod_never_gets_more_than_the_machine_has(machine, data):
        config = data.draw(strategies.kubelet_configurations(machine))
        pod = data.draw(strategies.pods(machine, "web"))
        ...

`numaproof.conformance.cases.manifests.manifest` converts a pod to a manifest. `seeded_scenario`
generates scenarios without Hypothesis.
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
    return Capabilities(Reference().hello(hello_args("numaproof")), NEWEST)


def machines(
    *, most_nodes: int = MAX_NODES, most_cpus: int = MAX_CPUS
) -> st.SearchStrategy[MachineInfo]:
    """Machines ranging from one core to `most_nodes` NUMA nodes and `most_cpus` CPUs.

    They have one to four sockets (or a node that spans sockets), and cores with one, two or four
    threads, whose ids can be adjacent or not. CPUs can be offline or missing, and node ids can have
    gaps. Nodes can lack CPUs or memory, and can differ in memory. There are huge pages of 2 MiB and
    1 GiB, uncore caches of any size, and distances.
    """
    return strategy_of(lambda choices: machine(choices, most_nodes=most_nodes, most_cpus=most_cpus))


def kubelet_configurations(
    machine: MachineInfo, capabilities: Capabilities | None = None
) -> st.SearchStrategy[KubeletConfiguration]:
    """Configurations for a machine, with the claimed policies and options.

    Without `capabilities`, everything in the newest release is possible. The kubelet refuses about
    one in ten.
    """

    def make(choices: Choices) -> KubeletConfiguration:
        facts = Facts(machine)
        about = focus(choices, facts, capabilities or _everything(), page_kinds(machine))
        return configuration(choices, facts, about)

    return strategy_of(make)


def pods(
    machine: MachineInfo, name: str = "pod", capabilities: Capabilities | None = None
) -> st.SearchStrategy[PodSpec]:
    """Pods that fit the machine, or nearly do.

    They cover every QoS class and can have init containers, sidecars, huge pages, devices of
    `vendor.example`, and occasionally pod-level resources.
    """

    def make(choices: Choices) -> PodSpec:
        facts = Facts(machine)
        about = focus(choices, facts, capabilities or _everything(), page_kinds(machine))
        reported = dict.fromkeys(making.RESOURCES[: about.devices], 4)
        free = making.whole_memory(facts) // making.MIB
        room = making.Room(facts, len(facts.all), free, reported)
        return making.pod(choices, name, room, about)

    return strategy_of(make)


def scenarios(capabilities: Capabilities | None = None) -> st.SearchStrategy[Case]:
    """Complete scenarios as cases: a machine, a start, and up to sixteen actions.

    Steps have no expectations. Run them with `numaproof.conformance.execution.run`, which checks
    the answers against the invariants and, if requested, the reference.
    """
    return strategy_of(lambda choices: scenario(choices, capabilities or _everything()))
