"""Pods that an operator makes from fields other than a pod template.

They are made as the operators' documentation describes, with the operators' defaults. Containers
of the operator that change a pod's QoS class are included.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.inputs.documents import value_at
from numaproof.inputs.names import is_slip
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import quantity
from numaproof.simulation import fields
from numaproof.simulation.documents import mapping
from numaproof.simulation.evaluation_gaps import NETWORKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.inputs.documents import Document, PathTuple


class ComposedPod(NamedTuple):
    """A pod's specification.

    Attributes:
        path: the path of its containers' parent, or of the value that it is made from.
        spec: the specification.
        parts: the paths of parts of the document that it contains, with their types.
        gaps: what the value asks for that is not evaluated.
        note: what the operator adds to this pod, for the user.
    """

    path: PathTuple
    spec: dict[str, Any]
    parts: tuple[tuple[PathTuple, str], ...] = ()
    gaps: tuple[str, ...] = ()
    note: str = ""


Compose = Callable[["Document", dict[str, Any], "PathTuple"], ComposedPod | None]
"""Makes a pod from the value at a path; None if the value describes no pod.

Raises `DocumentError` if the value has the wrong shape.
"""

_MIB = 1 << 20


def pod_spec(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod | None:
    """Returns a pod specification that is not in a template, or in one with further fields."""
    if "spec" in value:
        path = (*path, "spec")
        value = mapping(document, value["spec"], path)
    return ComposedPod(path, value, ((path, "PodSpec"),))


def knative_pod(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod | None:
    """Makes a pod of Knative Serving, which adds the container ``queue-proxy``.

    Its default request is 25m CPUs, without limits; annotations override both (Knative, "Configure
    Deployment resources").
    """
    place = (*path, "spec")
    spec = mapping(document, value.get("spec"), place)
    containers, parts = _containers(document, spec, "containers", place)
    containers = [{"name": "user-container", **one} for one in containers]
    annotated = (*path, "metadata", "annotations")
    annotations = mapping(document, value_at(document.data, annotated) or {}, annotated)
    resources: dict[str, dict[str, Any]] = {"requests": {"cpu": "25m"}, "limits": {}}
    gaps = []
    for name, value_ in annotations.items():
        about, _, key = str(name).partition("/")
        if about != _QUEUE:
            continue
        if found := _QUEUE_RESOURCE.fullmatch(key):
            _bytes(document, value_, (*annotated, name))
            resources[f"{found[2]}s"][found[1]] = value_
        else:
            gaps.append(f"{name}: the resources of queue-proxy")
    proxy = {"name": "queue-proxy", "resources": resources}
    made = {**_pod_fields(spec), "containers": [*containers, proxy]}
    return ComposedPod(place, made, parts, tuple(gaps))


_QUEUE = "queue.sidecar.serving.knative.dev"
_QUEUE_RESOURCE = re.compile(r"(cpu|memory|ephemeral-storage)-resource-(request|limit)")
_AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
_WAITING = {"cpu": "200m", "memory": "256Mi"}
_SUBMITTER = {
    "requests": {"cpu": "500m", "memory": "200Mi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}


def ray_head(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod:
    """Makes the head of a Ray cluster.

    KubeRay adds the container ``autoscaler`` if the cluster has one, by default with 500m CPUs and
    512Mi of memory, and the job's submitter in ``SidecarMode`` (KubeRay, "API Reference").
    """
    cluster, job = (value_at(document.data, path[:-steps]) for steps in (2, 3))
    place = (*path[:-2], "autoscalerOptions")
    _check_slips(document, cluster, ("autoscalerOptions", "enableInTreeAutoscaling"), path[:-2])
    options = mapping(document, cluster.get("autoscalerOptions") or {}, place)
    extra = []
    parts: tuple[tuple[PathTuple, str], ...] = ()
    if cluster.get("enableInTreeAutoscaling"):
        resources = options.get("resources") or {"limits": _AUTOSCALER}
        extra.append({"name": "autoscaler", "resources": resources})
        if options.get("resources"):
            parts = (((*place, "resources"), "ResourceRequirements"),)
    if job.get("submissionMode") == "SidecarMode":
        extra.append({"name": "ray-job-submitter", "resources": _SUBMITTER})
    return _with_added(document, value, path, "containers", extra)._replace(
        parts=((path, "PodTemplateSpec"), *parts)
    )


def ray_worker(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod:
    """Makes a worker of a Ray cluster, to which KubeRay adds an init container."""
    waiting = {"name": "wait-gcs-ready", "resources": {"limits": _WAITING}}
    return _with_added(document, value, path, "initContainers", [waiting])


def ray_submitter(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod | None:
    """Makes the pod that submits a Ray job unless the job has a template for it or needs none."""
    _check_slips(document, value, ("submissionMode",), path)
    mode = value.get("submissionMode") or "K8sJobMode"
    if mode != "K8sJobMode" or value.get("submitterPodTemplate"):
        return None
    spec = {"containers": [{"name": "ray-job-submitter", "resources": _SUBMITTER}]}
    return ComposedPod(path, spec, note="a submitter is added, with KubeRay's default resources")


def _with_added(
    document: Document,
    template: dict[str, Any],
    path: PathTuple,
    field: str,
    extra: list[dict[str, Any]],
) -> ComposedPod:
    """Returns the pod of a template with an operator's containers after its own."""
    place = (*path, "spec")
    spec = mapping(document, template.get("spec"), place)
    own, _ = _containers(document, spec, field, place)
    made = {**spec, field: [*own, *extra]} if extra else spec
    names = " and ".join(one["name"] for one in extra)
    note = f"KubeRay adds {names}" if extra else ""
    return ComposedPod(place, made, ((path, "PodTemplateSpec"),), note=note)


def kserve_component(
    document: Document, value: dict[str, Any], path: PathTuple
) -> ComposedPod | None:
    """Makes the pod of a predictor, transformer or explainer of KServe.

    It has its own containers, or one with the resources of its model, if the service sets them.
    """
    if value.get("containers"):
        _, parts = _containers(document, value, "containers", path)
        return ComposedPod(path, _pod_fields(value), parts)
    model = mapping(document, value.get("model") or {}, (*path, "model"))
    if not model.get("resources"):
        return None
    server = {"name": "kserve-container", "resources": model["resources"]}
    return ComposedPod(path, {**_pod_fields(value), "containers": [server]})


def argo_template(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod | None:
    """Makes the pod of a workflow's template.

    The workflow controller adds the containers ``init`` and ``wait``, by default without resources
    (Argo Workflows, "Workflow Pod Creation"). Templates of steps and DAGs have no pod.
    """
    parts: tuple[tuple[PathTuple, str], ...] = ()
    if value.get("containerSet") is not None:
        place = (*path, "containerSet")
        inner = mapping(document, value["containerSet"], place)
        main, parts = _containers(document, inner, "containers", place)
    elif value.get("container") is not None:
        place = (*path, "container")
        main, parts = [mapping(document, value["container"], place)], ((place, "Container"),)
    elif value.get("script") is not None:
        main = [mapping(document, value["script"], (*path, "script"))]
    else:
        return None
    first, *others = main or [{}]
    sidecars, of_sidecars = _containers(document, value, "sidecars", path)
    setup, of_setup = _containers(document, value, "initContainers", path)
    spec = {
        **_pod_fields(value),
        "containers": [{"name": "main", **first}, *others, *sidecars, {"name": "wait"}],
        "initContainers": [{"name": "init"}, *setup],
    }
    return ComposedPod(path, spec, (*parts, *of_sidecars, *of_setup))


def spark_pod(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod | None:
    """Makes a driver or executor of Spark (Spark, "Running Spark on Kubernetes").

    CPUs: a request of ``coreRequest`` or ``cores``, and a limit only if there is a ``coreLimit``.
    Memory: request and limit are ``memory`` and its overhead, at least 384 MiB.
    """
    application = value_at(document.data, path[:-1])
    is_jvm = application.get("type", "Scala") in ("Java", "Scala")
    memory = _mebibytes(document, value.get("memory", "1g"), (*path, "memory"))
    factor = value.get("memoryOverheadFactor", application.get("memoryOverheadFactor"))
    part = _number(document, factor or (0.1 if is_jvm else 0.4), (*path, "memoryOverheadFactor"))
    overhead = max(384, int(memory * part))
    if value.get("memoryOverhead") is not None:
        overhead = _mebibytes(document, value["memoryOverhead"], (*path, "memoryOverhead"))
    amount = f"{memory + overhead}Mi"
    cores = value.get("coreRequest", value.get("cores", 1))
    limits = {"memory": amount}
    if value.get("coreLimit") is not None:
        limits["cpu"] = value["coreLimit"]
    gpu = mapping(document, value.get("gpu") or {}, (*path, "gpu"))
    if gpu:
        limits[_text(document, gpu.get("name"), (*path, "gpu"))] = gpu.get("quantity", 1)
    resources = {"requests": {"cpu": cores, "memory": amount}, "limits": limits}
    name = f"spark-kubernetes-{path[-1]}"
    sidecars, parts = _containers(document, value, "sidecars", path)
    template = mapping(document, value.get("template") or {}, (*path, "template"))
    spec = _around(document, name, resources, template, (*path, "template"))
    spec["containers"] += sidecars
    note = _dynamic_allocation(application) if path[-1] == "executor" else ""
    return ComposedPod(path, {**_pod_fields(value), **spec}, parts, note=note)


def _dynamic_allocation(application: dict[str, Any]) -> str:
    """Says that Spark varies the number of executors; empty if it does not."""
    if value_at(application, ("dynamicAllocation", "enabled")) is not True:
        return ""
    most = value_at(application, ("dynamicAllocation", "maxExecutors"))
    limit = f", up to {most}" if most is not None else ""
    return f"Spark varies the number of executors{limit} (set it with --replicas)"


def flink_pod(document: Document, value: dict[str, Any], path: PathTuple) -> ComposedPod | None:
    """Makes a JobManager or TaskManager of Flink, whose limits equal its requests.

    (Flink, "kubernetes.*.limit-factor": 1 by default.)
    """
    resource = mapping(document, value.get("resource") or {}, (*path, "resource"))
    memory = _mebibytes(document, resource.get("memory", "1600m"), (*path, "resource", "memory"))
    limits = {"cpu": resource.get("cpu", 1), "memory": f"{memory}Mi"}
    place = (*path, "podTemplate")
    if value.get("podTemplate") is None:
        place = (*path[:-1], "podTemplate")
    template = mapping(document, value_at(document.data, place) or {}, place)
    spec = _around(document, "flink-main-container", {"limits": limits}, template, place)
    return ComposedPod(path, spec)


def _around(
    document: Document,
    name: str,
    resources: dict[str, Any],
    template: dict[str, Any],
    path: PathTuple,
) -> dict[str, Any]:
    """Returns a template's specification with the operator's container, which has its resources."""
    place = (*path, "spec")
    spec = mapping(document, template.get("spec") or {}, place)
    others, _ = _containers(document, spec, "containers", place)
    own = {"name": name, "resources": resources}
    return {**spec, "containers": [own, *(one for one in others if one.get("name") != name)]}


_CPU_FIELDS = (
    "cores",
    "dedicatedCpuPlacement",
    "isolateEmulatorThread",
    "sockets",
    "threads",
)
_MEMORY_FIELDS = ("guest", "hugepages")
_EVEN = "alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity"
_LAUNCHER = 220 * _MIB
"""virt-launcher-monitor, virt-launcher, virtlogd, virtqemud and QEMU: 25, 100, 25, 40, 30 MiB."""


def virtual_machine(
    document: Document, value: dict[str, Any], path: PathTuple
) -> ComposedPod | None:
    """Makes the container ``compute`` of KubeVirt's launcher pod; None if the memory is unknown.

    With dedicated CPUs, it has a CPU for each virtual one, and limits equal requests. Otherwise, it
    requests a tenth of a CPU for each. Its memory is the guest's and an overhead; huge pages hold
    only the guest's (KubeVirt, "Dedicated CPU resources", "Memory overhead"). The devices of
    KubeVirt's own plugin are left out: every node has plenty.
    """
    place = (*path, "spec")
    spec = mapping(document, value.get("spec"), place)
    inside = (*place, "domain")
    domain = mapping(document, spec.get("domain") or {}, inside)
    cpu, memory, resources, devices = (
        mapping(document, domain.get(name) or {}, (*inside, name))
        for name in ("cpu", "memory", "resources", "devices")
    )
    _check_slips(document, cpu, _CPU_FIELDS, (*inside, "cpu"))
    _check_slips(document, memory, _MEMORY_FIELDS, (*inside, "memory"))
    requests, limits = (
        dict(mapping(document, resources.get(name) or {}, (*inside, "resources", name)))
        for name in ("requests", "limits")
    )
    given = requests.get("memory") or limits.get("memory")
    huge = mapping(document, memory.get("hugepages") or {}, (*inside, "memory", "hugepages"))
    guest = given or memory.get("guest") or huge.get("pageSize")
    if guest is None:
        return None
    size = _bytes(document, guest, (*inside, "memory"))
    vcpus = _vcpus(document, cpu, (*inside, "cpu"))
    dedicated, isolated = (
        _flag(document, cpu.get(name, False), (*inside, "cpu", name))
        for name in ("dedicatedCpuPlacement", "isolateEmulatorThread")
    )
    whole = vcpus or _whole(document, limits.get("cpu") or requests.get("cpu"), inside)
    attached = [
        _text(document, one.get("deviceName", ""), place)
        for name in ("gpus", "hostDevices")
        for one, place in _with_places(document, devices, name, (*inside, "devices"))
    ]
    overhead = _LAUNCHER + size // 512 + 8 * _MIB * ((whole or 1) + 1)
    overhead += 32 * _MIB * (devices.get("autoattachGraphicsDevice") is not False)
    interfaces = _with_places(document, devices, "interfaces", (*inside, "devices"))
    has_sriov = any("sriov" in interface for interface, _ in interfaces)
    overhead += 1024 * _MIB * bool(attached or has_sriov)
    if huge:
        pages = _text(document, huge.get("pageSize"), (*inside, "memory", "hugepages"))
        requests[f"hugepages-{pages}"] = limits[f"hugepages-{pages}"] = size
        requests["memory"] = overhead
    else:
        requests["memory"] = size + overhead * (not resources.get("overcommitGuestOverhead"))
    if dedicated:
        total = (whole or 1) + (_emulator_cpus(value, whole or 1) if isolated else 0)
        requests["cpu"] = limits["cpu"] = total
        limits["memory"] = requests["memory"]
    else:
        requests.setdefault("cpu", f"{100 * (vcpus or 1)}m")
        if "memory" in limits:
            limit = _bytes(document, limits["memory"], (*inside, "resources", "limits", "memory"))
            limits["memory"] = overhead if huge else limit + overhead
    for name in filter(None, attached):  # devices of resource claims have no name
        limits[name] = requests[name] = limits.get(name, 0) + 1
    compute = {"name": "compute", "resources": {"requests": requests, "limits": limits}}
    gaps = (NETWORKS,) if has_sriov else ()
    return ComposedPod(path, {**_pod_fields(spec), "containers": [compute]}, gaps=gaps)


def _vcpus(document: Document, cpu: Mapping[str, Any], path: PathTuple) -> int:
    """Returns the number of virtual CPUs; 0 if the topology is not set."""
    product = 0
    for name in ("sockets", "cores", "threads"):
        given = cpu.get(name) or 0
        if type(given) is not int or given < 0:
            raise document.error((*path, name), *fields.mismatch("uint32"))
        product = (product or 1) * given if given else product
    return product


def _emulator_cpus(value: Mapping[str, Any], vcpus: int) -> int:
    """Returns the CPUs of the emulator: one, or two if that is needed for an even number."""
    annotations = value_at(value, ("metadata", "annotations")) or {}
    return 2 if _EVEN in annotations and vcpus % 2 == 0 else 1


def _check_slips(
    document: Document, value: Mapping[str, Any], names: Iterable[str], path: PathTuple
) -> None:
    """Refuses misspelt names of the fields that are read."""
    for name in value:
        meant = next((one for one in names if is_slip(name, one)), name)
        if meant != name:
            raise document.error((*path, name), "unknown field", f"did you mean {meant}?")


def _pod_fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that a pod specification has."""
    of_pods = fields.table()["PodSpec"]
    return {
        name: one
        for name, one in value.items()
        if name in of_pods and name != "volumes" and fields.fits(one, of_pods[name].type)
    }


def _containers(
    document: Document, value: Mapping[str, Any], name: str, path: PathTuple
) -> tuple[list[dict[str, Any]], tuple[tuple[PathTuple, str], ...]]:
    """Returns the containers in a list, and their paths with their type."""
    found = list(_with_places(document, value, name, path))
    return [one for one, _ in found], tuple((place, "Container") for _, place in found)


def _with_places(
    document: Document, value: Mapping[str, Any], name: str, path: PathTuple
) -> Iterator[tuple[dict[str, Any], PathTuple]]:
    """Yields the mappings in a list, with their paths."""
    listed = value.get(name) or []
    if not isinstance(listed, list):
        raise document.error((*path, name), *fields.mismatch("[]"))
    for number, one in enumerate(listed):
        place = (*path, name, number)
        yield mapping(document, one, place), place


def _flag(document: Document, value: Any, path: PathTuple) -> bool:
    if not isinstance(value, bool):
        raise document.error(path, *fields.mismatch("bool"))
    return value


def _text(document: Document, value: Any, path: PathTuple) -> str:
    if not isinstance(value, str):
        raise document.error(path, *fields.mismatch("string"))
    return value


_JVM_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)


def _mebibytes(document: Document, value: Any, path: PathTuple) -> int:
    """Reads a size as Java programs write it: in MiB, or with a unit such as ``4g``."""
    found = _JVM_SIZE.fullmatch(str(value).strip())
    if not found:
        raise document.error(path, f"invalid size {value!r}", "use a value such as 4g or 512m")
    power = " kmgtp".index(found[2].lower() or "m")
    return ceil(Fraction(int(found[1]) * 1024**power, _MIB))


def _number(document: Document, value: Any, path: PathTuple) -> Fraction:
    """Reads a factor, which may be quoted."""
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise document.error(path, *fields.mismatch("float64")) from None


def _bytes(document: Document, value: Any, path: PathTuple) -> int:
    try:
        return ceil(quantity.parse(value))
    except (quantity.QuantityError, UnsupportedError, TypeError):
        raise document.error(path, *fields.mismatch("Quantity")) from None


def _whole(document: Document, value: Any, path: PathTuple) -> int:
    return 0 if value is None else _bytes(document, value, path)
