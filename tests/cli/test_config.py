"""`numaproof config check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numaproof.reference import startup

Command = Callable[..., Any]

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.fixture
def judge(command: Command) -> Command:
    def run(text: str, *more: str, machine: str = "laptop-4c8t") -> Any:
        Path("kubelet.yaml").write_text(HEAD + text)
        return command("config", "check", "kubelet.yaml", "--machine", machine, *more)

    return run


@pytest.fixture
def fields(judge: Command) -> Command:
    """The fields that findings are about, and all messages as one text."""

    def run(text: str, *more: str, machine: str = "laptop-4c8t") -> tuple[list[str], str]:
        found = judge(text, "--json", *more, machine=machine).json()
        return [one["field"] for one in found], "\n".join(one["message"] for one in found)

    return run


def test_a_sound_configuration_has_no_findings(judge: Command) -> None:
    ended = judge('cpuManagerPolicy: static\nreservedSystemCPUs: "0-1"\n')
    assert (ended.code, ended.out) == (0, "")


def test_every_error_is_reported_with_its_line(judge: Command) -> None:
    ended = judge('cpuManagerPolicy: odd\nreservedSystemCPUs: "99"\n')
    assert ended.code == 1
    assert "kubelet.yaml:4: error: reservedSystemCPUs" in ended.out
    assert "kubelet.yaml:3: error: cpuManagerPolicy" in ended.out
    assert "[Control CPU Management Policies on the Node]" in ended.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('reservedSystemCPUs: "0-99999999"', "reservedSystemCPUs: not supported: CPU 99999999"),
        ('kubeReserved: {cpu: "1e401"}', "kubeReserved.cpu: not supported: 1e401: an exponent"),
        (
            f'systemReserved: {{memory: "1.{"0" * 600}"}}',
            "systemReserved.memory: not supported: a quantity of more than 500 characters",
        ),
    ],
)
def test_what_is_beyond_our_bounds_is_not_said_to_be_refused_by_the_kubelet(
    judge: Command, command: Command, text: str, said: str
) -> None:
    ended = judge(f"{text}\n")
    assert (ended.code, ended.out) == (2, "")
    assert f"kubelet.yaml:3: {said}" in ended.err
    Path("pods.yaml").write_text(POD, encoding="utf-8")
    node = ("--machine", "laptop-4c8t", "--config", "kubelet.yaml")
    for args in (
        ("simulate", *node, "pods.yaml"),
        ("upgrade", *node, "--from", "1.35", "--to", "1.36"),
    ):
        ended = command(*args)
        assert ended.code == 2
        assert f"kubelet.yaml:3: {said}" in ended.err


def test_a_quantity_of_a_pod_beyond_our_bounds_is_named_with_its_line(
    judge: Command, command: Command
) -> None:
    judge("")
    Path("pods.yaml").write_text(POD.replace("cpu: 1", "cpu: 1e401"), encoding="utf-8")
    ended = command("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "pods.yaml")
    assert ended.code == 2
    assert "pods.yaml:8: " in ended.err
    assert "an exponent beyond 400 is not supported" in ended.err


POD = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: app
    resources:
      limits: {cpu: 1, memory: 1Gi}
"""

MANY = """
topologyManagerPolicy: odd
topologyManagerScope: node
cpuManagerPolicy: static
cpuManagerPolicyOptions:
  full-pcpus-only: "maybe"
  no-such-option: "true"
memoryManagerPolicy: Static
reservedMemory:
- {numaNode: 7, limits: {memory: 1Gi}}
kubeReserved:
  gpu: "1"
evictionHard:
  memory.available: 150%
  disk.available: 1Gi
"""


def test_every_error_of_every_stage_is_reported_at_its_own_field(fields: Command) -> None:
    found, _ = fields(MANY)
    assert found == [
        "topologyManagerPolicy",
        "topologyManagerScope",
        "kubeReserved.gpu",
        "evictionHard.disk.available",
        "evictionHard.memory.available",
        "cpuManagerPolicy",
        "cpuManagerPolicyOptions.full-pcpus-only",
        "cpuManagerPolicyOptions.no-such-option",
        "reservedMemory[0].numaNode",
    ]


def test_after_a_hundred_errors_the_rest_waits_until_they_are_fixed(fields: Command) -> None:
    gates = "".join(f"  unknown{number}: true\n" for number in range(120))
    found, told = fields(f"featureGates:\n{gates}")
    assert len(found) == 101
    assert told.endswith("... and more than these 100")


