"""Reads pods from documents: Pods, and the replicas of workloads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from numaproof.inputs import transcripts
from numaproof.inputs.documents import LISTING, DocumentError, dotted_path, value_at
from numaproof.inputs.names import is_slip, suggestion
from numaproof.inputs.plurals import plural
from numaproof.inputs.streams import MAX_PROBLEMS, split_documents
from numaproof.protocol.messages import SOURCE, Pod, is_static
from numaproof.protocol.releases import RELEASES
from numaproof.simulation import evaluation_gaps, fields
from numaproof.simulation.documents import (
    collect_errors,
    field_errors,
    ignored_field_warnings,
    mapping,
    refuse,
)
from numaproof.simulation.manifests import fractions, stored_manifest
from numaproof.simulation.pods_on_node import (
    controller_of,
    name_of,
    node_names,
    pods_on_node,
    some_names,
    uid_on_node,
)
from numaproof.simulation.resizing import with_allocated_resources
from numaproof.simulation.selectors import mismatches
from numaproof.simulation.workloads import (
    items_without_template,
    misplaced_containers,
    missing_template,
    pod_sources,
    pods_of_template,
    recognize,
    slips,
    suspension,
    template_owner,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from numaproof.inputs.documents import Document, PathTuple
    from numaproof.simulation.workloads import PodSource, Workload

_LIST = ("apiVersion", "kind", "metadata", "items")
"""The fields of a list of objects."""

_INCOMPLETE = ("continue", "remainingItemCount")
"""The fields of the metadata of a list that lacks objects (`ListMeta`)."""

_LIST_METADATA = (*_INCOMPLETE, "resourceVersion", "selfLink")
"""The fields of a list's metadata."""

_NODE = ("spec", "nodeName")
_UID = ("metadata", "uid")
_LISTING = "list them with: kubectl get pods -A --field-selector spec.nodeName=NODE -o yaml"
_MAX_NODES = 5
_KIND_LINE = re.compile(r"""^\s*["']?kind["']?\s*:""", re.MULTILINE)

MAX_PODS = 10_000
"""Far more pods than a node runs ("Considerations for large clusters" recommends at most 110)."""


class DescribedPod(msgspec.Struct, frozen=True):
    """A pod described by a document; `name` is also its uid, unless it runs on a node.

    The name is ``KIND/NAMESPACE/NAME``, followed by ``/ROLE`` if a workload has different pods, and
    by ``#NUMBER`` for replicas. `gaps` names what the simulation does not evaluate. `controller` is
    ``KIND/NAME`` of the object that controls the pod, or empty.
    """

    name: str
    manifest: Pod
    gaps: tuple[str, ...] = ()
    controller: str = ""


class Reading(msgspec.Struct, frozen=True):
    """The pods in some documents, in order, and notes on what was left out or assumed.

    `objects` are the objects that describe the pods, with their status if they run on a node.
    """

    pods: tuple[DescribedPod, ...]
    notes: tuple[str, ...]
    objects: tuple[Mapping[str, Any], ...] = ()


class PodOptions(NamedTuple):
    """How pods are read.

    Attributes:
        releases: the releases whose fields the documents may use.
        replicas: overrides the number of replicas of each workload that can have several.
        running: whether the pods run on a node, as listed by ``kubectl get pods``. If so, they keep
            their uids and are sorted by age, because a kubelet admits the oldest first after a
            restart.
        node_name: the node, if the pods are on several.
        lenient: whether unknown fields cause notes instead of errors.
    """

    releases: Sequence[str] = RELEASES
    replicas: int | None = None
    running: bool = False
    node_name: str = ""
    lenient: bool = False


def read(
    files: Iterable[tuple[str, str]],
    options: PodOptions = PodOptions(),  # noqa: B008 - it is immutable
    optional: Container[str] = (),
) -> Reading:
    """Reads the pods in files, each given by its name and text.

    Pods that hold nothing on the node are left out, with notes (see `pods_on_node`), and so are
    workloads whose pods are in the files as well. Files in `optional` need not be about Kubernetes.

    Raises:
        DocumentError: a document cannot be read, has an unknown field or a value of the wrong
            type, two documents describe the same pod, there are more than `MAX_PODS`, the pods are
            on several nodes, none is on the node that was chosen, or a file has no objects.
        DocumentErrors: there are several such errors; about `MAX_PROBLEMS` are reported.
    """
    reader = _Reader(options)
    order: list[str] = []
    for file, text in files:
        order.append(file)
        if len(reader.errors) < MAX_PROBLEMS:
            reader.read(file, text, is_optional=file in optional)
    reader.add_pods()
    refuse(sorted(reader.errors, key=lambda error: (order.index(error.file), error.line)))
    return reader.reading()


