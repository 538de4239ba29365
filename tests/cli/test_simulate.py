"""`numaproof simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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


@pytest.fixture
def ask(command: Command) -> Command:
    def run(pods: str, *more: str, config: str = CONFIG) -> Any:
        Path("kubelet.yaml").write_text(config)
        Path("pods.yaml").write_text(pods)
        node = ("--machine", "laptop-4c8t", "--config", "kubelet.yaml")
        return command("simulate", *node, "pods.yaml", *more)

    return run


def test_admitted_pods_are_shown_with_their_cpus(ask: Command) -> None:
    ended = ask(PODS)
    assert ended.code == 0
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["Pod/default/db", "main", "2-3", "exclusive"] in rows
    assert ["Deployment/shop/web", "app", "0-1,4-7", "shared"] in rows
    assert "pods.yaml:10: Service has no pods" in ended.err


def test_a_refused_pod_is_1_and_later_pods_are_still_asked(ask: Command) -> None:
    ended = ask(HUGE, "--json")
    assert ended.code == 1
    refused, admitted = ended.json()["pods"]
    assert refused["refusal"]["reason"] == "UnexpectedAdmissionError"
    assert "app" in admitted["containers"]
    assert "not enough cpus" in ask(HUGE).out


def test_a_refused_start_is_1_with_its_message(ask: Command) -> None:
    ended = ask(PODS, config=CONFIG.replace('reservedSystemCPUs: "0"', ""))
    assert ended.code == 1
    assert "The kubelet does not start (cpu)" in ended.out


def test_a_list_gives_the_pods_of_its_items(ask: Command) -> None:
    item = "{kind: Pod, metadata: {name: %s}, spec: {containers: [{name: c}]}}"
    ended = ask("kind: List\nitems:\n- " + item % "a" + "\n- " + item % "b" + "\n", "--json")
    assert [one["pod"] for one in ended.json()["pods"]] == ["Pod/default/a", "Pod/default/b"]


GATE = "featureGates: {PodLevelResourceManagers: true}\n"


@pytest.mark.parametrize(
    ("pods", "config", "told"),
    [
        (PODS, "kind: Pod\n", "kubelet.yaml:1: apiVersion"),
        (PODS, "", "0 documents"),
        (PODS.replace("{name: db}", "{}"), CONFIG, "pods.yaml:4: metadata.name"),
        (PODS.replace("cpu: 2", "cpu: two"), CONFIG, "spec.containers[0]"),
        (PODS.replace("- name: main", "- nothing"), CONFIG, "pods.yaml"),
        (PODS.replace("  containers:", "  others:", 1), CONFIG, "a pod needs a container"),
        (PODS + "---" + PODS, CONFIG, "a second Pod/default/db"),
        ("kind: List\nitems: 1\n", CONFIG, "pods.yaml:2: items: must be a list"),
        ("- 1\n", CONFIG, "must be a mapping"),
        ("kind: Service\n", CONFIG, "no pods in the given files"),
        (PODS, CONFIG + GATE, "not simulated yet"),
    ],
)
def test_wrong_input_is_2_and_says_where(ask: Command, pods: str, config: str, told: str) -> None:
    ended = ask(pods, config=config)
    assert ended.code == 2
    assert told in ended.err


ALIGNED = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits: {memory: 100Mi}
topologyManagerPolicy: restricted
"""


def test_memory_and_the_nodes_that_a_container_is_aligned_to_are_told(ask: Command) -> None:
    ended = ask(PODS, config=ALIGNED)
    assert ended.code == 0
    row = next(line for line in ended.out.splitlines() if "Pod/default/db" in line)
    assert row.count("node 0") == 2
