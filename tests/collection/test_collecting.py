"""A collection keeps what can be collected and names what can't."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import msgspec
import pytest

from builders.clusters import NAME, fake_kubectl, interruptible
from numaproof.collection import debug_pod
from numaproof.collection.collecting import NothingCollectedError, Request, collect
from numaproof.collection.debug_pod import DebugPod
from numaproof.collection.kubectl import Kubectl, KubectlError
from numaproof.formats.nodes.contents import Record

if TYPE_CHECKING:
    from pathlib import Path

    from builders.clusters import FakeKubectl
    from numaproof.collection.collecting import Collection

FORBIDDEN = (
    'Error from server (Forbidden): nodes "x" is forbidden: User "jane" cannot get resource'
    ' "nodes/proxy" in API group "" at the cluster scope'
)
ABSENT = 'Error from server (NotFound): nodes "x" not found'
UNSERVED = "Error from server (NotFound): the server could not find the requested resource"
POD = DebugPod(NAME, name="numaproof-1")


def collect_from(kubectl: FakeKubectl, pod: DebugPod | None = None) -> Collection:
    return collect(Kubectl(kubectl.program), Request(NAME, pod), pytest.fail)


def pod_status(**status: object) -> dict[str, str]:
    return {"out": json.dumps({"status": status})}


def test_without_a_pod_the_objects_are_collected(tmp_path: Path) -> None:
    found = collect_from(fake_kubectl(tmp_path / "bin"))
    assert found.record.parts == ("configz.json", "node.json", "pods.json")
    assert found.record.failures == ()
    assert found.record.kubernetes == "v1.36.2"
    text = found.entries["collected.yaml"]
    assert isinstance(text, bytes)
    assert msgspec.yaml.decode(text, type=Record) == found.record


def test_a_forbidden_part_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    found = collect_from(fake_kubectl(tmp_path / "bin", configz=FORBIDDEN))
    assert found.record.parts == ("node.json", "pods.json")
    (failure,) = found.record.failures
    assert (failure.part, failure.message) == ("configz.json", "not allowed to get nodes/proxy")
    assert "ClusterRole" in failure.fix


def test_a_kubelet_without_configz_is_named(tmp_path: Path) -> None:
    (failure,) = collect_from(fake_kubectl(tmp_path / "bin", configz=UNSERVED)).record.failures
    assert "enableDebuggingHandlers" in failure.fix


def test_output_that_is_not_json_is_named(tmp_path: Path) -> None:
    (failure,) = collect_from(fake_kubectl(tmp_path / "bin", pods={"out": "[]"})).record.failures
    assert "did not print a JSON object" in failure.message


@pytest.mark.parametrize("answer", [ABSENT, "The connection to the server x was refused"])
def test_without_a_node_or_a_cluster_there_is_no_collection(answer: str, tmp_path: Path) -> None:
    kubectl = fake_kubectl(tmp_path / "bin", node=answer)
    with pytest.raises(NothingCollectedError, match=answer[:20].replace("(", r"\(")):
        collect_from(kubectl)
    assert len(kubectl.calls()) == 1


def test_if_everything_is_forbidden_there_is_no_collection(tmp_path: Path) -> None:
    names = ("node", "configz", "pods", "topology")
    with pytest.raises(NothingCollectedError, match="not allowed"):
        collect_from(fake_kubectl(tmp_path / "bin", **dict.fromkeys(names, FORBIDDEN)))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"create": FORBIDDEN.replace("nodes/proxy", "pods")}, "not allowed to get pods"),
        (
            {
                "pod": pod_status(
                    phase="Pending",
                    containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
                )
            },
            "can't start: ImagePullBackOff",
        ),
        (
            {
                "pod": pod_status(
                    phase="Failed",
                    containerStatuses=[
                        {"state": {"terminated": {"reason": "StartError", "message": "no sh"}}}
                    ],
                )
            },
            "failed: StartError: no sh",
        ),
        ({"pod": pod_status(phase="Failed", reason="OutOfpods")}, "failed: OutOfpods"),
        ({"logs": {}}, "printed nothing"),
        ({"pod": {"out": "nonsense"}}, "did not end within 0.5 s"),
    ],
)
def test_a_pod_that_prints_nothing_is_deleted_and_the_reason_is_named(
    answers: dict[str, str | dict[str, str]], message: str, tmp_path: Path
) -> None:
    kubectl = fake_kubectl(tmp_path / "bin", **answers)
    timeout = 0.5 if "0.5" in message else 30
    request = Request(NAME, POD)
    found = collect(Kubectl(kubectl.program, timeout=timeout), request, pytest.fail)
    assert [one.part for one in found.record.failures] == ["tree", "state", "kubelet-flags.txt"]
    assert message in found.record.failures[0].message
    was_refused = "create" in answers
    assert any(call.startswith("delete pod numaproof-1") for call in kubectl.calls()) != was_refused


def test_a_pod_is_watched_until_it_ends(tmp_path: Path) -> None:
    kubectl = fake_kubectl(tmp_path / "bin", pod=pod_status(phase="Pending"))
    ended = json.dumps({"get pod": pod_status(phase="Succeeded"), "": {"out": "printed"}})

    def end(_: float) -> None:
        (kubectl.folder / "answers.json").write_text(ended, "utf-8")

    assert debug_pod.run(Kubectl(kubectl.program), POD, pytest.fail, end) == b"printed"


def test_a_pod_that_can_not_be_deleted_is_named(tmp_path: Path) -> None:
    kubectl = fake_kubectl(tmp_path / "bin", delete=FORBIDDEN)
    warnings: list[str] = []
    debug_pod.run(Kubectl(kubectl.program), POD, warnings.append)
    (warning,) = warnings
    assert warning.startswith("the pod numaproof-1 could not be deleted: not allowed")
    assert "delete pod numaproof-1" in warning.partition("run")[2]


def test_an_interrupt_deletes_the_pod_and_a_second_one_does_not_stop_that(tmp_path: Path) -> None:
    kubectl = fake_kubectl(tmp_path / "bin", pod=pod_status(phase="Pending"))
    source = (kubectl.folder / "kubectl").read_text("utf-8")
    again = 'if line.startswith("delete "):\n    import os, signal\n'
    again += f"    os.kill({os.getpid()}, signal.SIGINT)\n    os.kill(os.getpid(), signal.SIGINT)\n"
    changed = source.replace("here = pathlib", f"{again}here = pathlib")
    (kubectl.folder / "kubectl").write_text(changed, "utf-8")

    def interrupt(_: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with interruptible(), pytest.raises(KeyboardInterrupt):
        debug_pod.run(Kubectl(kubectl.program), POD, pytest.fail, interrupt)
    assert kubectl.calls()[-1].startswith("delete pod numaproof-1 --ignore-not-found")


def test_a_time_out_while_the_pod_is_created_still_deletes_it(tmp_path: Path) -> None:
    kubectl = fake_kubectl(tmp_path / "bin", create="Unable to connect to the server: EOF")
    with pytest.raises(KubectlError, match="Unable to connect"):
        debug_pod.run(Kubectl(kubectl.program), POD, pytest.fail)
    assert kubectl.calls()[-1].startswith("delete pod numaproof-1")


def test_the_pod_can_not_change_the_node() -> None:
    spec = POD.manifest(90)["spec"]
    (container,) = spec["containers"]
    assert spec["activeDeadlineSeconds"] == 90
    assert "privileged" not in container["securityContext"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert "resources" not in container