@dataclass
class _Reader:
    """The objects and pods read so far."""

    options: PodOptions
    errors: list[DocumentError] = field(default_factory=list)
    _full: bool = False
    _workloads: list[Workload] = field(default_factory=list)
    _pods: dict[str, DescribedPod] = field(default_factory=dict)
    _owners: dict[str, Workload] = field(default_factory=dict)
    _by_uid: dict[str, str] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _objects_without_pods: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def reading(self) -> Reading:
        names = list(self._pods)
        if self.options.running:
            names.sort(key=lambda name: _creation_time(self._owners[name].fields))
        skipped = (
            f"{first}: skipped {_with_count(kind, 1 + len(others))}: {reason}"
            for (kind, reason), (first, *others) in self._objects_without_pods.items()
        )
        return Reading(
            tuple(self._pods[name] for name in names),
            (*self._notes, *skipped),
            tuple(self._owners[name].fields for name in names),
        )

    def read(self, file: str, text: str, *, is_optional: bool) -> None:
        """Reads the objects in a file, continuing after documents with errors."""
        errors: list[DocumentError] = []
        documents: list[Document] = []
        with collect_errors(errors):
            documents += split_documents(transcripts.outputs(text), file, errors, LISTING)
        has_kind = any(map(_is_about_kubernetes, documents))
        if is_optional and not has_kind and not (errors and _KIND_LINE.search(text)):
            is_template = bool(errors) and "{{" in text
            reason = "a template; render it first" if is_template else "not a Kubernetes object"
            self._notes.append(f"{file}: skipped: {reason}")
            return
        if error := _not_manifests(file, text, errors, documents):
            self.errors.append(error)
            return
        self.errors += errors[: MAX_PROBLEMS - len(self.errors)]
        for document in documents:
            with collect_errors(self.errors):
                for path, item in self._objects(document, document.data, ()):
                    if len(self.errors) >= MAX_PROBLEMS:
                        return
                    with collect_errors(self.errors):
                        self._workloads.append(recognize(document, path, item))

    def _objects(
        self, document: Document, value: Any, path: PathTuple
    ) -> Iterator[tuple[PathTuple, dict[str, Any]]]:
        item = mapping(document, value, path)
        # kubectl writes List; the API server writes PodList, DeploymentList and so on.
        if not str(item.get("kind")).endswith("List"):
            yield path, item
            return
        if "items" not in item and "spec" in item:
            yield path, item
            return
        of = str(item["kind"]).removesuffix("List")
        version = item.get("apiVersion")
        about = mapping(document, item.get("metadata") or {}, (*path, "metadata"))
        _check_names(document, item, _LIST, path)
        _check_names(document, about, _LIST_METADATA, (*path, "metadata"))
        self._check_complete(document, about, (*path, "metadata"))
        for number, one in enumerate(_sequence(document, item.get("items"), (*path, "items"))):
            # The items of a typed list have neither an apiVersion nor a kind.
            shared = {"kind": of, **({"apiVersion": version} if version else {})}
            typed = {**shared, **one} if of and isinstance(one, dict) else one
            yield from self._objects(document, typed, (*path, "items", number))

    def _check_complete(
        self, document: Document, metadata: Mapping[str, Any], path: PathTuple
    ) -> None:
        """Reports a list that lacks objects; a listing of a node must be complete."""
        name = next((name for name in _INCOMPLETE if metadata.get(name)), "")
        if not name:
            return
        more = metadata.get("remainingItemCount")
        rest = f": {plural(more, 'more object')}" if isinstance(more, int) and more else ""
        error = document.error(
            (*path, name), f"the list is incomplete{rest}", "get the list without a limit"
        )
        if self.options.running:
            raise error
        self._notes.append(f"warning: {error}")

    def add_pods(self) -> None:
        """Adds the pods of all objects, except for those that hold nothing on the node."""
        owners = {uid for workload in self._workloads for uid in _managers(workload.fields)}
        listed = [one for one in self._workloads if one.kind == "Pod"]
        manifests = [one.fields for one in listed]
        with collect_errors(self.errors):
            self._check_nodes(listed, self.options.node_name)
        found = pods_on_node(manifests, self.options.node_name, arriving=not self.options.running)
        self._notes += found.lines()
        if self.options.running:
            self._notes += _lines_without_uid(manifests[position] for position in found.on_node)
        referring = [(one.name, template_owner(one)) for one in self._workloads]
        scaled_down = {other.name: name for name, other in referring if other and other.ends}
        left_out = {id(manifests[pod.position]) for pod in found.left_out}
        for workload in self._workloads:
            if id(workload.fields) in left_out:
                continue
            if str(value_at(workload.fields, ("metadata", "uid"))) in owners:
                reason = "what it manages is in the files as well"
                self._notes.append(f"{workload.where}: left out {workload.name}: {reason}")
                continue
            if workload.name in scaled_down:
                reason = f"{scaled_down[workload.name]} scales it down"
                self._notes.append(f"{workload.where}: left out {workload.name}: {reason}")
                continue
            if self._full or len(self.errors) >= MAX_PROBLEMS:
                return
            with collect_errors(self.errors):
                self._add(workload)
        if self.options.running and self._workloads and not listed and not self._pods:
            document = self._workloads[0].document
            self.errors.append(document.error((), "no pods in the listing", _LISTING))

    def _check_nodes(self, pods: Sequence[Workload], node_name: str) -> None:
        nodes = node_names([one.fields for one in pods])
        names = ", ".join(nodes[:_MAX_NODES]) + (" and others" if nodes[_MAX_NODES:] else "")
        if node_name and nodes and node_name not in nodes:
            one = next(one for one in pods if value_at(one.fields, _NODE) in nodes)
            message = f"no pod is on node {node_name}, only on {names}"
            meant = next((name for name in nodes if is_slip(node_name, name)), "")
            fix = f"did you mean {meant}?" if meant else "check --node-name"
            raise one.document.error((*one.path, *_NODE), message, fix)
        if node_name or len(nodes) <= 1:
            return
        last = next(one for one in pods if value_at(one.fields, _NODE) == nodes[-1])
        message = f"the pods are on {plural(len(nodes), 'node')}: {names}"
        raise last.document.error((*last.path, *_NODE), message, "choose one with --node-name")

    def _add(self, workload: Workload) -> None:
        if workload.templates == ():
            self._skip(workload, workload.reason)
            return
        self._check_object(workload)
        if workload.type_:
            _check_name(workload)
        sources = self._sources(workload)
        if not sources:
            return
        owners = {id(source.owner): source.owner for source in sources}
        for owner in owners.values():
            if owner is not workload:
                self._check_object(owner)
            refuse(tuple(misplaced_containers(owner)))
        for source in sources:
            _check_name(source.owner)
            self._add_pods_of(source)
        for note in self._remarks(workload, sources):
            self._notes.append(f"{workload.where}: {workload.name}: {note}")
        for owner in owners.values():
            self._notes += _missing(owner)

    def _sources(self, workload: Workload) -> list[PodSource]:
        """Returns the pods of an object; none, with a note, if it has no template.

        Raises:
            DocumentError: it must have one, or it has containers elsewhere.
        """
        if sources := list(pod_sources(workload)):
            return sources
        if workload.type_:
            raise missing_template(workload)
        if other := template_owner(workload):
            target = next((one for one in self._workloads if one.name == other.name), None)
            if target and other.is_template:
                return list(pods_of_template(workload, target))
            lack = "" if target else ", which is not in the files"
            self._skip(workload, f"its pods are described by {other.name}{lack}")
            return []
        absent = next(filter(None, (one.absent for one in workload.templates or ())), "")
        refuse(tuple(misplaced_containers(workload)))
        self._skip(workload, absent or "no pod template is in it")
        return []

    def _skip(self, workload: Workload, reason: str) -> None:
        self._objects_without_pods.setdefault((workload.kind, reason), []).append(workload.where)

    def _check_object(self, owner: Workload) -> None:
        """Checks the fields of an object, as far as they are known."""
        if owner.type_:
            self._check(owner, owner.path, owner.fields, owner.type_)
            refuse(tuple(mismatches(owner)))
        else:
            self._refuse_unknown({str(one): one for one in slips(owner)}.values())

    def _check(self, owner: Workload, path: PathTuple, value: Any, type_: str) -> None:
        """Checks the fields of an object or of a part of it.

        Custom resources of unknown kinds may extend the types of Kubernetes.
        """
        unknown, type_errors = field_errors(
            owner.document, value, type_, self.options.releases, path
        )
        if owner.templates is None:
            self._notes += ignored_field_warnings(unknown)
            refuse(type_errors)
        else:
            self._refuse_unknown(unknown, type_errors)

    def _refuse_unknown(
        self, unknown: Iterable[DocumentError], type_errors: Sequence[DocumentError] = ()
    ) -> None:
        """Refuses errors; those about unknown fields become notes if the reading is lenient."""
        unknown = tuple(unknown)
        refuse(type_errors if self.options.lenient else (*unknown, *type_errors))
        self._notes += ignored_field_warnings(unknown)

    def _add_pods_of(self, source: PodSource) -> None:
        owner, document = source.owner, source.owner.document
        if not owner.type_:
            for path, type_ in source.parts:
                self._check(owner, path, value_at(document.data, path), type_)
        name = f"{owner.name}/{source.role}" if source.role else owner.name
        if first := self._owners.get(name) or self._owners.get(f"{name}#1"):
            fix = "remove one of them" if first.fields == owner.fields else "rename one of them"
            raise document.error(owner.path, f"duplicate {name}, first in {first.where}", fix)
        number = self._number(source)
        if len(self._pods) + number > MAX_PODS:
            self._full = True
            raise document.error(owner.path, f"too many pods: the limit is {MAX_PODS}")
        described = self._describe(source, name)
        if self.options.running:
            uid = described.manifest["metadata"]["uid"]
            if (other := self._by_uid.setdefault(uid, name)) != name:
                message = f"{name} has the same uid as {other}"
                raise document.error((*owner.path, *_UID), message, _LISTING)
        for one in _make_replicas(described, number):
            self._pods[one.name] = one
            self._owners[one.name] = owner

    def _number(self, source: PodSource) -> int:
        replicas = self.options.replicas
        return source.number if replicas is None or not source.can_vary else replicas

    def _describe(self, source: PodSource, name: str) -> DescribedPod:
        owner = source.owner
        is_pod = owner.type_ == "Pod"
        uid = uid_on_node(owner.fields) if self.options.running and is_pod else ""
        _, namespace, own = owner.name.split("/", 2)
        metadata: dict[str, Any] = {"name": own, "namespace": namespace, "uid": uid or name}
        if is_pod and is_static(owner.fields):
            metadata["annotations"] = {SOURCE: "file"}
        status = owner.fields.get("status") if is_pod else None
        spec = (
            with_allocated_resources(source.spec, status) if self.options.running else source.spec
        )
        manifest = stored_manifest(owner.document, source.path, spec, metadata)
        self._notes += (f"{owner.where}: {name}: {one}" for one in fractions(manifest))
        around = (*source.path[:-1], "metadata", "annotations")
        annotations = value_at(owner.document.data, around)
        gaps = (*source.gaps, *evaluation_gaps.of_pod(spec, status, annotations))
        if spec is not source.spec:
            gaps = tuple(gap for gap in gaps if gap != evaluation_gaps.RESIZE)
            what = "a resize in place is pending: it counts with its allocated resources"
            self._notes.append(f"{owner.where}: {name}: {what}")
        return DescribedPod(name, manifest, gaps, controller_of(owner.fields) if is_pod else "")

    def _remarks(self, workload: Workload, sources: Sequence[PodSource]) -> Iterator[str]:
        """Yields remarks on the number of pods, and on how they are made."""
        empty = [source.role for source in sources if not self._number(source)]
        if empty:
            yield "0 replicas" + (f" of {', '.join(empty)}" if len(empty) < len(sources) else "")
        if self.options.replicas is None and (assumed := sum(one.is_assumed for one in sources)):
            each = " each" if assumed > 1 else ""
            yield (
                f"{plural(assumed, 'pod template')} without a number of pods; assuming 1{each}"
                " (set it with --replicas)"
            )
        owners = {id(one): one for one in (workload, *(source.owner for source in sources))}
        for field_ in filter(None, dict.fromkeys(map(suspension, owners.values()))):
            yield f"suspended ({field_}): its pods are counted as if it ran"
        yield from dict.fromkeys(source.note for source in sources if source.note)