def test_among_thousands_of_parts_the_whole_is_named(fields: Command) -> None:
    rows = "".join(f"- {{numaNode: {node}, limits: {{memory: x}}}}\n" for node in range(300))
    found, _ = fields(f"reservedMemory:\n{rows}")
    assert found == ["reservedMemory"]


def test_one_validation_with_two_problems_is_reported_as_two(judge: Command) -> None:
    found = judge(MANY, "--json").json()
    assert found[0]["message"].startswith("topologyManagerPolicy (--topology-manager-policy)")
    assert found[0]["message"].endswith('"single-numa-node"]')
    assert found[1]["message"].endswith('"container", or "pod"')
    assert [one["line"] for one in found[:3]] == [4, 5, 14]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("cpuManagerPolicy: static\n", "cpuManagerPolicy"),
        ('cpuManagerPolicy: static\nsystemReserved: {cpu: "64"}\n', "systemReserved.cpu"),
        (
            "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n",
            "cpuManagerPolicyOptions.full-pcpus-only",
        ),
        ("featureGates: {NoSuchGate: true}\n", "featureGates.NoSuchGate"),
        (
            "featureGates: {CPUManagerPolicyOptions: false}\n",
            "featureGates.CPUManagerPolicyOptions",
        ),
        (
            "featureGates: {StorageVersionAPI: true, APIServerIdentity: false}\n",
            "featureGates.StorageVersionAPI",
        ),
        ("cpuManagerReconcilePeriod: soon\n", "cpuManagerReconcilePeriod"),
        ("memoryManagerPolicy: static\n", "memoryManagerPolicy"),
        ("memoryManagerPolicy: Static\nevictionHard: {}\n", "memoryManagerPolicy"),
        (
            "memoryManagerPolicy: Static\nreservedMemory: [{limits: {memory: 1Gi}}]\n",
            "reservedMemory",
        ),
        ("reservedMemory: [{numaNode: x}]\n", "reservedMemory[0].numaNode"),
        ("reservedMemory: [{limits: {cpu: 1}}]\n", "reservedMemory[0].limits.cpu"),
        ("reservedMemory: [{limits: {memory: 0}}]\n", "reservedMemory[0].limits.memory"),
        ("reservedMemory: [{limits: {memory: null}}]\n", "reservedMemory[0].limits.memory"),
        ("reservedMemory: [{limits: {memory: x}}]\n", "reservedMemory[0].limits.memory"),
        ("kubeReserved: 5\n", "kubeReserved"),
        ("evictionHard: {pid.available: lots}\n", "evictionHard.pid.available"),
        ("cpuManagerPolicy: 5\n", "cpuManagerPolicy"),
        (
            (
                "topologyManagerPolicy: restricted\n"
                "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '3'}\n"
            ),
            "topologyManagerPolicyOptions.max-allowable-numa-nodes",
        ),
        ("reservedSystemCPUs: '0'\nkubeReservedCgroup: /a\n", "reservedSystemCPUs"),
        ("reservedSystemCPUs: a\n", "reservedSystemCPUs"),
    ],
)
def test_an_error_is_put_down_to_the_field_that_it_is_about(
    fields: Command, text: str, field: str
) -> None:
    found, _ = fields(text)
    assert found[0] == field


def test_a_machine_with_many_nodes_needs_an_option_or_policy_none(judge: Command) -> None:
    ended = judge("topologyManagerPolicy: restricted\n", machine="epyc-12-nodes")
    assert ended.code == 1
    assert "error: topologyManagerPolicy: unsupported on machines with more than 8" in ended.out
    none = judge("topologyManagerPolicy: none\n", machine="epyc-12-nodes")
    assert none.code == 0
    assert "must be none on this machine with 12 NUMA nodes" in none.out
    option = "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '12'}\n"
    slow = judge(f"topologyManagerPolicy: restricted\n{option}", machine="epyc-12-nodes")
    assert slow.code == 0
    assert "try all sets of 12 NUMA nodes" in slow.out


STATIC = "cpuManagerPolicy: static\n"
FULL = "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
SPREAD = "cpuManagerPolicyOptions: {full-pcpus-only: 'true', distribute-cpus-across-numa: 'true'}\n"
BEST = "topologyManagerPolicy: best-effort\n"
TWO = "epyc-7742-2s-nps1"


