"""Listings of the pods on a node are complete, or refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from builders.node_states import listed_pod, listing
from numaproof.inputs.documents import DocumentError
from numaproof.inputs.errors import DocumentErrors
from numaproof.simulation.pods import PodOptions, Reading, read

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNNING = PodOptions(running=True)
CPU = {"cpu": "2"}


def reading(*texts: str, options: PodOptions = RUNNING) -> Reading:
    return read([(f"{number}.json", text) for number, text in enumerate(texts)], options)


def partial(**metadata: Any) -> str:
    return json.dumps({**json.loads(listing([listed_pod("a", CPU)])), "metadata": metadata})


NAMED = listing([listed_pod("a", CPU), listed_pod("b", CPU)])
SAME_UID = listing([listed_pod("a", CPU), listed_pod("b", CPU, uid="uid-a")])
A_NODE = json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Node"}]})


@pytest.mark.parametrize(
    ("texts", "node", "message"),
    [
        ([""], "", "0.json:1: no objects in it"),
        ([NAMED, "# nothing\n"], "", "1.json:1: no objects in it"),
        ([A_NODE], "", "0.json:1: no pods in the listing"),
        ([NAMED], "N1", "no pod is on node N1, only on n1 (did you mean n1?)"),
        (
            [partial(**{"continue": "eyJ2Ijoi", "remainingItemCount": 400})],
            "",
            "0.json:1: metadata.continue: the list is incomplete: 400 more objects",
        ),
        ([partial(**{"continue": "eyJ2Ijoi"})], "", "the list is incomplete"),
        ([partial(remainingItemCount=1)], "", "the list is incomplete: 1 more object"),
        ([SAME_UID], "", "the same uid as Pod/default/a"),
        ([NAMED, NAMED], "", "duplicate Pod/default/a, first in 0.json:1 (remove one of them)"),
    ],
)
def test_a_listing_that_cannot_be_complete_is_refused(
    texts: Sequence[str], node: str, message: str
) -> None:
    with pytest.raises((DocumentError, DocumentErrors)) as caught:
        reading(*texts, options=PodOptions(running=True, node_name=node))
    assert message in str(caught.value)


def test_a_list_without_items_is_a_node_without_pods() -> None:
    assert reading(listing([])).pods == ()


def test_a_complete_list_may_have_an_empty_token() -> None:
    assert len(reading(partial(**{"continue": "", "remainingItemCount": None})).pods) == 1


def test_pods_of_an_incomplete_list_arrive_with_a_warning() -> None:
    found = reading(partial(remainingItemCount=3), options=PodOptions())
    assert len(found.pods) == 1
    assert "the list is incomplete: 3 more objects" in found.notes[0]


def test_a_pod_without_a_uid_is_named() -> None:
    found = reading(listing([listed_pod("a", CPU, uid=""), listed_pod("b", CPU)]))
    (note,) = found.notes
    assert note.startswith("1 pod has no uid, by which the state files name pods: default/a;")


def test_a_manifest_needs_no_uid() -> None:
    pod = listed_pod("a", CPU, uid="")
    del pod["status"], pod["spec"]["nodeName"]
    assert not reading(json.dumps(pod)).notes


def rejected(name: str, reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    status = {"phase": "Failed", "reason": reason, "message": message}
    return {**listed_pod(name, CPU, **more), "status": status}


REJECTION = "Pod was rejected: Resources cannot be allocated with Topology locality"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("TopologyAffinityError", REJECTION),
        ("TopologyAffinityError", ""),
        ("SMTAlignmentError", ""),
        ("UnexpectedAdmissionError", ""),
        ("OutOfcpu", ""),
        ("Evicted", "Pod was rejected: The node had condition: [MemoryPressure]."),
    ],
)
def test_a_rejected_pod_arrives_again(reason: str, message: str) -> None:
    pod = json.dumps(rejected("solver", reason, message))
    found = reading(pod, options=PodOptions())
    assert [one.name for one in found.pods] == ["Pod/default/solver"]
    assert found.notes == (f"arrives again: 1 pod was rejected ({reason}): default/solver",)


@pytest.mark.parametrize(("reason", "message"), [("Evicted", "The node was low"), ("Error", "")])
def test_a_pod_that_ran_and_failed_does_not_arrive_again(reason: str, message: str) -> None:
    pod = json.dumps(rejected("solver", reason, message))
    assert not reading(pod, options=PodOptions()).pods


def test_a_rejected_pod_of_a_listing_has_ended() -> None:
    pods = [rejected("solver", "TopologyAffinityError"), listed_pod("db", CPU)]
    for options in (PodOptions(), RUNNING):
        found = reading(listing(pods), options=options)
        assert [one.name for one in found.pods] == ["Pod/default/db"]
    assert not reading(listing(pods[:1])).pods


def resizing(status: dict[str, Any]) -> Reading:
    """Reads a pod that asks for 2 CPUs, with a pending resize."""
    pod = listed_pod("a", {"cpu": "2", "memory": "1Gi"})
    pending = [{"type": "PodResizePending", "reason": "Infeasible"}]
    pod["status"] = {"phase": "Running", "conditions": pending, **status}
    return reading(listing([pod]))


def test_a_pod_with_a_pending_resize_has_what_the_kubelet_allocated() -> None:
    status = [{"name": "main", "allocatedResources": {"cpu": "4", "memory": "1Gi"}}]
    found = resizing({"containerStatuses": status})
    resources = found.pods[0].manifest["spec"]["containers"][0]["resources"]
    amounts = {"cpu": "4", "memory": "1Gi"}
    assert resources == {"requests": amounts, "limits": amounts}
    assert found.pods[0].gaps == ()
    assert "a resize in place is pending" in found.notes[0]


@pytest.mark.parametrize("status", [{}, {"containerStatuses": [{"name": "other"}]}])
def test_a_resize_without_allocated_resources_is_a_gap(status: dict[str, Any]) -> None:
    assert resizing(status).pods[0].gaps[0].startswith("resize in place")


DESCRIBED = "Name:         web-1\nNamespace:    default\nPriority:     0\n"
HELM = "apiVersion: v1\nkind: Pod\nspec:\n  containers: [{name: c, cpu: {{ .Values.cpu }}}]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HELM, "0.json:4: a template: it contains {{ (render it first"),
        ("NAME   READY\nweb-1  1/1\n", "0.json:1: a table of kubectl (add -o yaml to kubectl get)"),
        ("NAMESPACE  NAME\na  b: c\n", "0.json:1: a table of kubectl"),
        (DESCRIBED, "0.json:1: the output of `kubectl describe` (save the output of"),
        ("services:\n  web: {image: web}\n", "0.json:1: a Compose file (convert it"),
        ("replicaCount: 2\nimage: {tag: x}\n", "0.json:1: the values of a Helm chart (render the"),
        ("No resources found in default namespace.\n", "0.json:1: a message of kubectl"),
        ("error: the server doesn't have a resource type\n", "0.json:1: a message of kubectl"),
    ],
)
@pytest.mark.parametrize("options", [PodOptions(), RUNNING])
def test_text_that_is_not_manifests_is_named(text: str, message: str, options: PodOptions) -> None:
    with pytest.raises(DocumentError) as raised:
        reading(text, options=options)
    assert message in str(raised.value)


def test_a_template_of_an_object_is_an_error_in_a_directory_as_well() -> None:
    files = [("d/a.yaml", listing([listed_pod("a", CPU)])), ("d/helm.yaml", HELM)]
    with pytest.raises(DocumentError, match=r"helm[.]yaml:4: a template"):
        read(files, PodOptions(), {"d/a.yaml", "d/helm.yaml"})
