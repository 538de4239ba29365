"""Reads pods from documents: Pods, and the replicas of workloads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.inputs.documents import value_at
from numaproof.inputs.names import is_slip, suggestion
from numaproof.inputs.streams import MAX_PROBLEMS, split_documents
from numaproof.protocol.messages import Pod
from numaproof.protocol.releases import RELEASES
from numaproof.reference.errors import UnsupportedError
from numaproof.reference.pods import quantity
from numaproof.reference.pods.manifest import read_pod
from numaproof.reference.pods.pod import PodError
from numaproof.simulation import fields
from numaproof.simulation.documents import (
    collect_errors,
    field_errors,
    ignored_field_warnings,
    mapping,
    refuse,
)
from numaproof.simulation.pods_on_node import uid_on_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.inputs.documents import Document, DocumentError, PathTuple


def with_default_requests(document: Document, value: Any, path: PathTuple) -> dict[str, Any]:
    """Returns the container as the API server stores it, with requests defaulting to limits.

    Raises:
        DocumentError: its resources are malformed.
    """
    fields = mapping(document, value, path)
    place = (*path, "resources")
    resources = mapping(document, fields.get("resources") or {}, place)
    limits, requests = (_amounts(document, resources, one, place) for one in ("limits", "requests"))
    amounts = {"limits": limits, "requests": {**limits, **requests}}
    return {**fields, "resources": {**resources, **amounts}}


def _amounts(
    document: Document, resources: dict[str, Any], kind: str, place: PathTuple
) -> dict[str, Any]:
    given = mapping(document, resources.get(kind) or {}, (*place, kind))
    # Null means zero.
    return {resource: 0 if amount is None else amount for resource, amount in given.items()}


def check_containers(
    document: Document, containers: Sequence[tuple[PathTuple, dict[str, Any]]]
) -> None:
    """Validates the containers of a pod, given with their paths; all amounts must be quantities.

    Raises:
        DocumentError: the API server would reject the pod.
    """
    names: set[str] = set()
    for path, container in containers:
        if container["name"] in names:
            message = f"duplicate container name {container['name']!r}"
            raise document.error((*path, "name"), message, "rename one of the containers")
        names.add(container["name"])
        check_restart_policy(document, container, path)
        _check_amounts(document, container["resources"], (*path, "resources"))


def check_restart_policy(document: Document, fields: dict[str, Any], path: PathTuple) -> None:
    """Validates the restart policy of a pod or container.

    Raises:
        DocumentError: the API server would reject the value.
    """
    given = fields.get("restartPolicy")
    if given not in (None, "", *_RESTART_POLICIES):
        fix = suggestion(str(given), _RESTART_POLICIES)
        raise document.error((*path, "restartPolicy"), f"unknown value {given!r}", fix)


_RESTART_POLICIES = ("Always", "OnFailure", "Never")


def _check_amounts(document: Document, resources: dict[str, Any], path: PathTuple) -> None:
    limits = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for resource in resources[kind]:
            if not _is_qualified(resource):
                fix = suggestion(resource, _STANDARD)
                raise document.error((*path, kind, resource), "not a container resource", fix)
    for resource, text in resources["requests"].items():
        asked, limit = quantity.parse(text), limits.get(resource)
        place = (*path, "requests" if limit is None or limit != text else "limits", resource)
        if asked < 0:
            raise document.error(place, f"{text} is negative", "set it to 0 or more")
        if limit is not None and asked > quantity.parse(limit):
            message = f"request of {text} exceeds the limit of {limit}"
            raise document.error(place, message, "request no more than the limit")
        if not _overcommits(resource):
            if limit is None or asked != quantity.parse(limit):
                message = (
                    f"request of {text} has no limit"
                    if limit is None
                    else f"request of {text} differs from the limit of {limit}"
                )
                raise document.error(place, message, f"set the limit of {resource} to its request")
            if asked.denominator != 1:
                raise document.error(place, f"{text} is not a whole number", "use a whole number")


_STANDARD = ("cpu", "memory", "ephemeral-storage")


def _is_qualified(resource: str) -> bool:
    """Whether the resource is a standard one, huge pages, or one with a domain."""
    return resource in _STANDARD or resource.startswith("hugepages-") or "/" in resource


def _overcommits(resource: str) -> bool:
    """Whether the limit may exceed the request; false for huge pages and extended resources."""
    if resource.startswith("hugepages-"):
        return False
    domain, slash, _ = resource.partition("/")
    return not slash or domain.endswith("kubernetes.io")


_APPS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
"""The workloads in the API group ``apps``."""

_TEMPLATE: dict[str, tuple[str, ...]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    **dict.fromkeys((*_APPS, "ReplicationController", "Job"), ("spec", "template")),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""The path of the pod template in each kind."""

