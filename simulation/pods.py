"""The pods that documents ask for: Pods, and one pod of each workload's template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.protocol.messages import Pod
from numaproof.reference.kubernetes import pods as kubernetes
from numaproof.simulation.documents import mapping, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.fakesys.documents import Document, PathTuple

_TEMPLATE: dict[str, tuple[str, ...]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind keeps what a pod is made from."""


class Asked(msgspec.Struct, frozen=True):
    """A pod that a document asks for; `name` is ``KIND/NAMESPACE/NAME``, its uid too."""

    name: str
    manifest: Pod


class Reading(msgspec.Struct, frozen=True):
    """The pods of some documents in their order, and what was passed over."""

    pods: tuple[Asked, ...]
    notes: tuple[str, ...]


def read(files: Iterable[tuple[str, str]]) -> Reading:
    """The pods in files, each given by its name and its text; replicas are not counted.

    Raises:
        fakesys.DocumentError: a document can't be read, or two ask for the same pod.
    """
    found: dict[str, Asked] = {}
    notes = []
    for file, text in files:
        for document in parts(text, file):
            for path, item in _objects(document, document.data, ()):
                kind = item.get("kind")
                if kind not in _TEMPLATE:
                    where = f"{file}:{document.line(path)}"
                    notes.append(f"{where}: {kind or 'a document without kind'} has no pods")
                    continue
                asked = _asked(document, item, path)
                if asked.name in found:
                    raise document.error(path, f"a second {asked.name}", "give it another name")
                found[asked.name] = asked
    return Reading(tuple(found.values()), tuple(notes))


def _objects(
    document: Document, value: Any, path: PathTuple
) -> Iterator[tuple[PathTuple, dict[str, Any]]]:
    item = mapping(document, value, path)
    if item.get("kind") != "List":
        yield path, item
        return
    for number, one in enumerate(_sequence(document, item.get("items"), (*path, "items"))):
        yield from _objects(document, one, (*path, "items", number))


def _sequence(document: Document, value: Any, path: PathTuple) -> list[Any]:
    if not isinstance(value, list):
        raise document.error(path, "must be a list", "see the Kubernetes API reference")
    return value


def _asked(document: Document, item: dict[str, Any], path: PathTuple) -> Asked:
    metadata = mapping(document, item.get("metadata"), (*path, "metadata"))
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise document.error((*path, "metadata", "name"), "must be a text", "name it")
    namespace = metadata.get("namespace") or "default"
    full = f"{item['kind']}/{namespace}/{name}"
    template, place = item, path
    for step in _TEMPLATE[item["kind"]]:
        place = (*place, step)
        template = mapping(document, template.get(step), place)
    place = (*place, "spec")
    spec = dict(mapping(document, template.get("spec"), place))
    if not spec.get("containers"):
        raise document.error((*place, "containers"), "a pod needs a container", "add one")
    for key in ("initContainers", "containers"):
        if spec.get(key):
            listed = _sequence(document, spec[key], (*place, key))
            spec[key] = [
                _defaulted(document, one, (*place, key, number))
                for number, one in enumerate(listed)
            ]
    manifest: Pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": full},
        "spec": spec,
    }
    try:
        kubernetes.parse(manifest)
    except kubernetes.PodError as error:
        raise document.error(place, str(error), "see the Kubernetes API reference") from None
    return Asked(full, manifest)


def _defaulted(document: Document, value: Any, path: PathTuple) -> dict[str, Any]:
    """The container as the API server stores it: what has a limit only requests as much."""
    container = mapping(document, value, path)
    place = (*path, "resources")
    resources = mapping(document, container.get("resources") or {}, place)
    limits = mapping(document, resources.get("limits") or {}, (*place, "limits"))
    requests = mapping(document, resources.get("requests") or {}, (*place, "requests"))
    return {**container, "resources": {**resources, "requests": {**limits, **requests}}}
