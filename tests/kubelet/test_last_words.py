"""The end of a kubelet's log says why it did not start, and which part of it did not."""

from __future__ import annotations

import pytest

from numaproof.kubelet import last_words
from numaproof.protocol.messages import Fault, StartRefused

MACHINE = (
    "I1126 16:32:03.140652       9 manager.go:229] Machine: {Timestamp:2026-11-26 16:32:03 +0000"
    " UTC CPUVendorID:AuthenticAMD NumCores:8}\n"
)
NODE_STATUS = (
    'E1126 16:34:07.049555       9 kubelet_node_status.go:721] "Failed to set some node status'
    ' fields" err="can\'t get ip address of node node. error: no default routes found in'
    ' \\"/proc/net/route\\"" node="node"\n'
)
NETWORK = (
    "E1126 16:34:07.750323      38 info.go:103] Failed to get network devices: open /sys/class/net:"
    " no such file or directory\n"
)
FAILED = 'E1126 16:34:08.023043      54 container_manager_linux.go:341] "Failed to initialize '
COMMAND = 'E1126 16:34:08.029362      54 run.go:72] "command failed" err='
START = 'E1126 16:34:07.054521       9 kubelet.go:1850] "Failed to start ContainerManager" err='
VALIDATE = "failed to validate kubelet configuration, error: invalid configuration: "
STATE = "could not restore state from checkpoint: unexpected end of JSON input"