def memory(*entries: str, total: str) -> str:
    listed = "\n".join(f"- {entry}" for entry in entries)
    return (
        f"memoryManagerPolicy: Static\nsystemReserved: {{memory: {total}}}\n"
        f"evictionHard: {{memory.available: 100Mi}}\nreservedMemory:\n{listed}\n"
    )


@pytest.mark.parametrize(
    ("text", "machine", "field", "told"),
    [
        (STATIC + "reservedSystemCPUs: '0'\n", "", "reservedSystemCPUs", "with system daemons"),
        (
            STATIC + FULL + "reservedSystemCPUs: '0'\n",
            "",
            "reservedSystemCPUs",
            "reserved CPUs share one with CPU 1",
        ),
        (STATIC + SPREAD + "reservedSystemCPUs: '0'\n", TWO, "reservedSystemCPUs", "can hang"),
        (STATIC + "kubeReserved: {cpu: 500m}\n", "", "kubeReserved.cpu", "rounded up to 1 CPU"),
        (
            STATIC + "reservedSystemCPUs: 0,64,128,192\n",
            TWO,
            "reservedSystemCPUs",
            "takes CPUs from NUMA nodes 0-1",
        ),
        (
            STATIC + "reservedSystemCPUs: 0-63,128-191\n",
            TWO,
            "reservedSystemCPUs",
            "reserves all CPUs of NUMA node 0",
        ),
        (
            STATIC + SPREAD + "reservedSystemCPUs: 0-1\n",
            "",
            "cpuManagerPolicyOptions.distribute-cpus-across-numa",
            "one NUMA node",
        ),
        (
            STATIC
            + SPREAD
            + "topologyManagerPolicy: single-numa-node\nreservedSystemCPUs: 0,128\n",
            TWO,
            "cpuManagerPolicyOptions.distribute-cpus-across-numa",
            "never distributes CPUs",
        ),
        (
            STATIC + FULL + "reservedSystemCPUs: '0'\n",
            "core-i7-9700",
            "cpuManagerPolicyOptions.full-pcpus-only",
            "one thread",
        ),
        (
            STATIC
            + "cpuManagerPolicyOptions: {full-pcpus-only: 'false'}\nreservedSystemCPUs: 0-1\n",
            "",
            "cpuManagerPolicyOptions.full-pcpus-only",
            "off by default",
        ),
        (
            STATIC
            + "cpuManagerPolicyOptions: {prefer-align-cpus-by-uncorecache: 'true'}\n"
            + "reservedSystemCPUs: 0-1\n",
            "",
            "cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache",
            "share one uncore cache",
        ),
        (
            STATIC
            + "featureGates: {CPUManagerPolicyAlphaOptions: true}\n"
            + "cpuManagerPolicyOptions: {align-by-socket: 'true'}\n"
            + "reservedSystemCPUs: 0-1\n",
            "",
            "cpuManagerPolicyOptions.align-by-socket",
            "nothing is aligned",
        ),
        (
            STATIC
            + BEST
            + "featureGates: {CPUManagerPolicyAlphaOptions: true}\n"
            + "cpuManagerPolicyOptions:\n  align-by-socket: 'true'\n"
            + "  distribute-cpus-across-numa: 'true'\n"
            + "reservedSystemCPUs: 0,128\n",
            TWO,
            "cpuManagerPolicyOptions.align-by-socket",
            "which ignores sockets",
        ),
        (BEST, "", "topologyManagerPolicy", "aligns only devices"),
        (
            BEST + "topologyManagerPolicyOptions: {max-allowable-numa-nodes: '9'}\n",
            "",
            "topologyManagerPolicyOptions.max-allowable-numa-nodes",
            "8 are always allowed",
        ),
        (
            BEST + "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n",
            TWO,
            "topologyManagerPolicyOptions.prefer-closest-numa-nodes",
            "has 2 NUMA nodes",
        ),
        (
            BEST + "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'false'}\n",
            TWO,
            "topologyManagerPolicyOptions.prefer-closest-numa-nodes",
            "off by default",
        ),
        (
            (
                "topologyManagerPolicy: single-numa-node\n"
                "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n"
            ),
            TWO,
            "topologyManagerPolicyOptions.prefer-closest-numa-nodes",
            "uses one node",
        ),
        (
            BEST + "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}\n",
            "power7-8-nodes",
            "topologyManagerPolicyOptions.prefer-closest-numa-nodes",
            "compare the wrong distances",
        ),
        (BEST, "power9-ac922", "topologyManagerPolicy", "hints can hold only NUMA nodes 0 to 63"),
        (
            "evictionHard: {nodefs.available: 5%}\n",
            "",
            "evictionHard",
            "including the memory.available threshold",
        ),
        (
            "featureGates: {CPUManagerPolicyAlphaOptions: true}\n",
            "",
            "featureGates.CPUManagerPolicyAlphaOptions",
            "no alpha option",
        ),
        (
            "featureGates: {CPUManagerPolicyBetaOptions: true}\n",
            "",
            "featureGates.CPUManagerPolicyBetaOptions",
            "true is its default",
        ),
        (
            "featureGates: {CPUManagerPolicyOptions: true}\n",
            "",
            "featureGates.CPUManagerPolicyOptions",
            "locked",
        ),
        (
            memory("{numaNode: 0, limits: {memory: 13864Mi}}", total="13764Mi"),
            "",
            "reservedMemory[0]",
            "reserves all memory of NUMA node 0",
        ),
        (
            memory("{numaNode: 0, limits: {memory: 20Gi}}", total="20380Mi"),
            "",
            "reservedMemory[0]",
            "reserves more than NUMA node 0",
        ),
    ],
)
def test_what_is_legal_and_unwise_is_a_warning_at_its_field(
    judge: Command, text: str, machine: str, field: str, told: str
) -> None:
    ended = judge(text, "--json", machine=machine or "laptop-4c8t")
    assert ended.code == 0
    found = {one["field"]: one for one in ended.json()}
    assert field in found
    assert any(told in one["message"] for one in ended.json() if one["field"] == field)
    assert {one["severity"] for one in ended.json()} == {"warning"}


