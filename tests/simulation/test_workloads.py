"""Pods are found in workloads and custom resources, in the right number."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from numaproof.inputs.documents import DocumentError, load
from numaproof.simulation.evaluation_gaps import NETWORKS
from numaproof.simulation.pods import PodOptions, Reading, read

CASES = load(Path(__file__).with_name("workloads.yaml"), aliases=True).data


def title(case: dict[str, Any]) -> str:
    thing = case["object"]
    return f"{thing['apiVersion']}-{thing['kind']}-{next(iter(thing['metadata'].values()))}"


def reading(thing: dict[str, Any], **options: Any) -> Reading:
    return read([("file", json.dumps(thing, indent=1))], PodOptions(**options))


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_workload_has_its_pods(case: dict[str, Any]) -> None:
    found = reading(case["object"])
    names = Counter(pod.name.partition("#")[0] for pod in found.pods)
    assert names == {name: number for name, number in case["pods"].items() if number}
    notes = "\n".join(found.notes)
    assert case.get("note", "") in notes
    if "amounts" in case:
        assert cpus(found) == case["amounts"]


def cpus(found: Reading) -> dict[str, list[Any]]:
    """The requests and limits of the first pod's containers."""
    spec = found.pods[0].manifest["spec"]
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    return {
        one["name"]: [one["resources"][kind].get("cpu") for kind in ("requests", "limits")]
        for one in containers
    }


def test_replicas_replace_numbers_that_can_vary() -> None:
    thing = next(one["object"] for one in CASES if "RayCluster/default/ray/head" in one["pods"])
    names = Counter(pod.name.partition("#")[0] for pod in reading(thing, replicas=1).pods)
    assert names == {f"RayCluster/default/ray/{role}": 1 for role in ("head", "gpu", "cpu")}


def test_memory_of_a_virtual_machine_includes_the_overhead() -> None:
    thing = next(one["object"] for one in CASES if "VirtualMachine/default/pinned" in one["pods"])
    (container,) = reading(thing).pods[0].manifest["spec"]["containers"]
    mib = 1 << 20
    overhead = (220 + 8 * 1024 // 512 + 8 * (8 + 1) + 32 + 1024) * mib
    assert container["resources"]["limits"] == {
        "cpu": 9,
        "memory": overhead,
        "hugepages-1Gi": 8 << 30,
        "vendor.example/gpu": 1,
    }


def test_networks_that_can_need_devices_are_not_evaluated() -> None:
    domain = {
        "memory": {"guest": "1Gi"},
        "devices": {"interfaces": [{"name": "default", "bridge": {}}, {"name": "s", "sriov": {}}]},
    }
    machine = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "vm"},
        "spec": {"domain": domain},
    }
    annotations = {"k8s.v1.cni.cncf.io/networks": "sriov-net"}
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": pod},
    }
    for thing in (machine, deployment, {"apiVersion": "v1", "kind": "Pod", **pod}):
        thing.setdefault("metadata", {}).setdefault("name", "x")
        assert reading(thing).pods[0].gaps == (NETWORKS,)
    (container,) = reading(machine).pods[0].manifest["spec"]["containers"]
    assert container["resources"]["requests"]["memory"] > (2 << 30)


KNATIVE = "queue.sidecar.serving.knative.dev"


def knative(annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Revision",
        "metadata": {"name": "r", "annotations": annotations},
        "spec": {"containers": [{"name": "app"}]},
    }


