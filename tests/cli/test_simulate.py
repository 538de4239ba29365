"""`numaproof simulate`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from builders.input_files import KUBELET, POD
from numaproof.conformance.cases import checkpoints

if TYPE_CHECKING:
    from conftest import Command


def test_the_examples_of_the_help_run(command: Command) -> None:
    Path("kubelet.yaml").write_text(KUBELET)
    Path("pods.yaml").write_text(POD)
    Path("on-node.yaml").write_text(POD.replace("web", "db"))
    Path("kubelet").mkdir()
    state = {"policyName": "none", "defaultCpuSet": "", "entries": {}}
    Path("kubelet/cpu_manager_state").write_text(checkpoints.text(state))
    text = command("simulate", "--help").out.partition("Examples:\n")[2].partition("\n\n")[0]
    assert text.count("numaproof simulate") == 5
    script = text.replace("numaproof simulate", f"{sys.executable} -m numaproof simulate")
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True)
    assert Path("node.html").exists()


def test_the_documented_example_matches_the_output(command: Command) -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text("utf-8")
    config, pods, *_ = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    line, out = re.findall(
        r"^\$ numaproof (simulate.*?)\n(.*?)^```", page, re.DOTALL | re.MULTILINE
    )[0]
    Path("kubelet.yaml").write_text(config)
    Path("pods.yaml").write_text(pods)
    assert command(*line.split()).out == out


def test_a_refused_configuration_is_shown_with_every_fix(command: Command) -> None:
    """Without a drawing, so that the fixes are in view."""
    Path("kubelet.yaml").write_text(
        KUBELET.partition("kind:")[0]
        + "kind: KubeletConfiguration\ncpuManagerPolicy: static\ntopologyManagerPolicy: best\n"
    )
    Path("pods.yaml").write_text(POD)
    shared = ("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "pods.yaml")
    ended = command(*shared, "--out", "node.html", "--out", "node.svg")
    assert ended.code == 1
    assert Path("node.svg").exists()
    fixes = re.findall(r"^  Fix: (\w+): ", ended.out, re.MULTILINE)
    assert fixes == ["topologyManagerPolicy", "cpuManagerPolicy"]
    assert "Machine ·" not in ended.out
    assert Path("node.html").read_text().count("<strong>Fix: ") == 2
    errors = json.loads(command(*shared, "--json").out)["errors"]
    assert [one["path"] for one in errors] == [["topologyManagerPolicy"], ["cpuManagerPolicy"]]


def test_strict_fails_if_the_kubelet_can_panic(command: Command) -> None:
    Path("kubelet.yaml").write_text(f"{KUBELET}topologyManagerPolicy: best-effort\n")
    Path("pods.yaml").write_text(POD)
    line = ("simulate", "--machine", "power9-ac922", "--config", "kubelet.yaml", "pods.yaml")
    assert command(*line).code == 0
    assert command(*line, "--strict").code == 1


def test_unknown_memory_is_no_part_of_an_answer(command: Command) -> None:
    Path("lscpu.txt").write_text(
        "".join(
            f"{line}\n" for line in ("CPU NODE SOCKET CORE", *(f"{n} 0 0 {n}" for n in range(8)))
        )
    )
    Path("kubelet.yaml").write_text(f'{KUBELET}cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n')
    Path("pods.yaml").write_text(POD)
    line = ("simulate", "--machine", "lscpu.txt", "--config", "kubelet.yaml", "pods.yaml")
    answer = command(*line)
    assert answer.code == 0
    assert re.search("largest Guaranteed pod: 6 CPUs on node 0$", answer.out, re.MULTILINE)
    assert "memory: whether there is enough" in answer.out
    assert "doesn't show the memory; add" in command(*line, "--nrt", "nrt.yaml").err
    told = command(*line, "--assume", "memory=64Gi").out
    assert "largest Guaranteed pod: 6 CPUs and 6" in told
    assert "whether there is enough" not in told


def test_a_corrupt_checkpoint_is_the_answer_without_pods(command: Command) -> None:
    Path("kubelet.yaml").write_text(f'{KUBELET}cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n')
    state = {"policyName": "static", "defaultCpuSet": "0,2-7", "entries": {"uid": {"main": "1"}}}
    sound = checkpoints.text(state)
    Path("kubelet").mkdir()
    line = ("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "--state")
    Path("kubelet/cpu_manager_state").write_text(sound)
    asked = command(*line, "kubelet")
    assert asked.code == 2
    assert "name 1 pod by uid" in asked.err
    Path("kubelet/cpu_manager_state").write_text(sound.replace("2-7", "3-7"))
    answered = command(*line, "kubelet")
    assert answered.code == 1
    assert "checkpoint is corrupted" in answered.out


def test_fixes_are_about_the_configuration_alone(command: Command) -> None:
    """The files of the node's state fit the settings that other fixes try."""
    Path("kubelet.yaml").write_text(f"{KUBELET}cpuManagerPolicy: static\n")
    state = {"policyName": "static", "defaultCpuSet": "0-7", "entries": {}}
    Path("kubelet").mkdir()
    Path("kubelet/cpu_manager_state").write_text(checkpoints.text(state))
    line = ("simulate", "--machine", "laptop-4c8t", "--config", "kubelet.yaml", "--state")
    fixes = re.findall("^  Fix: .*", command(*line, "kubelet").out, re.MULTILINE)
    assert len(fixes) == 1
    assert "reserve CPU" in fixes[0]