def test_a_fault_of_the_reference_is_reported_as_one(
    judge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(startup, "start", broken)
    ended = judge("cpuManagerPolicy: static\n")
    assert ended.code == 1
    assert "kubelet.yaml:1: fault: the reference failed: RuntimeError: out of order" in ended.out
    assert "a bug in numaproof" in ended.out


def test_a_hugepage_reservation_is_reported_as_impossible(judge: Command) -> None:
    pages = memory("{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 4Mi}}", total="924Mi")
    ended = judge(pages)
    assert ended.code == 1
    assert ended.out.count("error") == 1
    assert "huge pages cannot be reserved" in ended.out


def test_anchors_and_merge_keys_are_read_as_the_kubelet_reads_them(judge: Command) -> None:
    ended = judge(
        "systemReserved: &amounts {cpu: '1'}\nkubeReserved: {<<: *amounts, memory: 1Gi}\n"
        "cpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: 'true'}\n"
    )
    assert (ended.code, ended.out) == (0, "")


def test_defaults_merged_into_thresholds_are_no_warning(judge: Command) -> None:
    ended = judge("evictionHard: {nodefs.available: 5%}\nmergeDefaultEvictionSettings: true\n")
    assert (ended.code, ended.out) == (0, "")


def test_what_has_no_effect_is_a_warning(judge: Command) -> None:
    ended = judge(
        'reservedSystemCPUs: "0"\nkubeReserved: {cpu: 500m}\ntopologyManagerScope: pod\n', "--json"
    )
    assert ended.code == 0
    assert [one["field"] for one in ended.json()] == ["kubeReserved.cpu", "topologyManagerScope"]
    assert [*ended.json()[0]] == ["severity", "field", "line", "message", "fix", "section"]


def test_reserved_memory_without_the_static_policy_is_a_warning(judge: Command) -> None:
    ended = judge("reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n")
    assert "kubelet.yaml:3: warning: reservedMemory: has no effect" in ended.out


def test_an_alpha_gate_that_the_managers_have_is_no_error(judge: Command) -> None:
    assert judge("featureGates: {PodLevelResourceManagers: true}\n").code == 0


# Defects of the kubelet


def test_a_finding_that_a_defect_hides_or_causes_is_said_to_be_due_to_it(judge: Command) -> None:
    text = 'cpuManagerPolicy: static\nkubeReserved: {cpu: "1"}\n'
    ended = judge(text, machine="core-i7-1270p")
    assert ended.code == 0
    assert "warning: kubeReserved.cpu: " in ended.out
    assert "reservation-by-best-fit: " in ended.out


# What is not read

NODE = ("--machine", "laptop-4c8t")


def test_an_unknown_field_is_an_error_that_suggests_the_nearest(judge: Command) -> None:
    ended = judge("maxPods: 20\ntopologyManagerPolcy: single-numa-node\n")
    assert ended.code == 1
    assert ended.out == (
        "kubelet.yaml:4: error: topologyManagerPolcy: unknown field, which the kubelet ignores"
        " (did you mean topologyManagerPolicy?)\n"
    )


def test_an_unknown_field_is_a_warning_if_that_is_asked_for(judge: Command) -> None:
    ended = judge("maxPods: 20\nreservedMemory: []\nmaxPod: 20\n", "--lenient", "--json")
    assert ended.code == 0
    assert [(one["severity"], one["field"]) for one in ended.json()] == [("warning", "maxPod")]


def test_a_field_of_another_release_is_named_with_its_releases(judge: Command) -> None:
    text = "maxPods: 20\nsingleProcessOOMKill: true\n"
    assert judge(text).code == 0
    ended = judge(text, "--kubernetes", "1.30")
    assert ended.code == 1
    assert "not a field of Kubernetes 1.30, only of 1.32 to 1.37" in ended.out


@pytest.mark.parametrize("more", [(), ("--lenient",)])
def test_a_configuration_of_which_nothing_is_read_is_2(
    judge: Command, more: tuple[str, ...]
) -> None:
    ended = judge("maxPod: 20\n", *more)
    assert (ended.code, ended.out) == (2, "")
    assert "kubelet.yaml:3: maxPod: unknown field (did you mean maxPods?)" in ended.err


def test_a_configuration_without_fields_says_so(judge: Command) -> None:
    ended = judge("")
    assert ended.code == 0
    assert "kubelet.yaml:1: no field is set, so the kubelet's defaults are assumed" in ended.err


@pytest.mark.parametrize(
    "text", ["cpuManagerPolicy: Static\n", "topologyManagerPolicy: single-numa\n"]
)
def test_an_unknown_policy_is_refused(judge: Command, text: str) -> None:
    ended = judge(text)
    assert ended.code == 1
    assert f"kubelet.yaml:3: error: {text.partition(':')[0]}: " in ended.out


OPENSHIFT = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: KubeletConfig
metadata:
  name: tuning
spec:
  kubeletConfig:
    cpuManagerPolicy: static
    maxPods: 99
"""


def test_the_configuration_in_an_openshift_kubeletconfig_is_read(command: Command) -> None:
    Path("kubelet.yaml").write_text(OPENSHIFT)
    ended = command("config", "check", "kubelet.yaml", *NODE)
    assert ended.code == 1
    assert "kubelet.yaml:7: error: cpuManagerPolicy: [cpumanager] unable" in ended.out
    assert "kubelet.yaml:6: read spec.kubeletConfig of an OpenShift KubeletConfig" in ended.err
    Path("kubelet.yaml").write_text(OPENSHIFT.replace("maxPods", "maxPod"))
    ended = command("config", "check", "kubelet.yaml", *NODE)
    assert "kubelet.yaml:8: error: maxPod: unknown field" in ended.out
    Path("kubelet.yaml").write_text(OPENSHIFT.replace("kubeletConfig:", "kubeletConfg:"))
    ended = command("config", "check", "kubelet.yaml", *NODE)
    assert (ended.code, ended.out) == (2, "")
    assert "spec.kubeletConfg: unknown field (did you mean kubeletConfig?)" in ended.err


def test_the_configuration_that_a_node_prints_is_read(command: Command) -> None:
    Path("kubelet.json").write_text('{"kubeletconfig":\n{"cpuManagerPolicy":\n"odd", "maxPod": 1}}')
    ended = command("config", "check", "kubelet.json", *NODE)
    assert ended.code == 1
    assert "kubelet.json:3: error: maxPod: unknown field" in ended.out
    assert "kubelet.json:2: error: cpuManagerPolicy: " in ended.out
    assert "kubelet.json:1: read kubeletconfig" in ended.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{HEAD}cpuManagerPolicy: none\nkubeletconfig: {{cpuManagerPolicy: static}}\n",
            "kubelet.yaml:4: error: kubeletconfig: unknown field",
        ),
        ("kind: Foo\nkubeletconfig: {cpuManagerPolicy: static}\n", "kubelet.yaml:1: "),
        (
            f"{OPENSHIFT}kubeletConfig: {{}}\n",
            "kubelet.yaml:9: error: kubeletConfig: unknown field",
        ),
        (
            OPENSHIFT.replace("  name: tuning", "  annotatons: {}"),
            "kubelet.yaml:4: error: metadata.annotatons: unknown field",
        ),
    ],
)
def test_nothing_around_a_wrapped_configuration_is_left_unread(
    command: Command, text: str, said: str
) -> None:
    Path("kubelet.yaml").write_text(text)
    ended = command("config", "check", "kubelet.yaml", *NODE)
    assert ended.code in {1, 2}
    assert said in ended.out + ended.err


RKE2 = "kubelet-arg:\n- cpu-manager-policy=static\n"
TALOS = "machine:\n  kubelet:\n    extraConfig:\n      cpuManagerPolicy: static\n"
REWRITTEN = OPENSHIFT.partition("metadata:")[1] + OPENSHIFT.partition("metadata:")[2]


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (RKE2, "kubelet.yaml:3: kubelet-arg: a k3s or RKE2 configuration", "proxy/configz"),
        (TALOS, "kubelet.yaml:3: machine: a Talos machine configuration", "talosctl read"),
        (REWRITTEN, "kubelet.yaml:5: spec: an OpenShift KubeletConfig", "kind: KubeletConfig ag"),
    ],
)
def test_files_of_other_products_are_refused_by_name_whatever_their_kind(
    judge: Command, command: Command, text: str, what: str, fix: str
) -> None:
    ended = judge(text)
    assert (ended.code, ended.out) == (2, "")
    assert what in ended.err
    assert fix in ended.err
    Path("kubelet.yaml").write_text(text)
    ended = command("config", "check", "kubelet.yaml", *NODE)
    assert (ended.code, ended.out) == (2, "")
    assert "set apiVersion: kubelet" not in ended.err


def test_fields_without_a_head_need_one(command: Command) -> None:
    Path("kubelet.yaml").write_text("cpuManagerPolicy: static\n")
    ended = command("config", "check", "kubelet.yaml", *NODE)
    assert (ended.code, ended.out) == (2, "")
    assert "(set apiVersion: kubelet.config.k8s.io/v1beta1)" in ended.err
    Path("kubelet.yaml").write_text("apiVerison: v1\ncpuManagerPolicy: static\n")
    ended = command("config", "check", "kubelet.yaml", *NODE)
    assert "apiVerison: unknown field (did you mean apiVersion?)" in ended.err


def test_a_threshold_that_is_set_is_not_reported_as_missing(fields: Command) -> None:
    memory = (
        "memoryManagerPolicy: Static\nsystemReserved: {memory: 512Mi}\n"
        "reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]\n"
    )
    found, told = fields(memory + "evictionHard: {memory.available: 100Mi}\n")
    assert found == ["reservedMemory"]
    assert "not equal to the value" in told


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "memoryManagerPolicy: static\nreservedMemory:\n- {numaNode: 0, limits: {memory: 1}}\n",
            "memoryManagerPolicy",
        ),
        (
            "topologyManagerPolicy: single-numa\ntopologyManagerScope: pod\n",
            "topologyManagerPolicy",
        ),
        ("cpuManagerPolicy: Static\ntopologyManagerPolicy: restricted\n", "cpuManagerPolicy"),
    ],
)
def test_nothing_is_said_of_what_depends_on_a_wrong_policy(
    fields: Command, text: str, wrong: str
) -> None:
    assert fields(text)[0] == [wrong]


def test_every_command_refuses_an_unknown_field(judge: Command, command: Command) -> None:
    judge("cpuManagerPolicy: none\nmaxPod: 5\n")
    Path("pods.yaml").write_text(POD)
    text = '{"policyName": "none", "defaultCpuSet": "", "checksum": 1}'
    Path("cpu_manager_state").write_text(text)
    for args in (
        ("simulate", *NODE, "--config", "kubelet.yaml", "pods.yaml"),
        ("upgrade", *NODE, "--config", "kubelet.yaml", "--from", "1.35", "--to", "1.36"),
        ("state", "check", *NODE, "--config", "kubelet.yaml", "cpu_manager_state"),
    ):
        ended = command(*args)
        assert (args[0], ended.code) == (args[0], 2)
        assert "kubelet.yaml:4: maxPod: unknown field (did you mean maxPods?)" in ended.err
        ended = command(*args, "--lenient")
        assert "warning: ignored: kubelet.yaml:4: maxPod: unknown field" in ended.err
