"""Unusual starts in a node's life: odd fields, checkpoints of other nodes, switched feature gates.

Most lives do without, because nothing else can happen on a node that does not start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numaproof.conformance.cases.schema import FileName, StartStep, Step, TamperStep, open_step
from numaproof.conformance.claims import needs
from numaproof.conformance.fuzzing.generation.checkpoint_pairs import CPUS, MEMORY, any_pair
from numaproof.conformance.fuzzing.generation.life import Action
from numaproof.reference.deviations.releases import release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.conformance.fuzzing.generation.life import NodeScenario

_TEXTS: tuple[Any, ...] = (5, True, 1.5, [], {})
"""Values that are not strings."""

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
"""Plausible values for each field; the kubelet accepts few of them."""

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
"""Checkpoint contents that no kubelet of this node wrote."""


def unusual_start(choices: Choices, life: NodeScenario, **what: Any) -> list[Step]:
    """Starts with an odd field or an odd checkpoint; the life's own configuration stays."""
    steps = []
    config = dict(life.config)
    if choices.chance(4):
        file = choices.pick(sorted(_FILES))
        text = choices.pick(_FILES[file])
        if life.keeps_files:
            steps.append(Step(tamper=TamperStep(file=file, how="write", text=text)))
    if not steps or choices.chance(2):
        field = choices.pick(sorted(_FIELDS))
        odd = {**config, field: choices.pick(_FIELDS[field])}
        config = odd if life.is_claimed(odd) else config
    return [*steps, open_step(start=StartStep(config=config, **what))]


def _restart(life: NodeScenario, choices: Choices) -> tuple[Step, ...]:
    """Restarts unusually, and then usually restarts as before."""
    steps = unusual_start(choices, life)
    if choices.chance(4):
        return tuple(steps)
    return (*steps, open_step(start=StartStep(config=life.config)))


_MANAGERS = ("CPUManager", "MemoryManager", "TopologyManager", "PodLevelResource", "InPlacePod")
"""How the names of the managers' feature gates begin."""


def _switch_gate(life: NodeScenario, choices: Choices) -> tuple[Step, ...]:
    """Restarts with a feature gate switched, and the gates that it needs or that need it."""
    known = release(life.capabilities.kubernetes).gates
    gates = life.config.get("featureGates", {})
    name = choices.pick(
        [
            one
            for one, gate in sorted(known.items())
            if one.startswith(_MANAGERS) and not gate.is_locked
        ]
    )
    on = not gates.get(name, known[name].default)
    others = known[name].needs if on else [one for one in known if name in known[one].needs]
    config = {**life.config, "featureGates": {**gates, **dict.fromkeys((name, *others), on)}}
    if not life.is_claimed(config):
        return ()
    life.config = config
    return (open_step(start=StartStep(config=config)),)


def _find_checkpoint(life: NodeScenario, choices: Choices) -> tuple[Step, ...]:
    """Restarts with a checkpoint of another node; usually deletes it and restarts again."""
    manager = choices.pick((CPUS, MEMORY))
    text = any_pair(choices, manager)
    # Under the other policy, a kubelet believes files that no kubelet would write.
    if life.config.get(manager.option) != manager.policies[0]:
        return ()
    start = open_step(start=StartStep(config=life.config))
    found = (open_step(tamper=TamperStep(manager.file, "write", text)), start)
    if choices.chance(4):
        return found
    return (*found, open_step(tamper=TamperStep(manager.file, "delete")), start)


def _always(_: NodeScenario) -> bool:
    return True


_AGAIN = ("operation start", "feature restart", "feature reconfiguration")

UNUSUAL_ACTIONS: Mapping[str, Action] = {
    "restart unusually": Action(_AGAIN, _always, _restart),
    "switch a gate": Action((*_AGAIN, "feature feature-gates"), _always, _switch_gate),
    "find a checkpoint": Action((*_AGAIN, needs.CHECKPOINT_FILES), _always, _find_checkpoint),
}
"""Actions of lineages. Among `ACTIONS`, they would change the life of every seed."""