_GROUPS = {**dict.fromkeys(_APPS, "apps"), "Job": "batch", "CronJob": "batch"}
"""The API group of each kind that has one. Only version v1 is supported."""

_FORMER_GROUP = "extensions"
"""The former group of the workloads in ``apps`` (Kubernetes, "Deprecated API Migration Guide")."""

_REPLICAS: dict[str, tuple[PathTuple, ...]] = {
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"),
        (("spec", "replicas"),),
    ),
    "Job": (("spec", "parallelism"), ("spec", "completions")),
    "CronJob": (
        ("spec", "jobTemplate", "spec", "parallelism"),
        ("spec", "jobTemplate", "spec", "completions"),
    ),
}
"""Paths of the number of pods that run at once. The smallest value counts (default: 1)."""

_LIST = ("apiVersion", "kind", "metadata", "items")
"""The fields of a list of objects."""

_LIST_METADATA = ("continue", "remainingItemCount", "resourceVersion", "selfLink")
"""The fields of a list's metadata."""

_FIELD = re.compile(r"(spec[^ :]*):? *(.*)", re.DOTALL)

MAX_PODS = 1000
"""Far more pods than a node runs ("Considerations for large clusters" recommends at most 110)."""


class DescribedPod(msgspec.Struct, frozen=True):
    """A pod described by a document; `name` is also its uid, unless it runs on a node.

    The name is ``KIND/NAMESPACE/NAME``, followed by ``#NUMBER`` for replicas.
    """

    name: str
    manifest: Pod


class Reading(msgspec.Struct, frozen=True):
    """The pods in some documents, in order, and notes on skipped parts.

    `objects` are the objects that describe the pods, with their status if they run on a node.
    """

    pods: tuple[DescribedPod, ...]
    notes: tuple[str, ...]
    objects: tuple[Mapping[str, Any], ...] = ()


def read(
    files: Iterable[tuple[str, str]],
    replicas: int | None = None,
    *,
    running: bool = False,
    releases: Sequence[str] = RELEASES,
    lenient: bool = False,
) -> Reading:
    """Reads the pods in files, each given by its name and text.

    Args:
        files: the names and texts.
        replicas: overrides the number of replicas of each workload that can have several.
        running: whether the pods run on a node, as listed by ``kubectl get pods``. If so, they keep
            their uids and are sorted by age, because a kubelet admits the oldest first after a
            restart. Pods that have terminated are skipped.
        releases: the releases whose fields the documents may use.
        lenient: whether unknown fields cause notes instead of errors.

    Raises:
        DocumentError: a document cannot be read, has an unknown field or a value of the wrong
            type, two documents describe the same pod, or there are more than `MAX_PODS`.
        DocumentErrors: there are several such errors; about `MAX_PROBLEMS` are reported.
    """
    reader = _Reader(replicas, running, releases, lenient)
    with collect_errors(reader.errors):
        for file, text in files:
            if reader.is_done:
                break
            reader.read(file, text)
    refuse(reader.errors)
    return reader.reading()