@pytest.mark.parametrize(
    ("log", "stage", "message"),
    [
        pytest.param(
            f'{COMMAND}"failed to parse kubelet flag: unknown flag: --no-such"',
            "config",
            "failed to parse kubelet flag: unknown flag: --no-such",
            id="flag",
        ),
        pytest.param(
            f'{COMMAND}"{VALIDATE}topologyManagerScope (--topology-manager-scope) \\"x\\" must be'
            ' one of: \\"container\\", or \\"pod\\", path: &TypeMeta{Kind:,APIVersion:,}"',
            "config",
            f'{VALIDATE}topologyManagerScope (--topology-manager-scope) "x" must be one of:'
            ' "container", or "pod"',
            id="validation",
        ),
        pytest.param(
            f'{COMMAND}"failed to load kubelet config file, path: /run/config.json, error: failed'
            " to load Kubelet config file /run/config.json, error failed to decode: json: cannot"
            ' unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"',
            "config",
            "failed to decode: json: cannot unmarshal string into Go struct field"
            " KubeletConfiguration.maxPods of type int32",
            id="type",
        ),
        pytest.param(
            f'{COMMAND}"failed to run Kubelet: could not detect clock speed from output: \\"\\""',
            "discovery",
            'could not detect clock speed from output: ""',
            id="discovery",
        ),
        pytest.param(
            f'{MACHINE}{NETWORK}{COMMAND}"failed to run Kubelet: reserved-cpus: 77 is not a subset'
            ' of online-cpus: 0-7"',
            "config",
            "reserved-cpus: 77 is not a subset of online-cpus: 0-7",
            id="reserved CPUs",
        ),
        pytest.param(
            f'{MACHINE}{COMMAND}"failed to run Kubelet: topology manager policy options'
            " map[prefer-closest-numa-nodes:true] require feature gates"
            ' \\"TopologyManagerPolicyOptions\\" enabled"',
            "config",
            "topology manager policy options map[prefer-closest-numa-nodes:true] require feature"
            ' gates "TopologyManagerPolicyOptions" enabled',
            id="gate of a topology option",
        ),
        pytest.param(
            f'{MACHINE}{COMMAND}"failed to run Kubelet: unknown Topology Manager Policy option:'
            ' \\"no-such\\""',
            "topology",
            'unknown Topology Manager Policy option: "no-such"',
            id="topology option",
        ),
        pytest.param(
            f'{MACHINE}{COMMAND}"failed to run Kubelet: bad value for option'
            ' \\"prefer-closest-numa-nodes\\": strconv.ParseBool: parsing \\"maybe\\": invalid'
            ' syntax"',
            "topology",
            'bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "maybe":'
            " invalid syntax",
            id="value of a topology option",
        ),
        pytest.param(
            f'{MACHINE}{COMMAND}"failed to run Kubelet: the minimum value of'
            ' \\"max-allowable-numa-nodes\\" should not be less than 8"',
            "topology",
            'the minimum value of "max-allowable-numa-nodes" should not be less than 8',
            id="minimum of a topology option",
        ),
        pytest.param(
            f'{MACHINE}{COMMAND}"failed to run Kubelet: unsupported on machines with more than 8'
            ' NUMA Nodes"',
            "topology",
            "unsupported on machines with more than 8 NUMA Nodes",
            id="too many nodes",
        ),
        pytest.param(
            f'{MACHINE}{FAILED}cpu manager" err="unknown policy: \\"dynamic\\""\n'
            f'{COMMAND}"failed to run Kubelet: unknown policy: \\"dynamic\\""',
            "cpu",
            'unknown policy: "dynamic"',
            id="CPU Manager",
        ),
        pytest.param(
            f'{MACHINE}{FAILED}memory manager" err="the total amount \\"0\\""\n'
            f'{COMMAND}"failed to run Kubelet: the total amount \\"0\\""',
            "memory",
            'the total amount "0"',
            id="Memory Manager",
        ),
        pytest.param(
            f'{MACHINE}{NODE_STATUS}{START}"start cpu manager error: {STATE}"\n{NODE_STATUS}',
            "cpu",
            f"start cpu manager error: {STATE}",
            id="CPU Manager's checkpoint, and another error later",
        ),
        pytest.param(
            f'{MACHINE}{START}"start memory manager error: {STATE}"',
            "memory",
            f"start memory manager error: {STATE}",
            id="Memory Manager's checkpoint",
        ),
        pytest.param(
            f'{MACHINE}{START}"start device manager error: no space left on device"',
            "devices",
            "start device manager error: no space left on device",
            id="Device Manager",
        ),
        pytest.param(
            f'{MACHINE}{START}"invalid Node Allocatable configuration. Resource \\"memory\\" has a'
            " reservation of {{9663781273600 0} {<nil>}  BinarySI} but capacity of {{1024 0}"
            ' {<nil>}  BinarySI}. Expected capacity >= reservation. Resource \\"cpu\\" has a'
            " reservation of {{1500 -3} {<nil>}  DecimalSI} but capacity of {{1000 -3} {<nil>} "
            " DecimalSI}."
            ' Expected capacity >= reservation."',
            "config",
            'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 1500m but'
            ' capacity of 1. Expected capacity >= reservation. Resource "memory" has a reservation'
            " of 9216100Mi but capacity of 1Ki. Expected capacity >= reservation.",
            id="reservation",
        ),
        pytest.param(
            f"{MACHINE}{NODE_STATUS}",
            "config",
            "can't get ip address of node node. error: no default routes found in"
            ' "/proc/net/route"',
            id="only the error of another part",
        ),
        pytest.param("sh: 1: exec: not found", "config", "sh: 1: exec: not found", id="no klog"),
        pytest.param("", "config", "it wrote nothing and ended with exit code 1", id="silence"),
    ],
)
def test_a_refusal_has_its_stage_and_its_message(log: str, stage: str, message: str) -> None:
    assert last_words.refusal(log, 1) == StartRefused(stage, message)


PANIC = """\
panic: failed to merge global and in-flight KubeletConfiguration: unrecognized feature gate: NoSuch

goroutine 1 [running]:
k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1.SetDefaults_KubeletConfiguration(0xee8308)
"""


@pytest.mark.parametrize(
    ("crash", "message"),
    [
        (PANIC, PANIC.splitlines()[0]),
        ("fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1", None),
        ("[signal SIGSEGV: segmentation violation code=0x1 addr=0x0]\n", None),
    ],
)
def test_a_crash_is_a_fault_with_its_trace(crash: str, message: str | None) -> None:
    answer = last_words.refusal(f'{MACHINE}{COMMAND}"failed to run Kubelet"\n{crash}', 2)
    assert answer == Fault(message or crash.splitlines()[0], crash)


def test_a_crash_that_is_only_mentioned_is_none() -> None:
    answer = last_words.refusal(f'{COMMAND}"no panic: only words"', 1)
    assert answer == StartRefused("config", "no panic: only words")


def test_a_signal_is_a_crash() -> None:
    answer = last_words.refusal("first\nlast", -11)
    assert answer == Fault("it ended with signal SIGSEGV", "first\nlast")