def test_a_share_for_the_queue_proxy_is_not_evaluated() -> None:
    (pod,) = reading(knative({f"{KNATIVE}/resource-percentage": "10"})).pods
    assert pod.gaps == (f"{KNATIVE}/resource-percentage: the resources of queue-proxy",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"{KNATIVE}/cpu-resource-limit", "must be a quantity"),
        ("autoscaling.knative.dev/min-scale", "invalid number 'much'"),
    ],
)
def test_a_wrong_annotation_is_an_error(name: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        reading(knative({name: "much"}))
    assert name in str(caught.value)
    assert message in str(caught.value)


def test_memory_of_spark_includes_the_overhead() -> None:
    thing = next(
        one["object"] for one in CASES if "SparkApplication/default/pi/driver" in one["pods"]
    )
    driver, executor, *_ = reading(thing).pods
    memory = [
        pod.manifest["spec"]["containers"][0]["resources"]["limits"]["memory"]
        for pod in (driver, executor)
    ]
    assert memory == ["896Mi", f"{8192 + 819}Mi"]


def test_a_varying_number_of_executors_is_named() -> None:
    thing = deepcopy(
        next(one["object"] for one in CASES if "SparkApplication/default/pi/driver" in one["pods"])
    )
    thing["spec"]["dynamicAllocation"] = {"enabled": True, "minExecutors": 1, "maxExecutors": 8}
    (note,) = (one for one in reading(thing).notes if "executors" in one)
    assert "Spark varies the number of executors, up to 8 (set it with --replicas)" in note
    thing["spec"]["dynamicAllocation"]["enabled"] = False
    assert not any("executors" in one for one in reading(thing).notes)


CONTAINERS = {"containers": [{"name": "c"}]}

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "JobSet", "spec": {"replicatedJobs": {}}}, "spec.replicatedJobs", "must be a list"),
    (
        {"kind": "JobSet", "spec": {"replicatedJobs": [5]}},
        "spec.replicatedJobs[0]",
        "must be a mapping",
    ),
    ({"kind": "JobSet", "spec": []}, "spec", "must be a mapping"),
    (
        {"kind": "JobSet", "spec": {"replicatedJobs": [{"template": {"spec": {"template": 1}}}]}},
        "spec.replicatedJobs[0].template.spec.template",
        "must be a mapping",
    ),
    (
        {
            "kind": "JobSet",
            "spec": {
                "replicatedJobs": [
                    {"replicas": -1, "template": {"spec": {"template": {"spec": CONTAINERS}}}}
                ]
            },
        },
        "spec.replicatedJobs[0].replicas",
        "invalid number -1",
    ),
    (
        {
            "kind": "JobSet",
            "spec": {
                "replicatedJobs": [
                    {"template": {"spec": {"template": {"spec": {**CONTAINERS, "hostnme": "x"}}}}}
                ]
            },
        },
        "spec.replicatedJobs[0].template.spec.template.spec.hostnme",
        "unknown field",
    ),
    (
        {"kind": "JobSet", "spec": {"jobs": [{"template": {"spec": CONTAINERS}}]}},
        "spec.jobs[0].template.spec.containers",
        "a JobSet has no pods here",
    ),
    (
        {
            "kind": "JobSet",
            "spec": {
                "replicatedJobs": [
                    {"name": "a", "template": {"spec": {"template": {"spec": CONTAINERS}}}},
                    {"name": "b", "template": {"spec": CONTAINERS}},
                ]
            },
        },
        "spec.replicatedJobs[1].template.spec.containers",
        "a JobSet has no pods here",
    ),
]


@pytest.mark.parametrize(("thing", "field", "message"), WRONG, ids=[one[1] for one in WRONG])
def test_a_wrong_shape_is_one_error(thing: dict[str, Any], field: str, message: str) -> None:
    whole = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "metadata": {"name": "a"}, **thing}
    with pytest.raises(DocumentError) as raised:
        reading(whole)
    assert (raised.value.field, raised.value.message) == (field, message)
    assert raised.value.line


@pytest.mark.parametrize("case", CASES, ids=title)
@pytest.mark.parametrize("value", [5, [], [5], {"a": 5}])
def test_no_shape_is_a_traceback(case: dict[str, Any], value: Any) -> None:
    for wrong in variants(case["object"], value):
        try:
            reading(wrong)
        except ValueError as error:
            assert "file" in str(error)  # noqa: PT017 - a document error is one of two


def variants(thing: Any, value: Any) -> list[Any]:
    """Returns the object with one of its values replaced, for each of them."""
    found: list[Any] = []
    items = thing.items() if isinstance(thing, dict) else enumerate(thing)
    for key, inner in items:
        changed = [value, *(variants(inner, value) if isinstance(inner, dict | list) else ())]
        for one in changed:
            copy = dict(thing) if isinstance(thing, dict) else list(thing)
            copy[key] = one
            found.append(copy)
    return found


JOB = {"template": {"spec": CONTAINERS}}
INNER = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "inner"}}
SLIPS: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet",
        {
            "leaderWorkerTemplate": {
                "size": 3,
                "leaderTemplate": JOB["template"],
                "workerTemplates": {},
            }
        },
        "spec.leaderWorkerTemplate.workerTemplates",
        "did you mean workerTemplate?",
    ),
    (
        "jobset.x-k8s.io/v1alpha2 JobSet",
        {"replicatedJobs": [{"name": "a", "replica": 4, "template": {"spec": JOB}}]},
        "spec.replicatedJobs[0].replica",
        "did you mean replicas?",
    ),
    (
        "jobset.x-k8s.io/v1alpha2 JobSet",
        {"replicatedJobs": [{"name": "a", "template": {"spec": {**JOB, "completion": 2}}}]},
        "spec.replicatedJobs[0].template.spec.completion",
        "did you mean completions?",
    ),
    (
        "keda.sh/v1alpha1 ScaledJob",
        {"jobTargetRef": {**JOB, "paralelism": 2}},
        "spec.jobTargetRef.paralelism",
        "did you mean parallelism?",
    ),
    (
        "batch.volcano.sh/v1alpha1 Job",
        {"tasks": [{"name": "b", "replica": 4, **JOB}]},
        "spec.tasks[0].replica",
        "did you mean replicas?",
    ),
    ("batch.volcano.sh/v1alpha1 Job", {"task": []}, "spec.task", "did you mean tasks?"),
    (
        "kubeflow.org/v1 PyTorchJob",
        {"pytorchReplicaSpecs": {"Master": JOB, "Workers": JOB}},
        "spec.pytorchReplicaSpecs.Workers",
        "did you mean Worker?",
    ),
    (
        "workload.codeflare.dev/v1beta2 AppWrapper",
        {"components": [{"template": {**INNER, "spec": {**JOB, "completion": 2}}}]},
        "spec.components[0].template.spec.completion",
        "did you mean completions?",
    ),
    (
        "ray.io/v1 RayCluster",
        {"workerGroupSpecs": [{**JOB, "groupName": "a", "minReplica": 2}]},
        "spec.workerGroupSpecs[0].minReplica",
        "did you mean minReplicas?",
    ),
]