_TEXTS = (
    (
        re.compile(r"\s*(NAMESPACE|NAME)\s+[A-Z]"),
        "a table of kubectl",
        "add -o yaml to kubectl get",
    ),
    (
        re.compile(r"\s*(No resources found|[Ee]rror:|Error from server|Unable to connect)"),
        "a message of kubectl",
        "run the command again",
    ),
    (
        re.compile(r"\s*Name: +\S+\n(?:.*\n){0,9}?(?:Namespace|Labels|Annotations|Roles): "),
        "the output of `kubectl describe`",
        "save the output of `kubectl get ... -o yaml`",
    ),
)
_OF_CHARTS = {"autoscaling", "image", "ingress", "podAnnotations", "replicaCount", "serviceAccount"}


def _other_document(data: Any) -> tuple[str, str] | None:
    """Returns what a document without a kind is, and a fix; None if it isn't known."""
    if not isinstance(data, dict) or "kind" in data or "apiVersion" in data:
        return None
    if isinstance(data.get("services"), dict):
        return "a Compose file", "convert it, for example with `kompose convert`"
    if len(data.keys() & _OF_CHARTS) > 1:
        return "the values of a Helm chart", "render the chart with `helm template`"
    return None


def _not_manifests(
    file: str, text: str, errors: Sequence[DocumentError], documents: Sequence[Document]
) -> DocumentError | None:
    """Returns the error about a file that has something other than manifests, if it is known."""
    for form, name, fix in _TEXTS:
        if form.match(text):
            return DocumentError(file, 1, "", name, fix)
    if len(documents) == 1 and (other := _other_document(documents[0].data)):
        return documents[0].error((), *other)
    if errors and "{{" in text:
        fix = "render it first, for example with `helm template`, and use the result"
        return DocumentError(file, errors[0].line, "", "a template: it contains {{", fix)
    if not documents and not errors:
        fix = "expected manifests, or the output of kubectl get -o json or yaml"
        return DocumentError(file, 1, "", "no objects in it", fix)
    return None


