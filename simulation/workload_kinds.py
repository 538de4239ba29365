"""The kinds of objects that describe pods: where their pod templates are, and how many pods.

They are the workloads of Kubernetes and common custom resources, as their API references describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from numaproof.simulation import composed_pods

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.simulation.composed_pods import Compose


class Count(NamedTuple):
    """A factor of a number of pods: the value at a path.

    Attributes:
        path: the path, as in `Template`; empty if there is only a default.
        quotient: two paths whose quotient, rounded up, is the factor if `path` has no value but the
            first of them does; the second is 1 by default.
        default: the factor if there is no value.
        less: a number to subtract.
        at_least, at_most: the paths of bounds; can be empty.
        none_if: the path of a field that, if true, means no pods; can be empty.
    """

    path: str = ""
    quotient: tuple[str, str] = ("", "")
    default: int = 1
    less: int = 0
    at_least: str = ""
    at_most: str = ""
    none_if: str = ""

    @property
    def all_paths(self) -> tuple[str, ...]:
        """The paths of all fields that count."""
        more = (*self.quotient, self.at_least, self.at_most, self.none_if)
        return tuple(filter(None, (self.path, *more)))


class Template(NamedTuple):
    """A place of pod templates, or of whole objects, in a kind.

    Attributes:
        path: the fields that lead there; ``[]`` is every item of a list, ``{}`` every value of a
            mapping. A ``|`` separates alternatives for a field: the first that is set counts. The
            name of an annotation follows ``annotations.``, and that of one of Flink's options
            ``flinkConfiguration.``.
        counts: the number of pods is the product of these factors. Their paths begin like `path`.
        role: a name for the pods of this template, or the path of one. By default, the field
            ``name`` of the list's item, or the key of the mapping.
        compose: makes the pod's specification from a value that is not a pod template.
        is_assumed: whether a controller decides how many pods there are.
        note: how the pod is made, for the user.
        absent: why an object of the kind can have no pods.
        around: the path of a value of a Kubernetes type that contains the template, and the type.
        keys: the keys of the mapping in `path`, in any case; empty if any will do.
    """

    path: str
    counts: tuple[Count, ...] = ()
    role: str = ""
    compose: Compose | None = None
    is_assumed: bool = False
    note: str = ""
    absent: str = ""
    around: tuple[str, str] | None = None
    keys: tuple[str, ...] = ()


def _replicas(path: str = "spec.replicas", default: int = 1) -> tuple[Count, ...]:
    return (Count(path, default=default),)


def _parallelism(job: str = "spec") -> tuple[Count, ...]:
    return (Count(f"{job}.parallelism", at_most=f"{job}.completions"),)


def _kubeflow(name: str, *keys: str) -> tuple[Template, ...]:
    path = f"spec.{name}ReplicaSpecs{{}}"
    return (Template(f"{path}.template", _replicas(f"{path}.replicas"), keys=keys),)


def _ray(cluster: str, *more: Template) -> tuple[Template, ...]:
    group = f"{cluster}.workerGroupSpecs[]"
    replicas = Count(
        f"{group}.replicas",
        default=0,
        at_least=f"{group}.minReplicas",
        at_most=f"{group}.maxReplicas",
        none_if=f"{group}.suspend",
    )
    counts = (replicas, *_replicas(f"{group}.numOfHosts"))
    head, worker = composed_pods.ray_head, composed_pods.ray_worker
    return (
        Template(f"{cluster}.headGroupSpec.template", role="head", compose=head),
        Template(f"{group}.template", counts, f"{group}.groupName", worker),
        *more,
    )


def _ray_job(job: str) -> tuple[Template, ...]:
    return _ray(
        f"{job}.rayClusterSpec",
        Template(f"{job}.submitterPodTemplate", role="submitter"),
        Template(job, role="submitter", compose=composed_pods.ray_submitter),
    )


def _leader_workers(path: str, *outer: Count) -> tuple[Template, ...]:
    size = f"{path}.size"
    leaders, workers = f"{path}.leaderTemplate|workerTemplate", f"{path}.workerTemplate"
    return (
        Template(leaders, outer, "leader"),
        Template(workers, (*outer, Count(size, less=1)), "worker"),
    )


def _replicated_jobs(path: str) -> tuple[Template, ...]:
    job = f"{path}.replicatedJobs[]"
    counts = (*_replicas(f"{job}.replicas"), *_parallelism(f"{job}.template.spec"))
    around = (f"{job}.template", "JobTemplateSpec")
    return (Template(f"{job}.template.spec.template", counts, around=around),)


def _volcano(path: str) -> tuple[Template, ...]:
    return (Template(f"{path}.tasks[].template", _replicas(f"{path}.tasks[].replicas", 0)),)


def _dask(path: str) -> tuple[Template, ...]:
    workers, compose = _replicas(f"{path}.worker.replicas", 3), composed_pods.pod_spec
    return (
        Template(f"{path}.scheduler", role="scheduler", compose=compose),
        Template(f"{path}.worker", workers, "worker", compose),
    )


def _argo(path: str) -> tuple[Template, ...]:
    compose, note = composed_pods.argo_template, "the containers init and wait are added"
    absent = "none of its templates has a container"
    path = f"{path}.templates[]"
    return (Template(path, compose=compose, is_assumed=True, note=note, absent=absent),)


def _spark(path: str) -> tuple[Template, ...]:
    compose, note = composed_pods.spark_pod, "its CPUs and memory are those that Spark requests"
    instances = _replicas(f"{path}.executor.instances")
    return (
        Template(f"{path}.driver", role="driver", compose=compose, note=note),
        Template(f"{path}.executor", instances, "executor", compose, note=note),
    )


def _flink(name: str, role: str, count: Count, *, is_assumed: bool = False) -> Template:
    note = "its limits equal its resources"
    return Template(f"spec.{name}", (count,), role, composed_pods.flink_pod, is_assumed, note)


def _knative(path: str) -> tuple[Template, ...]:
    note = "the container queue-proxy is added"
    scale = "autoscaling.knative.dev/min-scale|autoscaling.knative.dev/minScale"
    counts = (Count(at_least=f"{path}.metadata.annotations.{scale}"),)
    return (Template(path, counts, "", composed_pods.knative_pod, is_assumed=True, note=note),)


def _kserve(component: str) -> Template:
    counts = _replicas(f"spec.{component}.minReplicas")
    compose = composed_pods.kserve_component
    note = "containers that KServe adds are not known"
    absent = "its containers are those of its serving runtime"
    return Template(
        f"spec.{component}", counts, component, compose, is_assumed=True, note=note, absent=absent
    )


def _virtual_machine(path: str, counts: tuple[Count, ...] = ()) -> tuple[Template, ...]:
    note = "KubeVirt's default overhead is assumed; only the container compute is read"
    absent = "its memory is not in it; instance types are not read"
    compose = composed_pods.virtual_machine
    return (Template(path, counts, compose=compose, note=note, absent=absent),)


_POD_TEMPLATE = (Template("spec.template"),)
_SCALED = (Template("spec.template", _replicas()),)
_JOB = (Template("spec.template", _parallelism()),)
_CRON_JOB = (Template("spec.jobTemplate.spec.template", _parallelism("spec.jobTemplate.spec")),)
_RUNTIME = _replicated_jobs("spec.template.spec")
_TASK_MANAGERS = Count(
    "spec.taskManager.replicas",
    quotient=(
        "spec.job.parallelism",
        "spec.flinkConfiguration.taskmanager.numberOfTaskSlots",
    ),
)
_UNITED = "statefulSetTemplate|advancedStatefulSetTemplate|cloneSetTemplate|deploymentTemplate"

KINDS: Mapping[tuple[str, str], tuple[Template, ...]] = {
    ("", "Pod"): (Template(""),),
    ("", "PodTemplate"): (Template("template"),),
    ("", "ReplicationController"): _SCALED,
    ("apps", "DaemonSet"): _POD_TEMPLATE,
    **{("apps", kind): _SCALED for kind in ("Deployment", "ReplicaSet", "StatefulSet")},
    ("batch", "Job"): _JOB,
    ("batch", "CronJob"): _CRON_JOB,
    # sigs.k8s.io
    ("jobset.x-k8s.io", "JobSet"): _replicated_jobs("spec"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_workers(
        "spec.leaderWorkerTemplate", *_replicas()
    ),
    ("kueue.x-k8s.io", "Workload"): (
        Template("spec.podSets[].template", _replicas("spec.podSets[].count")),
    ),
    ("workloads.x-k8s.io", "RoleBasedGroup"): (
        Template("spec.roles[].template", _replicas("spec.roles[].replicas")),
        Template("spec.roles[].standalonePattern.template", _replicas("spec.roles[].replicas")),
        Template(
            "spec.roles[].leaderWorkerPattern.template",
            (
                *_replicas("spec.roles[].replicas"),
                *_replicas("spec.roles[].leaderWorkerPattern.size"),
            ),
        ),
    ),
    ("agents.x-k8s.io", "Sandbox"): (Template("spec.podTemplate"),),
    # Batch and machine learning
    ("batch.volcano.sh", "Job"): _volcano("spec"),
    ("batch.volcano.sh", "CronJob"): _volcano("spec.jobTemplate.spec"),
    ("flow.volcano.sh", "JobTemplate"): _volcano("spec"),
    ("kubeflow.org", "PyTorchJob"): _kubeflow("pytorch", "Master", "Worker"),
    ("kubeflow.org", "TFJob"): _kubeflow("tf", "Chief", "Evaluator", "Master", "PS", "Worker"),
    ("kubeflow.org", "MPIJob"): _kubeflow("mpi", "Launcher", "Worker"),
    ("kubeflow.org", "XGBoostJob"): _kubeflow("xgb", "Master", "Worker"),
    ("kubeflow.org", "PaddleJob"): _kubeflow("paddle", "Master", "Worker"),
    ("kubeflow.org", "JAXJob"): _kubeflow("jax", "Worker"),
    ("kubeflow.org", "Notebook"): _POD_TEMPLATE,
    ("kubeflow.org", "Experiment"): (
        Template("spec.trialTemplate.trialSpec", _replicas("spec.parallelTrialCount", 3)),
    ),
    ("trainer.kubeflow.org", "TrainingRuntime"): _RUNTIME,
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): _RUNTIME,
    ("workload.codeflare.dev", "AppWrapper"): (Template("spec.components[].template"),),
    ("ray.io", "RayCluster"): _ray("spec"),
    ("ray.io", "RayJob"): _ray_job("spec"),
    ("ray.io", "RayService"): _ray("spec.rayClusterConfig"),
    ("ray.io", "RayCronJob"): _ray_job("spec.jobTemplate"),
    ("sparkoperator.k8s.io", "SparkApplication"): _spark("spec"),
    ("sparkoperator.k8s.io", "ScheduledSparkApplication"): _spark("spec.template"),
    ("kubernetes.dask.org", "DaskCluster"): _dask("spec"),
    ("kubernetes.dask.org", "DaskWorkerGroup"): (
        Template(
            "spec.worker", _replicas("spec.worker.replicas", 3), compose=composed_pods.pod_spec
        ),
    ),
    ("kubernetes.dask.org", "DaskJob"): (
        Template("spec.job", role="job", compose=composed_pods.pod_spec),
        *_dask("spec.cluster.spec"),
    ),
    ("flink.apache.org", "FlinkDeployment"): (
        _flink("jobManager", "job-manager", Count("spec.jobManager.replicas")),
        _flink("taskManager", "task-manager", _TASK_MANAGERS, is_assumed=True),
    ),
    ("argoproj.io", "Workflow"): _argo("spec"),
    ("argoproj.io", "WorkflowTemplate"): _argo("spec"),
    ("argoproj.io", "ClusterWorkflowTemplate"): _argo("spec"),
    ("argoproj.io", "CronWorkflow"): _argo("spec.workflowSpec"),
    # Services
    ("argoproj.io", "Rollout"): _SCALED,
    ("serving.knative.dev", "Service"): _knative("spec.template"),
    ("serving.knative.dev", "Configuration"): _knative("spec.template"),
    ("serving.knative.dev", "Revision"): _knative(""),
    ("serving.kserve.io", "InferenceService"): (
        _kserve("predictor"),
        _kserve("transformer"),
        _kserve("explainer"),
    ),
    ("orchestration.aibrix.ai", "StormService"): (
        Template(
            "spec.template.spec.roles[].template",
            (*_replicas(), *_replicas("spec.template.spec.roles[].replicas")),
        ),
    ),
    ("keda.sh", "ScaledJob"): (
        Template(
            "spec.jobTargetRef.template",
            (Count(at_least="spec.minReplicaCount"), *_parallelism("spec.jobTargetRef")),
            note="its scaler decides how many Jobs there are; only the fewest are counted",
            around=("spec.jobTargetRef", "JobSpec"),
        ),
    ),
    ("apps.openshift.io", "DeploymentConfig"): _SCALED,
    **{("apps.kruise.io", kind): _SCALED for kind in ("CloneSet", "StatefulSet")},
    ("apps.kruise.io", "DaemonSet"): _POD_TEMPLATE,
    ("apps.kruise.io", "BroadcastJob"): _POD_TEMPLATE,
    ("apps.kruise.io", "AdvancedCronJob"): (
        Template(
            "spec.template.jobTemplate.spec.template",
            _parallelism("spec.template.jobTemplate.spec"),
            "job",
            around=("spec.template.jobTemplate", "JobTemplateSpec"),
        ),
        Template("spec.template.broadcastJobTemplate.spec.template", role="job"),
    ),
    ("apps.kruise.io", "UnitedDeployment"): (
        Template(f"spec.template.{_UNITED}.spec.template", _replicas()),
    ),
    ("grove.io", "PodCliqueSet"): (
        Template(
            "spec.template.cliques[].spec.podSpec",
            (*_replicas(), *_replicas("spec.template.cliques[].spec.replicas")),
            compose=composed_pods.pod_spec,
        ),
    ),
    ("slinky.slurm.net", "NodeSet"): _SCALED,
    ("agones.dev", "GameServer"): _POD_TEMPLATE,
    ("agones.dev", "Fleet"): (Template("spec.template.spec.template", _replicas()),),
    # Virtual machines
    ("kubevirt.io", "VirtualMachine"): _virtual_machine("spec.template"),
    ("kubevirt.io", "VirtualMachineInstance"): _virtual_machine(""),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): _virtual_machine(
        "spec.template", _replicas()
    ),
    ("pool.kubevirt.io", "VirtualMachinePool"): _virtual_machine(
        "spec.virtualMachineTemplate.spec.template", _replicas()
    ),
}
"""The kinds that have pod templates, by API group. All kinds without a dot in the group are v1."""


class Reference(NamedTuple):
    """How objects of a kind name the object that describes their pods.

    Attributes:
        path: where, as a kind and a name.
        kind: the kind if there is none.
        cluster_kind: the kind if ``clusterScope`` is set; empty if it can't be.
        is_template: whether the pods are made from the other object's template, in numbers of
            their own; otherwise, the other object counts for itself.
        scales_down: the path of a field that, unless it is ``never``, means that the other object
            ends without pods; can be empty.
    """

    path: str
    kind: str = ""
    cluster_kind: str = ""
    is_template: bool = False
    scales_down: str = ""


def _workflow(path: str) -> Reference:
    return Reference(f"{path}.workflowTemplateRef", "WorkflowTemplate", "ClusterWorkflowTemplate")


REFERENCES: Mapping[tuple[str, str], Reference] = {
    ("argoproj.io", "Rollout"): Reference(
        "spec.workloadRef", is_template=True, scales_down="spec.workloadRef.scaleDown"
    ),
    ("argoproj.io", "Workflow"): _workflow("spec"),
    ("argoproj.io", "CronWorkflow"): _workflow("spec.workflowSpec"),
}
"""The kinds whose objects can refer to the one that describes their pods, by API group."""

SUSPENSIONS: tuple[tuple[str, object], ...] = (
    ("spec.suspend", True),
    ("spec.runPolicy.suspend", True),
    ("spec.jobTemplate.spec.suspend", True),
    ("spec.rayClusterSpec.suspend", True),
    ("spec.active", False),
    ("spec.running", False),
    ("spec.runStrategy", "Halted"),
    ("spec.virtualMachineTemplate.spec.running", False),
    ("spec.virtualMachineTemplate.spec.runStrategy", "Halted"),
    ("spec.job.state", "suspended"),
)
"""The fields of all kinds whose objects have no pods if the field has this value."""

CORE_GROUPS = ("", "apps", "autoscaling", "batch", "extensions", "policy")
"""The API groups of Kubernetes that have no dot."""

_SIDECARS = "the containers that it adds to pods are not simulated"
_SCALER = "its numbers of replicas are not read; set them in the objects that it scales"
REASONS: Mapping[tuple[str, str], str] = {
    ("", "LimitRange"): "its defaults are not added to pods",
    ("autoscaling", "HorizontalPodAutoscaler"): _SCALER,
    ("keda.sh", "ScaledObject"): _SCALER,
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): "its requests are not added to pods",
    ("rollouts.kruise.io", "Rollout"): "its pods are those of the object that it refers to",
    ("trainer.kubeflow.org", "TrainJob"): "its pods are described by its runtime",
    ("apps.kruise.io", "SidecarSet"): _SIDECARS,
    ("workloads.x-k8s.io", "ClusterEngineRuntimeProfile"): _SIDECARS,
    ("serving.kserve.io", "ServingRuntime"): "it describes pods only together with a service",
    ("serving.kserve.io", "ClusterServingRuntime"): (
        "it describes pods only together with a service"
    ),
    ("tekton.dev", ""): "its pods are made from steps, which are not read",
    (
        "monitoring.coreos.com",
        "",
    ): "its containers are patches for an operator's, which are unknown",
    ("kyverno.io", ""): "a policy",
}
"""Why no pods are read from some kinds or groups, though they concern pods."""
