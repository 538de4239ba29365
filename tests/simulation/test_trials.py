"""Equal pods are tried once for each state of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builders import machines
from builders.node_states import listed_pod, listing
from numaproof.protocol import messages
from numaproof.simulation import pods
from numaproof.simulation.admission import Question, admit_pods, begin, node_of
from numaproof.simulation.trials import saved_once, shape, trial_node

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "topologyManagerPolicy": "restricted",
}
QUESTION = Question(machines.regular(nodes=2, cores=4), CONFIG, "1.37")
SIZES = (6, 6, 3, 6, 3, 6, "500m", 6, 1, 2, 6, "500m", 1, 1, 3, 1, "500m", 3, "500m", 1)
PODS = pods.read(
    [
        (
            "pods.json",
            listing(
                listed_pod(f"pod-{n}", {"cpu": size, "memory": "1Mi"})
                for n, size in enumerate(SIZES)
            ),
        )
    ]
).pods


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_remembered_refusals_are_those_of_the_kubelet(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    reference, _ = begin(QUESTION, str(tmp_path / "a"))
    plain, _ = begin(QUESTION, str(tmp_path / "b"))
    for one in admit_pods(reference, PODS, {}):
        manifest = next(pod.manifest for pod in PODS if pod.name == one.pod)
        answer = plain.call("admit", messages.AdmitArgs(manifest))
        if isinstance(answer, messages.Admitted):
            assert one.containers == answer.containers
        else:
            assert one.refusal == answer
    for kubelet in (reference, plain):
        kubelet.call("state", messages.NoArgs())  # releases what a refused pod had
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_pods_are_equal_if_only_their_names_differ(tmp_path: Path) -> None:
    reading = [
        pods.read([("pods.json", listing([listed_pod(name, {"cpu": cpu})]))]).pods[0]
        for name, cpu in (("a", 1), ("b", 1), ("c", 2))
    ]
    node = node_of(begin(QUESTION, str(tmp_path))[0])
    first, second, third = (shape(node.read_pod(one.manifest)) for one in reading)
    assert first == second != third


def test_a_trial_leaves_the_node_and_its_files_alone(tmp_path: Path) -> None:
    reference, _ = begin(QUESTION, str(tmp_path))
    node = node_of(reference)
    before = contents(tmp_path)
    shared = node.cpus.state.shared
    trial_node(node).admit(messages.AdmitArgs(PODS[0].manifest))
    assert (node.pods, node.affinity, node.cpus.state.shared) == ({}, {}, shared)
    assert contents(tmp_path) == before


def test_checkpoints_are_written_at_the_end(tmp_path: Path) -> None:
    reference, _ = begin(QUESTION, str(tmp_path))
    file = tmp_path / "cpu_manager_state"
    with saved_once(node_of(reference)):
        before = file.read_bytes()
        reference.call("admit", messages.AdmitArgs(PODS[0].manifest))
        assert file.read_bytes() == before
    assert b"pod-0" in file.read_bytes()