def _with_count(kind: str, objects: int) -> str:
    return kind if objects == 1 else f"{kind} ({plural(objects, 'object')})"


def _missing(owner: Workload) -> Iterator[str]:
    """Yields notes on the parts of an object that should describe pods, but do not."""
    for path in items_without_template(owner):
        where = f"{owner.document.file}:{owner.document.line(path)}"
        yield f"{where}: {dotted_path(path)}: no pod template; no pods read"


def _is_about_kubernetes(document: Document) -> bool:
    """Whether a document has a kind, or a misspelt one."""
    return isinstance(document.data, dict) and any(is_slip(name, "kind") for name in document.data)


def _managers(item: dict[str, Any]) -> Iterator[str]:
    """Yields the uids of the objects that manage an object."""
    owners = value_at(item, ("metadata", "ownerReferences"))
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("uid"):
            yield str(owner["uid"])


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}([.]{_LABEL})*")
_MAX_DOMAIN, _MAX_LABEL = 253, 63


def _is_name(field_: str, text: str) -> bool:
    """Whether the API server accepts a text as an object's namespace, name or generateName."""
    if field_ == "namespace":
        return len(text) <= _MAX_LABEL and re.fullmatch(_LABEL, text) is not None
    # A generated name has a suffix.
    whole = f"{text}x" if field_ == "generateName" else text
    return len(text) <= _MAX_DOMAIN and _DOMAIN.fullmatch(whole) is not None


