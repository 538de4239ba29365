"""`numaproof simulate`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from numaproof import fakesys
from numaproof.reports.terminal import PLAIN_WIDTH

Command = Callable[..., Any]

CONFIG = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
"""

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: db}
spec:
  containers:
  - name: main
    resources: {limits: {cpu: 2, memory: 1Gi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: app
        resources: {requests: {cpu: 500m}}
"""

HUGE = PODS.replace("cpu: 2", "cpu: 8")

ALIGNED = (
    CONFIG
    + """
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits: {memory: 100Mi}
topologyManagerPolicy: restricted
"""
)

NIC = PODS.replace("memory: 1Gi", "memory: 1Gi, vendor.example/nic: 1")


@pytest.fixture
def ask(command: Command) -> Command:
    def run(pods: str, *more: str, config: str = CONFIG, machine: str = "laptop-4c8t") -> Any:
        Path("kubelet.yaml").write_text(config)
        Path("pods.yaml").write_text(pods)
        return command(
            "simulate", "--machine", machine, "--config", "kubelet.yaml", "pods.yaml", *more
        )

    return run


def rows(out: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in out.splitlines()]


def workload(kind: str, spec: str) -> str:
    template = "template: {spec: {containers: [{name: c}]}}"
    spec = spec.replace("TEMPLATE", template) if "TEMPLATE" in spec else f"{spec}, {template}"
    return f"kind: {kind}\nmetadata: {{name: w}}\nspec: {{{spec}}}\n"


def item(name: str) -> str:
    return f"{{kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c}}]}}}}"


# The table


def test_admitted_pods_are_shown_with_their_cpus(ask: Command) -> None:
    ended = ask(PODS)
    assert ended.code == 0
    assert "✓ 4 pods admitted, none refused" in ended.out
    assert ["✓", "Pod/default/db", "main", "2-3"] in rows(ended.out)
    assert ["✓", "Deployment/shop/web#3", "app", "shared pool"] in rows(ended.out)
    assert "pods.yaml:10: skipped Service: numaproof reads no pods from this kind" in ended.err


def test_memory_and_the_nodes_that_a_container_is_aligned_to_are_shown(ask: Command) -> None:
    ended = ask(PODS, config=ALIGNED)
    assert ended.code == 0
    assert ["✓", "Pod/default/db", "main", "2-3", "1 GiB", "node 0"] in rows(ended.out)
    alone = ask(PODS, config=ALIGNED.replace("restricted", "none"))
    assert ["✓", "Pod/default/db", "main", "2-3", "1 GiB on node 0"] in rows(alone.out)


def test_lines_of_the_table_are_never_folded(ask: Command) -> None:
    name = "n" * 60
    told = rows(ask(PODS.replace("name: db", f"name: {name}")).out)
    assert ["✓", f"Pod/default/{name}", "main", "2-3"] in told


def test_the_drawing_shows_memory_and_devices_and_whose_they_are(ask: Command) -> None:
    out = ask(NIC, "--devices", "vendor.example/nic=2@0", config=ALIGNED).out
    assert "memory [#=..................] 1 GiB of 13.5 GiB allocated, 100 MiB reserved" in out
    assert "vendor.example/nic  nic-0 A  nic-1\n" in out
    assert " A  Pod/default/db/main      2-3" in out


# Refusals


def test_a_refused_pod_is_1_and_later_pods_are_still_asked(ask: Command) -> None:
    ended = ask(HUGE, "--json")
    assert ended.code == 1
    refused, *admitted = ended.json()["pods"]
    assert refused["refusal"]["reason"] == "UnexpectedAdmissionError"
    assert all("app" in one["containers"] for one in admitted)


def test_a_refusal_has_the_kubelets_words_and_what_is_lacking(ask: Command) -> None:
    out = ask(HUGE).out
    assert ["✗", "Pod/default/db", "refused"] in rows(out)
    assert "not enough cpus available to satisfy request: requested=8, available=7" in out
    assert "8 CPUs requested, 7 free. Of 8 CPUs, reserved: 0; exclusive: none" in out
    assert "Hint: request at most 7 CPUs." in out


def test_a_refusal_by_topology_is_explained_step_by_step(ask: Command) -> None:
    taken = HUGE.replace("cpu: 8", "cpu: 50") + "---" + HUGE.replace("name: db", "name: other")
    told = ask(taken, "--replicas", "0", config=ALIGNED, machine="xeon-gold-6230-2s")
    assert told.code == 1
    lines = [line.strip() for line in told.out.splitlines()]
    assert (
        "container main: no nodes are preferred by all: cpu on 2 nodes, memory on 1 node" in lines
    )
    assert "3. CPU Manager, cpu: 50 CPUs available" in lines
    assert "✓ nodes 0-1  preferred: 79 CPUs free" in lines
    best = "5. the hints merge to nodes 0-1, not preferred"
    assert f"{best}; restricted admits only preferred hints" in lines
    assert "Hint: with topologyManagerPolicy: best-effort the pod would be admitted." in lines


def test_replicas_that_are_refused_alike_are_shown_once(ask: Command) -> None:
    out = ask(PODS.replace("requests: {cpu: 500m}", "limits: {cpu: 6, memory: 1Gi}")).out
    assert out.count("✗ Deployment/shop/web#1 to 3\n") == 1
    assert out.count("Allocate failed") == 1


def test_a_refused_start_is_1_with_its_message(ask: Command) -> None:
    ended = ask(PODS, config=CONFIG.replace('reservedSystemCPUs: "0"', ""))
    assert ended.code == 1
    assert "✗ The kubelet does not start" in ended.out
    assert "cpu: [cpumanager] unable to determine reserved CPU resources" in ended.out


def test_admissions_are_explained_on_demand(ask: Command) -> None:
    assert "every manager can satisfy the request" not in ask(PODS, config=ALIGNED).out
    out = ask(PODS, "--explain", config=ALIGNED).out
    assert "✓ Pod/default/db\n  every manager can satisfy the request" in out
    assert "CPU Manager: no preference: the pod is Burstable, not Guaranteed" in out


# Devices


def test_devices_that_no_plugin_serves_keep_the_scheduler_from_placing_the_pod(
    ask: Command,
) -> None:
    ended = ask(NIC)
    assert ended.code == 1
    assert ["✗", "Pod/default/db", "refused"] in rows(ended.out)
    assert "Insufficient vendor.example/nic" in ended.out
    assert "for example --devices vendor.example/nic=1@0" in ended.out


def test_devices_come_from_words_and_from_files(ask: Command) -> None:
    Path("devices.yaml").write_text(
        "vendor.example/gpu:\n- {id: g0, numa: [0], healthy: false}\n- {count: 2, numa: [0]}\n"
    )
    given = ("--devices", "devices.yaml", "--devices", "vendor.example/nic=1,1@0")
    found = ask(NIC.replace("nic: 1", "gpu: 1"), *given, "--json").json()
    assert found["pods"][0]["containers"]["main"]["devices"] == {"vendor.example/gpu": ["gpu-1"]}
    assert [(one["id"], one["numa"], one["healthy"]) for one in found["node"]["devices"]] == [
        ("g0", [0], False),
        ("gpu-1", [0], True),
        ("gpu-2", [0], True),
        ("nic-0", None, True),
        ("nic-1", [0], True),
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("nothing", "neither a file nor a description of devices"),
        ("nic=1", "invalid name of a device resource: 'nic'"),
        ("v.example/nic=x", "expected COUNT@NODES, got 'x'"),
        ("v.example/nic=1@3-1", "'3-1' is not a list of NUMA nodes"),
        ("v.example/nic=1@7", "the machine has no NUMA node 7"),
        ("v.example/nic=0@0", "count 0 is out of range"),
        ("v.example/nic=4000@0,4000@0", "too many devices"),
        ("v.example/nic=" + "9" * 5000, "expected COUNT@NODES, got '9999"),
    ],
)
def test_devices_that_cannot_be_are_2_and_say_why(ask: Command, given: str, told: str) -> None:
    ended = ask(PODS, "--devices", given)
    assert ended.code == 2
    assert told in ended.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("v.example/nic: 3\n", "devices.yaml:1: v.example/nic: expected `array`"),
        ("v.example/nic:\n- {cuont: 1}\n", "did you mean 'count'?"),
        (
            "v.example/nic:\n- {numa: [0]}\n",
            "devices.yaml:2: v.example/nic[0]: a group needs either",
        ),
        ("v.example/nic:\n- {id: a}\n- {id: a}\n", "devices.yaml:3"),
    ],
)
def test_wrong_files_of_devices_are_2_with_the_line(ask: Command, text: str, told: str) -> None:
    Path("devices.yaml").write_text(text)
    ended = ask(PODS, "--devices", "devices.yaml")
    assert ended.code == 2
    assert told in ended.err


# Which pods


@pytest.mark.parametrize(
    ("pods", "names"),
    [
        (
            workload("Deployment", "replicas: 2"),
            ["Deployment/default/w#1", "Deployment/default/w#2"],
        ),
        (workload("StatefulSet", "replicas: 1"), ["StatefulSet/default/w"]),
        (workload("DaemonSet", "TEMPLATE"), ["DaemonSet/default/w"]),
        (workload("Job", "parallelism: 3, completions: 2"), ["Job/default/w#1", "Job/default/w#2"]),
        (
            workload("CronJob", "jobTemplate: {spec: {parallelism: 1, TEMPLATE}}"),
            ["CronJob/default/w"],
        ),
        (
            f"kind: PodList\nitems:\n- {item('a').replace('kind: Pod, ', '')}\n",
            ["Pod/default/a"],
        ),
        (
            f"kind: List\nitems:\n- {item('a')}\n- {item('b')}\n",
            ["Pod/default/a", "Pod/default/b"],
        ),
    ],
)
def test_workloads_and_lists_give_all_their_pods(ask: Command, pods: str, names: list[str]) -> None:
    assert [one["pod"] for one in ask(pods, "--json").json()["pods"]] == names


def test_replicas_can_be_given_for_every_workload(ask: Command) -> None:
    found = ask(PODS, "--replicas", "1", "--json").json()
    assert [one["pod"] for one in found["pods"]] == ["Pod/default/db", "Deployment/shop/web"]
    ended = ask(PODS, "--replicas", "0")
    assert "pods.yaml:14: Deployment/shop/web has 0 replicas" in ended.err


@pytest.mark.parametrize("tree", ["node", "node.tar.xz"])
def test_the_machine_may_be_a_tree(ask: Command, command: Command, tree: str) -> None:
    assert command("profile", "tree", "laptop-4c8t", "--to", tree).code == 0
    assert ask(PODS, "--json", machine=tree).json() == ask(PODS, "--json").json()


def test_the_machine_may_be_a_profile_file(ask: Command) -> None:
    text = fakesys.dump_profile(fakesys.load_profile("laptop-4c8t"))
    Path("mine.yaml").write_text(text)
    assert ask(PODS, "--json", machine="mine.yaml").json() == ask(PODS, "--json").json()


# Wrong input


@pytest.mark.parametrize(
    ("pods", "config", "told"),
    [
        (PODS, "kind: Pod\n", "kubelet.yaml:1: kind: expected KubeletConfiguration, got 'Pod'"),
        (PODS, "", "got 0 documents"),
        (PODS.replace("{name: db}", "{}"), CONFIG, "pods.yaml:4: metadata.name"),
        (
            PODS.replace("cpu: 2", "cpu: two"),
            CONFIG,
            "pods.yaml:8: spec.containers[0].resources.limits.cpu: quantities must match",
        ),
        (PODS.replace("- name: main", "- nothing"), CONFIG, "pods.yaml"),
        (
            PODS.replace("- name: main", "- image: main"),
            CONFIG,
            "pods.yaml:7: spec.containers[0].name: must be a non-empty string",
        ),
        (
            PODS.replace("  containers:", "  nodeName: a\n  initContainers:", 1),
            CONFIG,
            "a pod needs at least one container",
        ),
        (PODS + "---" + PODS, CONFIG, "duplicate Pod/default/db"),
        (
            PODS.replace("replicas: 3", "replicas: 3x"),
            CONFIG,
            "pods.yaml:18: spec.replicas: must be a whole number",
        ),
        (PODS.replace("replicas: 3", "replicas: 3000"), CONFIG, "too many pods: the limit is 1000"),
        ("kind: List\nitems: 1\n", CONFIG, "pods.yaml:2: items: must be a list"),
        ("- 1\n", CONFIG, "must be a mapping"),
        ("kind: Service\n", CONFIG, "no pods in pods.yaml; name manifests of Pods"),
    ],
)
def test_wrong_input_is_2_and_says_where(ask: Command, pods: str, config: str, told: str) -> None:
    ended = ask(pods, config=config)
    assert ended.code == 2
    assert told in ended.err


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ("limits: {cpu: -1}", "pods.yaml:8: spec.containers[0].resources.limits.cpu: -1 is neg"),
        ("limits: {cpu: 1}, requests: {cpu: 2}", "request of 2 exceeds the limit of 1"),
        ("requests: {hugepages-2Mi: 2Mi}", "request of 2Mi has no limit"),
        (
            "limits: {cpus: 2}",
            "resources.limits.cpus: not a resource of containers (did you mean cpu?)",
        ),
        ("limits: {v.example/nic: 1500m}", "limits.v.example/nic: 1500m is not a whole number"),
        (
            "limits: {v.e/nic: 2}, requests: {v.e/nic: 1}",
            "request of 1 differs from the limit of 2",
        ),
    ],
)
def test_pods_that_the_api_server_refuses_are_2(ask: Command, resources: str, told: str) -> None:
    ended = ask(PODS.replace("limits: {cpu: 2, memory: 1Gi}", resources))
    assert ended.code == 2
    assert told in ended.err


@pytest.mark.parametrize("after", ["spec:", "  - name: main"])
def test_an_unknown_restart_policy_is_2(ask: Command, after: str) -> None:
    indent = "  " if after == "spec:" else "    "
    ended = ask(PODS.replace(after, f"{after}\n{indent}restartPolicy: always", 1))
    assert ended.code == 2
    assert "restartPolicy: unknown value 'always' (did you mean Always?)" in ended.err


def test_two_containers_of_one_name_are_2(ask: Command) -> None:
    ended = ask(PODS.replace("  - name: main", "  - name: main\n  - name: main"))
    assert ended.code == 2
    assert "pods.yaml:8: spec.containers[1].name: duplicate container name 'main'" in ended.err


def test_a_folder_without_a_machine_is_2(ask: Command) -> None:
    Path("empty").mkdir()
    ended = ask(PODS, machine="empty")
    assert ended.code == 2
    assert "a tree has sys and proc in it" in ended.err


def test_a_file_that_is_no_text_is_2(ask: Command, command: Command) -> None:
    ask(PODS)
    Path("pods.yaml").write_bytes(b"\xff\xfe")
    ended = command("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "pods.yaml")
    assert ended.code == 2
    assert "not UTF-8" in ended.err


def test_standard_input_is_read_for_one_file_only() -> None:
    words = ("simulate", "--machine", "laptop-4c8t", "--config", "-", "-")
    ended = subprocess.run(
        [sys.executable, "-m", "numaproof", *words],
        check=False,
        input="",
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert "only one file can be -" in ended.stderr


# Files


def test_a_page_is_written_that_needs_nothing_else(ask: Command) -> None:
    ended = ask(HUGE, "--out", "node.html")
    assert ended.code == 1
    assert "wrote node.html" in ended.out
    page = Path("node.html").read_text()
    assert "<h1>1 of 4 pods refused</h1>" in page
    assert "8 CPUs requested, 7 free" in page
    assert not re.findall(r"(?:src|href)=", page)


def test_a_drawing_is_written_as_a_file_of_its_own(ask: Command) -> None:
    ask(PODS, "--out", "node.svg", "--json")
    drawing = ET.XML(Path("node.svg").read_text())
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"


def test_a_file_of_another_kind_is_2(ask: Command) -> None:
    ended = ask(PODS, "--out", "node.pdf")
    assert ended.code == 2
    assert "must end with .html or .svg" in ended.err


# Defects of the kubelet

HYBRID = "core-i7-1270p"
DEFECT = "free-core-by-average"


def test_a_pod_with_a_reserved_cpu_is_said_to_be_due_to_a_defect(ask: Command) -> None:
    ended = ask(PODS, machine=HYBRID)
    assert ended.code == 0
    assert "none refused; 4 answers shaped by defects of the kubelet" in ended.out
    lines = [line.strip() for line in ended.out.splitlines()]
    where = lines.index("~ Pod/default/db, container main")
    assert lines[where + 1 : where + 5] == [
        f"differs from the documented answer because of {DEFECT}",
        "exclusive CPUs:",
        "kubelet     0-1",
        "documented  8-9",
    ]
    assert "issues/140495" in lines[where + 5]


def test_a_warning_has_the_defect_the_pod_and_both_answers(ask: Command) -> None:
    first, second, *_ = ask(PODS, "--json", machine=HYBRID).json()["warnings"]
    assert first["defects"][0].pop("what").startswith("A core counts as free when ")
    assert first["defects"] == [
        {
            "name": DEFECT,
            "page": f"docs/findings.md#{DEFECT}",
            "issue": "https://github.com/kubernetes/kubernetes/issues/140495",
        }
    ]
    assert (first["part"], first["pod"], first["container"]) == (
        "container",
        "Pod/default/db",
        "main",
    )
    assert (first["kubelet"]["exclusive"], first["documented"]["exclusive"]) == ("0-1", "8-9")
    assert (first["follows"], second["follows"]) == (False, True)
    assert second["pod"] == "Deployment/shop/web#1"


def test_a_defect_is_1_only_when_that_is_asked_for(ask: Command) -> None:
    assert ask(PODS, "--strict", machine=HYBRID).code == 1
    assert ask(PODS, "--strict").code == 0
    documented = ask(PODS, "--strict", "--documented", "--json", machine=HYBRID)
    assert (documented.code, "warnings" in documented.json()) == (0, False)


def test_the_page_has_a_link_to_the_issue_of_a_defect(ask: Command) -> None:
    ask(PODS, "--out", "node.html", machine=HYBRID)
    page = Path("node.html").read_text()
    assert '<a href="https://github.com/kubernetes/kubernetes/issues/140495"' in page
    assert "<td>0-1</td><td>8-9</td>" in page


def test_errors_in_pods_and_in_the_configuration_are_told_together(ask: Command) -> None:
    slip = PODS.replace("containers:", "contaners:", 1).replace("kind: Service", "kind: Podd")
    ended = ask(slip, config=CONFIG + "cpuManagerPolicyy: none\n")
    assert ended.code == 2
    assert ended.err.count("pods.yaml:") == 2
    assert "kubelet.yaml:6: cpuManagerPolicyy: unknown field" in ended.err


# Looks


def test_a_terminal_has_colours_and_other_streams_have_none(
    ask: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numaproof.reports.terminal.is_live", lambda *_: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    assert "\x1b[" in ask(HUGE).out
    monkeypatch.undo()


def test_plain_output_has_no_colours_and_a_drawing_of_a_fixed_width(ask: Command) -> None:
    out = ask(HUGE, machine="xeon-gold-6230-2s").out
    assert "\x1b" not in out
    drawing = out.partition("Machine ·")[2].partition("\n\n")[0]
    assert max(map(len, drawing.splitlines())) <= PLAIN_WIDTH


def test_the_examples_of_the_help_run_as_they_stand(ask: Command, command: Command) -> None:
    ask(PODS)
    text = command("simulate", "--help").out.partition("Examples:\n")[2].partition("\n\n")[0]
    assert text.count("numaproof simulate") == 3
    script = text.replace("numaproof simulate", f"{sys.executable} -m numaproof simulate")
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True)
    assert Path("node.html").exists()


def test_the_documented_example_is_what_comes_out(command: Command) -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text("utf-8")
    config, pods, *_ = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    line, out = re.findall(
        r"^\$ numaproof (simulate.*?)\n(.*?)^```", page, re.DOTALL | re.MULTILINE
    )[0]
    Path("kubelet.yaml").write_text(config)
    Path("pods.yaml").write_text(pods)
    assert command(*line.split()).out == out


def test_the_answer_as_json_has_its_documented_parts(ask: Command) -> None:
    found = ask(HUGE, "--json", config=ALIGNED).json()
    assert set(found) == {"start", "pods", "node", "notes"}
    assert len(found["notes"]) == 1
    assert "skipped Service" in found["notes"][0]
    assert set(found["pods"][0]) == {"pod", "refusal", "explanation"}
    assert set(found["pods"][1]) == {"pod", "containers"}
    explanation = found["pods"][0]["explanation"]
    assert set(explanation) == {"summary", "steps", "advice"}
    assert [step["step"] for step in explanation["steps"]] == [
        "request",
        "hints",
        "hints",
        "hints",
        "merge",
    ]
    assert explanation["steps"][2]["candidates"]["told"] == [
        {"numa": [0], "mark": "impossible", "text": "7 CPUs free, 8 needed", "alike": 0}
    ]
    assert set(found["node"]) == {"policies", "shared", "reserved", "memory", "devices"}
    assert found["node"]["memory"][0]["reserved"] == 100 * 1024 * 1024


def test_ignored_fields_are_in_the_json(ask: Command) -> None:
    found = ask(HUGE, "--json", "--lenient", config=f"{ALIGNED}maxPod: 5\n").json()
    assert any("maxPod: unknown field (did you mean maxPods?)" in one for one in found["notes"])


def test_an_amount_of_null_is_zero(ask: Command) -> None:
    ended = ask(PODS.replace("limits: {cpu: 2, memory: 1Gi}", "limits: {cpu: null, memory: null}"))
    assert ended.code == 0
    assert ended.out == ask(PODS.replace("limits: {cpu: 2, memory: 1Gi}", "limits: {}")).out