@pytest.mark.parametrize(("kind", "spec", "field", "fix"), SLIPS, ids=[one[2] for one in SLIPS])
def test_a_slip_next_to_a_field_that_is_read_is_named(
    kind: str, spec: dict[str, Any], field: str, fix: str
) -> None:
    version, _, kind = kind.partition(" ")
    thing = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    with pytest.raises(DocumentError) as raised:
        reading(thing)
    assert (raised.value.field, raised.value.message, raised.value.fix) == (
        field,
        "unknown field",
        fix,
    )
    assert any(f"{field}: unknown field" in note for note in reading(thing, lenient=True).notes)


@pytest.mark.parametrize("name", ["worker", "WORKER"])
def test_the_roles_of_kubeflow_may_be_in_any_case(name: str) -> None:
    spec = {"pytorchReplicaSpecs": {name: JOB}}
    about = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"}}
    assert len(reading({**about, "spec": spec}).pods) == 1


def test_a_slip_in_a_custom_kind_or_group_is_named() -> None:
    for version, kind, fix in (
        ("jobset.x-k8s.io/v1alpha2", "JobSett", "did you mean JobSet?"),
        ("jobset.x-k8s.oi/v1alpha2", "JobSet", "did you mean jobset.x-k8s.io?"),
    ):
        with pytest.raises(DocumentError) as raised:
            reading({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})
        assert raised.value.fix == fix


def test_a_typed_list_of_custom_resources_is_read() -> None:
    items = [one["object"] for one in CASES if "CloneSet/default/clone" in one["pods"]]
    bare = [{key: one[key] for key in ("metadata", "spec")} for one in items]
    listed = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSetList", "items": bare}
    assert len(reading(listed).pods) == 5


def rollout(**reference: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", **reference}
    spec = {"replicas": 3, "workloadRef": target}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    return {**head, "metadata": {"name": "new", "namespace": "shop"}, "spec": spec}


def deployment(namespace: str = "shop") -> dict[str, Any]:
    (pod,) = (one["object"]["spec"] for one in CASES if "Pod/default/solo" in one["pods"])
    metadata = {"name": "web", "namespace": namespace}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def names_and_notes(*things: dict[str, Any]) -> tuple[Counter[str], str]:
    found = reading({"apiVersion": "v1", "kind": "List", "items": list(things)})
    names = Counter(pod.name.partition("#")[0] for pod in found.pods)
    return names, "\n".join(found.notes)


def test_a_rollout_makes_its_pods_from_the_template_of_a_deployment() -> None:
    names, notes = names_and_notes(rollout(), deployment())
    assert names == {"Rollout/shop/new": 3, "Deployment/shop/web": 2}
    assert "Rollout/shop/new: its pods are described by Deployment/shop/web" in notes


def test_a_deployment_that_a_rollout_scales_down_has_no_pods() -> None:
    names, notes = names_and_notes(deployment(), rollout(scaleDown="onsuccess"))
    assert names == {"Rollout/shop/new": 3}
    assert "left out Deployment/shop/web: Rollout/shop/new scales it down" in notes


def test_an_object_that_describes_the_pods_of_another_is_named() -> None:
    names, notes = names_and_notes(rollout(), deployment("other"))
    assert names == {"Deployment/other/web": 2}
    assert "described by Deployment/shop/web, which is not in the files" in notes


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ({}, "WorkflowTemplate/default/t"),
        ({"clusterScope": True}, "ClusterWorkflowTemplate/default/t"),
    ],
)
def test_a_workflow_names_its_template(scope: dict[str, Any], name: str) -> None:
    spec = {"workflowTemplateRef": {"name": "t", **scope}}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
    names, notes = names_and_notes({**head, "spec": spec})
    assert not names
    assert f"described by {name}, which is not in the files" in notes


@pytest.mark.parametrize(
    ("kind", "selector", "matches"),
    [
        ("ReplicaSet", {"matchLabels": {"app": "web"}}, True),
        ("ReplicaSet", {"matchLabels": {"app": "db"}}, False),
        ("Deployment", {"matchLabels": {"app": "web", "tier": "front"}}, False),
        ("StatefulSet", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ("StatefulSet", {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        (
            "DaemonSet",
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]},
            False,
        ),
        (
            "DaemonSet",
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
            True,
        ),
        ("ReplicationController", {"app": "db"}, False),
    ],
)
def test_a_selector_must_match_the_template(
    kind: str, selector: dict[str, Any], *, matches: bool
) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c"}]},
    }
    thing = {
        "apiVersion": "v1" if kind == "ReplicationController" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": {"selector": selector, "template": template},
    }
    if matches:
        assert reading(thing).pods
        return
    with pytest.raises(DocumentError, match="the selector doesn't match the labels") as caught:
        reading(thing)
    assert "spec.selector" in str(caught.value)
