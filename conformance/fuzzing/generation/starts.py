"""Starts with something odd in them: a field, a name or a checkpoint that may be refused.

A life seldom has such a thing, since a node that does not start has no life. Here each start has
one, on a machine and with a configuration as lives have them; where it is taken, a pod follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.schema import NoArguments, StartStep, Step, TamperStep
from numaproof.conformance.fuzzing.generation.life import Life
from numaproof.conformance.fuzzing.generation.machines import machine
from numaproof.conformance.fuzzing.generation.scenarios import case_of

if TYPE_CHECKING:
    from numaproof.conformance.cases.schema import Case, FileName
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.fuzzing.generation.choices import Choices

_TEXTS: tuple[Any, ...] = (5, True, 1.5, [], {})
"""Values that are not text."""

_AMOUNTS = (
    {"cpu": "-500m"},
    {"cpu": "1 core"},
    {"cpu": "0"},
    {"cpu": "400u"},
    {"cpu": "1000400u"},
    {"cpu": "1.0005"},
    {"cpu": "999499001n"},
    {"vendor.example/nic": "1"},
)

_FIELDS: dict[str, tuple[Any, ...]] = {
    "cpuManagerPolicy": (None, "", "none", "dynamic", "Static", *_TEXTS),
    "memoryManagerPolicy": (None, "", "None", "Dynamic", "static", "BestEffort", *_TEXTS),
    "topologyManagerPolicy": (None, "", "always", "Restricted", *_TEXTS),
    "topologyManagerScope": (None, "", "node", "Pod", "pod", *_TEXTS),
    "cpuManagerReconcilePeriod": ("soon", "10", "1m30.5s", "10s", "-1s", "1.5h", "", *_TEXTS),
    "reservedSystemCPUs": ("", "all", "0-x", "3-1", "0,0", "0-4095", "-1", "1-", *_TEXTS),
    "systemReserved": (
        *_AMOUNTS,
        {"cpu": "1", "ephemeral-storage": "1Gi", "pid": "100"},
        {"memory": "-1Mi"},
        {"cpu": 1},
        "1",
    ),
    "kubeReserved": (*_AMOUNTS, {"cpu": "100m", "pid": "1000"}, {"memory": "lots"}, {}, []),
    "cpuManagerPolicyOptions": (
        {"half-pcpus-only": "true"},
        {"full-pcpus-only": "yes"},
        {"full-pcpus-only": ""},
        {"strict-cpu-reservation": "tRUE"},
        {"strict-cpu-reservation": "T"},
        {"full-pcpus-only": True},
        {"prefer-closest-numa-nodes": "true"},
        {"distribute-cpus-across-numa": "1"},
        {},
    ),
    "topologyManagerPolicyOptions": (
        {"prefer-far-nodes": "true"},
        {"full-pcpus-only": "true"},
        {"prefer-closest-numa-nodes": "yes"},
        {"max-allowable-numa-nodes": "9.5"},
        {"max-allowable-numa-nodes": "true"},
        {"max-allowable-numa-nodes": "7"},
        {"max-allowable-numa-nodes": "+9"},
        {"max-allowable-numa-nodes": 9},
        {},
    ),
    "reservedMemory": (
        [{"numaNode": "0", "limits": {"memory": "1Gi"}}],
        [{"numaNode": 0, "limits": {"memory": "lots"}}],
        [{"numaNode": 0, "limits": {"memory": "0"}}],
        [{"numaNode": 1.5, "limits": {"memory": "1Gi"}}],
        [{"numaNode": 0, "limits": {"cpu": "1"}}],
        [{"limits": {"memory": "100Mi"}}],
        {"0": "1Gi"},
        [],
    ),
    "mergeDefaultEvictionSettings": (None, True, False, "true", 1),
    "evictionHard": (
        {"memory.free": "100Mi"},
        {"memory.available": "lots"},
        {"memory.available": "many%"},
        {"memory.available": "101%"},
        {"memory.available": "-1"},
        {"nodefs.available": "5%"},
        {},
    ),
    "featureGates": (
        {"CPUManagerPolicyBetaOptions": False},
        {"CPUManagerPolicyAlphaOptions": False},
        {"TopologyManagerPolicyBetaOptions": False},
        {"CPUManagerPolicyOptions": False},
        {"TopologyManagerPolicyOptions": False},
        {"MemoryManager": False},
        {"PodLevelResources": False},
        {"PodLevelResourceManagers": True},
        {"AllBeta": False},
        {"AllAlpha": False},
        {},
    ),
}
"""Values that people write into each field; a kubelet accepts few of them."""

_FILES: dict[FileName, tuple[str, ...]] = {
    "cpu_manager_state": (
        "",
        "{}",
        "[]",
        "null",
        "garbage",
        '{"policyName":"static",}',
        '{"policyName":"static","defaultCpuSet":7}',
        '{"policyName":"static","defaultCpuSet":"0-7","entries":[]}',
        '{"policyName":"static","defaultCpuSet":"0-7"}',
        '{"policyName":"none","defaultCpuSet":""}',
        '{"policyName":"static","defaultCpuSet":"","checksum":3083571066}',
        '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}',
        '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
        '{"policyName":"static","defaultCpuSet":"0,3-7","entries":{"c0ffee":"1-2"},"checksum":0}',
    ),
    "memory_manager_state": (
        "{}",
        "[]",
        "garbage",
        '{"policyName":"None","machineState":{}}',
        '{"policyName":"None","machineState":{},"checksum":4236770233}',
        '{"policyName":"Static","machineState":{"zero":{}},"checksum":1}',
        '{"policyName":"Static","machineState":[],"checksum":1}',
    ),
}
"""What a checkpoint may contain that no kubelet of this node wrote."""


def start(choices: Choices, capabilities: Capabilities, name: str = "start") -> Case:
    """A scenario of one odd start, followed by a pod and a request for the state."""
    info = machine(choices)
    life = Life(choices, info, capabilities)
    (first,) = life.begin(choices)
    assert first.start is not None
    steps = []
    config = dict(first.start.config)
    if choices.chance(4):
        file = choices.pick(sorted(_FILES))
        text = choices.pick(_FILES[file])
        if life.keeps_files:
            steps.append(Step(tamper=TamperStep(file=file, how="write", text=text)))
    if not steps or choices.chance(2):
        field = choices.pick(sorted(_FIELDS))
        odd = {**config, field: choices.pick(_FIELDS[field])}
        config = odd if life.claimed(odd) else config
    begun = StartStep(config=config, devices=first.start.devices)
    steps.append(Step(start=begun, expect="anything"))
    if capabilities.has("admit"):
        steps += life.admit(choices)
    if capabilities.has("state"):
        steps.append(Step(state=NoArguments(), expect="anything"))
    return case_of(name, "A made-up start", steps, info)