@dataclass
class _Reader:
    """The pods read so far; the fields without a default are the arguments of `read`."""

    replicas: int | None
    running: bool
    releases: Sequence[str]
    lenient: bool
    errors: list[DocumentError] = field(default_factory=list)
    _full: bool = False
    _pods: dict[str, DescribedPod] = field(default_factory=dict)
    _objects: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self._full or len(self.errors) >= MAX_PROBLEMS

    def reading(self) -> Reading:
        names = list(self._pods)
        if self.running:
            names.sort(key=lambda name: _creation_time(self._objects[name]))
        return Reading(
            tuple(self._pods[name] for name in names),
            tuple(self._notes),
            tuple(self._objects[name] for name in names),
        )

    def read(self, file: str, text: str) -> None:
        """Reads a file, continuing after documents with errors."""
        with collect_errors(self.errors):
            for document in split_documents(text, file, self.errors):
                with collect_errors(self.errors):
                    for path, item in _objects(document, document.data, ()):
                        if self.is_done:
                            return
                        with collect_errors(self.errors):
                            self._add(document, path, item)

    def _add(self, document: Document, path: PathTuple, item: dict[str, Any]) -> None:
        where = f"{document.file}:{document.line(path)}"
        kind = _kind(document, item, path)
        if kind not in _TEMPLATE:
            self._notes.append(
                f"{where}: skipped {kind}: numaproof does not read pods of this kind"
            )
            return
        unknown, mistyped = field_errors(document, item, kind, self.releases, path)
        refuse(mistyped if self.lenient else (*unknown, *mistyped))
        self._notes += ignored_field_warnings(unknown)
        asked = _describe_pod(document, item, path, keep_uid=self.running)
        if self.running and _has_ended(item):
            self._notes.append(f"{where}: skipped {asked.name}: it has terminated")
            return
        count = _count(document, item, path, self.replicas)
        if asked.name in self._pods or f"{asked.name}#1" in self._pods:
            raise document.error(path, f"duplicate {asked.name}", "rename one of them")
        if len(self._pods) + count > MAX_PODS:
            self._full = True
            raise document.error(path, f"too many pods: the limit is {MAX_PODS}")
        if not count:
            self._notes.append(f"{where}: {asked.name} has 0 replicas")
        for one in _make_replicas(asked, count):
            self._pods[one.name] = one
            self._objects[one.name] = item


def _kind(document: Document, item: dict[str, Any], path: PathTuple) -> str:
    """Returns an object's kind, with its apiVersion if the kind belongs to an unrelated group.

    Raises:
        DocumentError: the object has no kind, a misspelt one, or a version that clusters do not
            serve.
    """
    kind = item.get("kind")
    if kind is None:
        misspelt = next((name for name in item if is_slip(name, "kind")), None)
        if misspelt:
            raise document.error((*path, misspelt), "unknown field", "did you mean kind?")
        raise document.error(path, "the object has no kind", "add kind, such as kind: Pod")
    if not isinstance(kind, str):
        raise document.error((*path, "kind"), *fields.mismatch("string"))
    meant = next((one for one in _TEMPLATE if is_slip(kind, one)), None)
    if meant and meant != kind:
        raise document.error((*path, "kind"), f"unknown kind {kind!r}", f"did you mean {meant}?")
    version = item.get("apiVersion")
    if kind not in _TEMPLATE or version is None:
        return kind
    own = _GROUPS.get(kind, "")
    served = f"{own}/v1" if own else "v1"
    if version == served:
        return kind
    group = str(version).rpartition("/")[0]
    if group not in (own, _FORMER_GROUP):
        return f"{version} {kind}"
    message = f"Kubernetes serves no {kind} of {version!r}"
    raise document.error((*path, "apiVersion"), message, f"set apiVersion: {served}")


def _has_ended(item: dict[str, Any]) -> bool:
    status = item.get("status")
    return isinstance(status, dict) and status.get("phase") in ("Succeeded", "Failed")


def _creation_time(item: Mapping[str, Any]) -> str:
    """Returns the creation time, which the API server writes in a sortable form."""
    return str(item["metadata"].get("creationTimestamp") or "")