def _check_name(workload: Workload) -> None:
    """Checks that an object has a name, of its own or of the object around it."""
    document, path = workload.document, (*workload.path, "metadata")
    if "metadata" not in workload.fields and not workload.name.endswith("/"):
        return
    metadata = mapping(document, workload.fields.get("metadata"), path)
    for name in ("namespace", "name", "generateName"):
        if not isinstance(metadata.get(name), str | None):
            raise document.error((*path, name), *fields.mismatch("string"))
        if (text := metadata.get(name)) and not _is_name(name, text):
            fix = "use lower-case letters, digits and -"
            raise document.error((*path, name), f"invalid name {text!r}", fix)
    if not (metadata.get("name") or metadata.get("generateName")):
        raise document.error((*path, "name"), "must be a non-empty string")


def _lines_without_uid(pods: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a line about the pods of a cluster that have no uid; manifests need none."""
    names = [
        name_of(pod)
        for pod in pods
        if (value_at(pod, _NODE) or pod.get("status")) and not uid_on_node(pod)
    ]
    if names:
        have, they = ("has", "it holds") if len(names) == 1 else ("have", "they hold")
        yield (
            f"{plural(len(names), 'pod')} {have} no uid, by which the state files name pods:"
            f" {some_names(names)}; what {they} is assumed, not read"
        )


def _creation_time(item: Mapping[str, Any]) -> str:
    """Returns the creation time, which the API server writes in a sortable form."""
    return str(value_at(item, ("metadata", "creationTimestamp")) or "")


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


def _make_replicas(pod: DescribedPod, number: int) -> Iterator[DescribedPod]:
    if number == 1:
        yield pod
        return
    for each in range(1, number + 1):
        name = f"{pod.name}#{each}"
        metadata = {**pod.manifest["metadata"], "uid": name}
        yield msgspec.structs.replace(
            pod, name=name, manifest={**pod.manifest, "metadata": metadata}
        )
