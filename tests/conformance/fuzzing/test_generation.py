"""Generated machines, configurations, pods and scenarios."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from numaproof.conformance.cases.machine_properties import Facts
from numaproof.conformance.cases.manifests import manifest
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import hello_args
from numaproof.conformance.fuzzing import strategies
from numaproof.conformance.fuzzing.generation import focus, pods
from numaproof.conformance.fuzzing.generation.choices import Seeded
from numaproof.conformance.fuzzing.generation.life import NodeScenario
from numaproof.conformance.fuzzing.generation.machines import machine as make_machine
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference
from numaproof.reference.pods.manifest import read_pod

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case, PodSpec
    from numaproof.protocol.machine import MachineInfo

QUICK = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)

HELLO = Reference().hello(hello_args("tests"))
CLAIMS = Capabilities(HELLO, "1.35")
MANY = 300


@pytest.fixture(scope="module")
def scenarios() -> list[Case]:
    """A few hundred scenarios with their machines."""
    return [strategies.seeded_scenario(seed, CLAIMS) for seed in range(MANY)]


def machine_of(case: Case) -> MachineInfo:
    assert case.machine is not None
    return case.machine


# Machines


@QUICK
@given(machine=strategies.machines())
def test_generated_machines_are_consistent(machine: MachineInfo) -> None:
    facts = Facts(machine)
    cpus = [cpu for core in facts.cores for cpu in core]
    assert len(cpus) == len(set(cpus)) == machine.num_cores <= 64
    assert 0 in facts.all
    nodes = machine.topology or ()
    assert len(facts.nodes) == len(nodes) <= 12
    assert max(facts.nodes) <= 63
    assert all(len(node.distances or ()) == len(nodes) for node in nodes)
    assert sum(node.memory for node in nodes) == machine.memory_capacity > 0
    sizes = {tuple(page.page_size for page in node.hugepages or ()) for node in nodes}
    assert sizes == {tuple(page.page_size for page in machine.hugepages or ())}


def test_every_kind_of_machine_is_generated(scenarios: list[Case]) -> None:
    seen: Counter[str] = Counter()
    for case in scenarios:
        facts = Facts(machine_of(case))
        nodes = machine_of(case).topology or ()
        ids = [node.node_id for node in nodes]
        seen["one node"] += len(nodes) == 1
        seen["wide"] += len(nodes) > 8
        seen["gaps"] += ids != list(range(len(ids)))
        seen["memory-only node"] += any(not cpus for cpus in facts.nodes.values())
        seen["node without memory"] += any(not node.memory for node in nodes)
        seen["unequal memory"] += len({node.memory for node in nodes}) > 1
        seen["huge pages"] += bool(nodes[0].hugepages)
        seen["no SMT"] += facts.properties["smt"] == 1
        seen["uneven cores"] += not facts.properties["uniform"]
        seen["several sockets"] += len(facts.sockets) > 1
        seen["node of several sockets"] += len(facts.sockets) > len(nodes)
        seen["no uncore caches"] += not facts.uncore_caches
        seen["far nodes"] += not facts.properties["equidistant"]
    assert min(seen.values()) >= 3, seen
    assert seen["one node"] > MANY // 5


# Configurations


@QUICK
@given(data=st.data())
def test_configurations_use_claimed_policies_and_options(data: st.DataObject) -> None:
    hello = msgspec.structs.replace(
        HELLO,
        policies=messages.Policies(cpu=("static",)),
        options=messages.Options(cpu=("full-pcpus-only", "unheard-of")),
    )
    machine = data.draw(strategies.machines())
    config = data.draw(strategies.kubelet_configurations(machine, Capabilities(hello, "1.35")))
    assert config.get("cpuManagerPolicy") in ("static", None)
    assert {"memoryManagerPolicy", "topologyManagerPolicy"}.isdisjoint(config)
    options = set(config.get("cpuManagerPolicyOptions", ()))
    assert options <= {"full-pcpus-only", "unheard-of"}


# Pods


def offered_pods(scenarios: list[Case]) -> list[PodSpec]:
    found = [step.admit for case in scenarios for step in case.steps if step.admit]
    return [pod for pod in found if not isinstance(pod, str)]


def test_every_kind_of_pod_is_generated(scenarios: list[Case]) -> None:
    seen: Counter[str] = Counter()
    for pod in offered_pods(scenarios):
        every = [*pod.containers.values(), *pod.init.values()]
        asked = {name for one in every for name in one.limits}
        seen[read_pod(manifest(pod)).qos] += 1
        seen["init"] += bool(pod.init)
        seen["sidecar"] += any(one.restartPolicy for one in pod.init.values())
        seen["huge pages"] += any(name.startswith("hugepages") for name in asked)
        seen["devices"] += not asked.isdisjoint(pods.RESOURCES)
        seen["pod-level"] += bool(pod.resources)
    assert min(seen.values()) >= 10, seen
    assert seen["Guaranteed"] > seen["Burstable"] + seen["BestEffort"]


# Scenarios


def test_every_kind_of_call_is_generated(scenarios: list[Case]) -> None:
    seen: Counter[str] = Counter()
    for step in (step for case in scenarios for step in case.steps):
        seen[step.verb] += 1
        if step.start:
            config = step.start.config
            seen["gone"] += bool(step.start.removed_pods)
            seen["offline"] += bool(step.start.offline)
            seen["memory"] += bool(step.start.memory)
            for key in ("cpuManagerPolicyOptions", "topologyManagerPolicyOptions"):
                seen.update([*config.get(key, ())])
            seen.update((config.get("topologyManagerPolicy", "none"),))
            seen.update((config.get("topologyManagerScope", "container"),))
            seen.update((config.get("memoryManagerPolicy", "None"),))
        if step.tamper:
            seen[step.tamper.how] += 1
            seen[step.tamper.file] += 1
        if step.remove and not isinstance(step.remove, str):
            seen["container removed"] += step.remove.container is not None
        for ones in (step.devices or {}).values():
            seen["unhealthy"] += any(getattr(one, "healthy", True) is False for one in ones)
    never = {"state", "discover"}
    missing = [name for name, count in seen.items() if count < 3 and name != "unheard-of"]
    assert not missing, missing
    verbs = {"start", "admit", "remove", "hints", "reconcile", "assign", "merge", "devices"}
    assert verbs | {"tamper", "gone", "offline", "memory", "unhealthy"} <= set(seen)
    assert never.isdisjoint(seen)
    assert set(CLAIMS.cpu_options()) | set(HELLO.options.topology) <= set(seen)
    assert {*HELLO.policies.topology, "pod", "Static", "unhealthy"} <= set(seen)


def test_containers_on_wide_machines_have_few_hint_providers() -> None:
    for seed in range(MANY):
        choices = Seeded(seed)
        facts = Facts(make_machine(choices))
        life = NodeScenario(choices, facts.machine, CLAIMS)
        about = life.focus
        if set(about.topology_policies) <= {"none", "single-numa-node"}:
            continue
        providers = (
            ("static" in about.cpu_policies)
            + ("Static" in about.memory_policies)
            + len(about.hugepages)
            + about.devices
        )
        hints = (1 << len(facts.nodes)) - 1
        assert providers <= 1 or hints**providers <= focus.MAX_MERGES


def test_devices_on_equal_nodes_change_together() -> None:
    facts = Facts(make_machine(Seeded(3)))
    for seed in range(100):
        choices = Seeded(seed)
        before = pods.device_lists(choices, facts, 2)
        after = pods.changed_devices(choices, facts, before, pods.RESOURCES)
        for resource, ones in before.items():
            kept = after[resource][: len(ones)]
            assert [one.numa for one in kept] == [one.numa for one in ones]
            health = {(one.numa, one.healthy) for one in kept}
            assert len(health) == len({one.numa for one in kept})


def test_devices_that_a_pod_may_hold_are_not_removed() -> None:
    facts = Facts(make_machine(Seeded(3)))
    gone = 0
    for seed in range(100):
        before = pods.device_lists(Seeded(seed), facts, 1)
        (resource,) = before
        for asked in ((), (resource,)):
            after = pods.changed_devices(Seeded(seed + 1000), facts, before, asked)
            fewer = len(after[resource]) < len(before[resource])
            assert not (fewer and asked)
            gone += fewer
    assert gone