def _objects(
    document: Document, value: Any, path: PathTuple
) -> Iterator[tuple[PathTuple, dict[str, Any]]]:
    item = mapping(document, value, path)
    # kubectl writes List; the API server writes PodList, DeploymentList and so on.
    if not str(item.get("kind")).endswith("List"):
        yield path, item
        return
    of = str(item["kind"]).removesuffix("List")
    about = mapping(document, item.get("metadata") or {}, (*path, "metadata"))
    _check_names(document, item, _LIST, path)
    _check_names(document, about, _LIST_METADATA, (*path, "metadata"))
    for number, one in enumerate(_sequence(document, item.get("items"), (*path, "items"))):
        # The items of a typed list have no kind.
        typed = {"kind": of, **one} if of and isinstance(one, dict) else one
        yield from _objects(document, typed, (*path, "items", number))


def _check_names(
    document: Document, value: dict[str, Any], known_names: tuple[str, ...], path: PathTuple
) -> None:
    for name in value:
        if name not in known_names:
            raise document.error((*path, name), "unknown field", suggestion(name, known_names))


def _sequence(document: Document, value: Any, path: PathTuple) -> list[Any]:
    if not isinstance(value, list):
        raise document.error(path, "must be a list", "see the Kubernetes API reference")
    return value


def _count(document: Document, item: dict[str, Any], path: PathTuple, replicas: int | None) -> int:
    places = _REPLICAS.get(item["kind"], ())
    if places and replicas is not None:
        return replicas
    given = []
    for place in places:
        value = value_at(item, place)
        if value is not None:
            if type(value) is not int or value < 0:
                fix = "use a whole number, 0 or more"
                raise document.error((*path, *place), f"invalid number {value!r}", fix)
            given.append(value)
    return min(given, default=1)


def _make_replicas(pod: DescribedPod, count: int) -> Iterator[DescribedPod]:
    if count == 1:
        yield pod
        return
    for number in range(1, count + 1):
        name = f"{pod.name}#{number}"
        metadata = {**pod.manifest["metadata"], "uid": name}
        yield DescribedPod(name, {**pod.manifest, "metadata": metadata})


def _describe_pod(
    document: Document, item: dict[str, Any], path: PathTuple, *, keep_uid: bool
) -> DescribedPod:
    metadata = mapping(document, item.get("metadata"), (*path, "metadata"))
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise document.error((*path, "metadata", "name"), "must be a non-empty string")
    namespace = metadata.get("namespace") or "default"
    full = f"{item['kind']}/{namespace}/{name}"
    uid = uid_on_node(item) if keep_uid and item["kind"] == "Pod" else None
    template, place = item, path
    for step in _TEMPLATE[item["kind"]]:
        place = (*place, step)
        template = mapping(document, template.get(step), place)
    place = (*place, "spec")
    spec = dict(mapping(document, template.get("spec"), place))
    if not spec.get("containers"):
        raise document.error((*place, "containers"), "a pod needs at least one container")
    containers = []
    for key in ("initContainers", "containers"):
        if spec.get(key):
            listed = _sequence(document, spec[key], (*place, key))
            spec[key] = [
                with_default_requests(document, one, (*place, key, number))
                for number, one in enumerate(listed)
            ]
            containers += [((*place, key, n), one) for n, one in enumerate(spec[key])]
    manifest: Pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": str(uid or full)},
        "spec": spec,
    }
    try:
        read_pod(manifest, "budget")
    except UnsupportedError as error:
        raise _locate_error(document, place, f"{error} is not supported") from None
    except PodError as error:
        raise _locate_error(document, place, str(error)) from None
    check_restart_policy(document, spec, place)
    check_containers(document, containers)
    return DescribedPod(full, manifest)


def _locate_error(document: Document, place: PathTuple, text: str) -> DocumentError:
    """Locates an error whose text begins with the field, such as ``spec.containers[0].name``."""
    named, message = _FIELD.fullmatch(text).groups()  # type: ignore[union-attr] # it always fits
    outer, _, resource = re.sub(r"[.](limits|requests)[.]", r".\1 ", named).partition(" ")
    steps: list[str | int] = [
        int(index) if index else name for name, index in re.findall(r"[.](\w+)|\[(\d+)\]", outer)
    ]
    fix = "see the Kubernetes API reference"
    if resource:
        steps.append(resource)
        fix = "use a quantity such as 2, 500m or 1Gi"
    return document.error((*place, *steps), message, fix)
