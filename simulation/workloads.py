"""Finds the pods that an object describes.

The place of pods in an object depends on its kind; in an object of an unknown kind, pods are found
by their shape.
"""

from __future__ import annotations

from itertools import islice
from math import ceil, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from numaproof.inputs.documents import dotted_path, value_at
from numaproof.inputs.names import is_slip, suggestion
from numaproof.simulation import fields
from numaproof.simulation.composed_pods import ComposedPod
from numaproof.simulation.documents import mapping
from numaproof.simulation.workload_kinds import (
    CORE_GROUPS,
    KINDS,
    REASONS,
    REFERENCES,
    SUSPENSIONS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.inputs.documents import Document, DocumentError, PathTuple
    from numaproof.simulation.workload_kinds import Count, Template


class Workload(NamedTuple):
    """An object that can describe pods.

    Attributes:
        document, path, fields: the object, and where it is.
        name: ``KIND/NAMESPACE/NAME``; the kind has its group if a kind of Kubernetes has its name.
        kind: its kind, preceded by its apiVersion if it is a custom resource.
        templates: where it describes pods; None if that is unknown, empty if it does not.
        reason: why no pods are read from it, if `templates` is empty.
        type_: the type whose fields the object must have; empty for custom resources.
    """

    document: Document
    path: PathTuple
    fields: dict[str, Any]
    name: str
    kind: str
    templates: tuple[Template, ...] | None
    reason: str = ""
    type_: str = ""

    @property
    def where(self) -> str:
        """The file and line."""
        return f"{self.document.file}:{self.document.line(self.path)}"


class PodSource(NamedTuple):
    """Some equal pods that an object describes.

    Attributes:
        owner: the object, or the object inside it that describes the pods.
        role: distinguishes pods of the same owner; can be empty.
        path: the path of the specification, or of the value that it is made from.
        spec: the specification.
        parts: the paths of parts of the document that it contains, with their types.
        gaps: what the object asks for, other than the specification, that is not evaluated.
        number: the number of pods.
        is_assumed: whether the object does not determine the number.
        can_vary: whether there can be another number of pods on a node.
        note: how the specification is made, if it is not in the document.
    """

    owner: Workload
    role: str
    path: PathTuple
    spec: dict[str, Any]
    parts: tuple[tuple[PathTuple, str], ...]
    gaps: tuple[str, ...]
    number: int
    is_assumed: bool
    can_vary: bool
    note: str = ""


def recognize(document: Document, path: PathTuple, item: dict[str, Any]) -> Workload:
    """Recognizes an object by its apiVersion and kind.

    Raises:
        DocumentError: the object has no kind, a misspelt one, or a version that clusters do not
            serve.
    """
    kind, group = _kind(document, path, item), _group(item)
    is_core = group is None or group in CORE_GROUPS
    shown = kind if is_core else f"{item['apiVersion']} {kind}"
    found = Workload(document, path, item, _name(item, kind, group), shown, None)
    if group is None:
        group = _core_group(kind)
    if group is None:
        return found
    if templates := KINDS.get((group, kind)):
        return found._replace(templates=templates, type_=kind if is_core else "")
    if reason := REASONS.get((group, kind)) or REASONS.get((group, "")):
        return found._replace(templates=(), reason=reason)
    if is_core or (group.endswith(".k8s.io") and not group.endswith(".x-k8s.io")):
        return found._replace(templates=(), reason="it describes no pods")
    return found


def _group(item: Mapping[str, Any]) -> str | None:
    version = item.get("apiVersion")
    return None if version is None else str(version).rpartition("/")[0]


def _core_group(kind: str) -> str | None:
    """Returns the API group of a workload of Kubernetes."""
    return next((group for group, one in KINDS if one == kind and group in CORE_GROUPS), None)


def _kind(document: Document, path: PathTuple, item: dict[str, Any]) -> str:
    """Returns an object's kind, after checking that it fits the apiVersion."""
    kind, version = item.get("kind"), item.get("apiVersion")
    for name in ("kind", "apiVersion"):
        misspelt = next((one for one in item if one != name and is_slip(one, name)), None)
        if misspelt and item.get(name) is None:
            raise document.error((*path, misspelt), "unknown field", f"did you mean {name}?")
    if kind is None:
        raise document.error(path, "the object has no kind", "add kind, such as kind: Pod")
    for name, value in (("kind", kind), ("apiVersion", version)):
        if not isinstance(value, str | None):
            raise document.error((*path, name), *fields.mismatch("string"))
    group = _group(item)
    groups = CORE_GROUPS if group is None or group in CORE_GROUPS else (group,)
    near = [one for own, one in KINDS if own in groups]
    if kind not in near:
        if meant := next((one for one in near if is_slip(kind, one)), None):
            message = f"unknown kind {kind!r}"
            raise document.error((*path, "kind"), message, f"did you mean {meant}?")
        owners = [own for own, one in KINDS if one == kind and own not in CORE_GROUPS]
        if group and (meant := next((one for one in owners if is_slip(group, one)), None)):
            message = f"unknown API group {group!r}"
            raise document.error((*path, "apiVersion"), message, f"did you mean {meant}?")
    _check_served(document, path, kind, version)
    return str(kind)


def _check_served(document: Document, path: PathTuple, kind: str, version: str | None) -> None:
    """Checks the apiVersion of a workload of Kubernetes."""
    own = _core_group(kind)
    group = None if version is None else version.rpartition("/")[0]
    served = f"{own}/v1" if own else "v1"
    if own is not None and group is None:
        raise document.error(path, "the object has no apiVersion", f"add apiVersion: {served}")
    if own is not None and group in CORE_GROUPS and version != served:
        message = f"Kubernetes serves no {kind} of {version!r}"
        raise document.error((*path, "apiVersion"), message, f"set apiVersion: {served}")


def _name(item: Mapping[str, Any], kind: str, group: str | None) -> str:
    """Returns the full name; an unknown name is empty."""
    namespace = value_at(item, ("metadata", "namespace")) or "default"
    name = value_at(item, ("metadata", "name")) or value_at(item, ("metadata", "generateName"))
    is_ambiguous = group and group not in CORE_GROUPS and _core_group(kind) is not None
    return f"{f'{kind}.{group}' if is_ambiguous else kind}/{namespace}/{name or ''}"


def pod_sources(workload: Workload) -> Iterator[PodSource]:
    """Yields the pods that an object describes; none if it has no pod template.

    Raises:
        DocumentError: a part of the object has the wrong shape.
    """
    if workload.templates is None:
        yield from _find_by_shape(workload)
        return
    for template in workload.templates:
        for place in _expand(workload, _steps(template.path)):
            yield from _at(workload, template, place)


class TemplateOwner(NamedTuple):
    """The object that describes another object's pods.

    Attributes:
        name: its ``KIND/NAMESPACE/NAME``.
        is_template: as in `workload_kinds.Reference`.
        ends: whether it ends without pods of its own.
    """

    name: str
    is_template: bool
    ends: bool


def template_owner(workload: Workload) -> TemplateOwner | None:
    """Returns the object that describes an object's pods, if that is not the object itself."""
    item = workload.fields
    known = REFERENCES.get((_group(item) or "", str(item.get("kind"))))
    target = value_at(item, _steps(known.path)) if known else None
    if known is None or not isinstance(target, dict) or not target.get("name"):
        return None
    is_cluster = known.cluster_kind and target.get("clusterScope") is True
    kind = known.cluster_kind if is_cluster else target.get("kind") or known.kind
    namespace = value_at(item, ("metadata", "namespace")) or "default"
    mode = value_at(item, _steps(known.scales_down)) if known.scales_down else None
    return TemplateOwner(
        f"{kind}/{'default' if is_cluster else namespace}/{target['name']}",
        known.is_template,
        mode not in (None, "never"),
    )


def pods_of_template(workload: Workload, target: Workload) -> Iterator[PodSource]:
    """Yields the pods of an object that are made from the template of another one."""
    (template,) = workload.templates or ()
    number = prod(factor for factor, _ in _numbers(workload, template, ()))
    owner = target._replace(name=workload.name)
    for source in pod_sources(target):
        note = f"its pods are described by {target.name}"
        yield source._replace(owner=owner, number=number, can_vary=True, note=note)


def suspension(workload: Workload) -> str:
    """Returns the field, with its value, that keeps an object from having pods; can be empty."""
    for path, value in SUSPENSIONS:
        if value_at(workload.fields, _steps(path)) == value:
            return f"{path}: {str(value).lower() if isinstance(value, bool) else value}"
    return ""


def slips(workload: Workload) -> Iterator[DocumentError]:
    """Yields errors about misspelt names next to the fields that are read in a custom resource.

    Its other fields are not known.
    """
    for template in workload.templates or ():
        paths = (template.path, *(path for count in template.counts for path in count.all_paths))
        for path in dict.fromkeys((*paths, template.role if _ITEM in template.role else "")):
            yield from _slips_along(workload, _steps(path), template.keys)


def _slips_along(
    workload: Workload, steps: tuple[str, ...], keys: tuple[str, ...]
) -> Iterator[DocumentError]:
    for number, step in enumerate(steps):
        if step in _FREELY_NAMED:
            return  # Similar names mean other things.
        for place in _expand(workload, steps[:number]):
            value = value_at(workload.fields, place)
            if step == _ITEM or not isinstance(value, dict):
                continue
            for name in value:
                full = (*workload.path, *place, name)
                if step != _VALUE:
                    names = step.split("|")
                    meant = next((one for one in names if is_slip(name, one)), name)
                    if name not in names and meant != name:
                        fix = f"did you mean {meant}?"
                        yield workload.document.error(full, "unknown field", fix)
                elif keys and name.casefold() not in map(str.casefold, keys):
                    yield workload.document.error(full, "unknown field", suggestion(name, keys))


def missing_template(workload: Workload) -> DocumentError:
    """Returns the error for a workload of Kubernetes that has no pod template."""
    (template,) = workload.templates or ()
    path = (*workload.path, *_steps(template.path))
    return workload.document.error(path, *fields.mismatch("PodTemplateSpec"))


def _at(workload: Workload, template: Template, place: PathTuple) -> Iterator[PodSource]:
    """Yields the pods of a template at a place in the object."""
    document, full = workload.document, (*workload.path, *place)
    value = mapping(document, value_at(workload.fields, place), full)
    numbers = list(_numbers(workload, template, place))
    number = prod(factor for factor, _ in numbers)
    if place and template.compose is None and _is_object(value):
        yield from _inside(workload, value, full, number)
        return
    if template.compose is None:
        path = (*full, "spec")
        spec = mapping(document, value.get("spec"), path)
        part: tuple[PathTuple, str] = (full, "PodTemplateSpec")
        if template.around is not None:
            outer, type_ = template.around
            part = (*workload.path, *_bind(_steps(outer), place)), type_
        made: ComposedPod | None = ComposedPod(path, spec, (part,))
    else:
        made = template.compose(document, value, full)
    if made is not None:
        yield PodSource(
            workload,
            _role(workload.fields, template, place),
            made.path,
            made.spec,
            made.parts,
            made.gaps,
            number,
            is_assumed=template.is_assumed and not any(is_set for _, is_set in numbers),
            can_vary=bool(template.counts) or template.is_assumed,
            note=made.note or template.note,
        )


def _inside(
    outer: Workload, value: dict[str, Any], path: PathTuple, times: int
) -> Iterator[PodSource]:
    """Yields the pods of an object inside another one, which can lend it its name."""
    inner = recognize(outer.document, path, value)
    if inner.name.endswith("/"):
        kind = inner.name.partition("/")[0]
        inner = inner._replace(name=f"{kind}/{outer.name.partition('/')[2]}")
    for source in pod_sources(inner):
        yield source._replace(number=source.number * times)


def _is_object(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)


_ITEM, _VALUE = "[]", "{}"
_FREELY_NAMED = frozenset({"annotations", "flinkConfiguration"})
"""The mappings whose keys have dots and whose values are texts."""


def _steps(path: str) -> tuple[str, ...]:
    """Splits a path; ``[]`` and ``{}`` become steps of their own, and so do keys with dots."""
    spaced = path.replace(_ITEM, f".{_ITEM}").replace(_VALUE, f".{_VALUE}")
    steps = tuple(filter(None, spaced.split(".")))
    free = next((number for number, step in enumerate(steps) if step in _FREELY_NAMED), len(steps))
    return (*steps[: free + 1], *filter(None, (".".join(steps[free + 1 :]),)))


def _expand(workload: Workload, steps: tuple[str, ...]) -> list[PathTuple]:
    """Returns the paths in an object that have a value and match the steps."""
    places: list[PathTuple] = [()]
    for step in steps:
        reached: list[PathTuple] = []
        for place in places:
            value, full = value_at(workload.fields, place), (*workload.path, *place)
            if step == _ITEM:
                if not isinstance(value, list):
                    raise workload.document.error(full, *fields.mismatch("[]"))
                reached += [(*place, number) for number in range(len(value))]
                continue
            known = mapping(workload.document, value, full)
            names = known if step == _VALUE else step.split("|")
            found = [(*place, name) for name in names if known.get(name) is not None]
            reached += found if step == _VALUE else found[:1]
        places = reached
    return places


def items_without_template(workload: Workload) -> list[PathTuple]:
    """Returns the paths of list items and mapping values in which a pod template is expected."""
    has_template: dict[PathTuple, bool] = {}
    for template in workload.templates or ():
        steps = _steps(template.path)
        wild = [number + 1 for number, step in enumerate(steps) if step in (_ITEM, _VALUE)]
        if wild:
            items = _expand(workload, steps[: wild[-1]])
            has_template |= {place: has_template.get(place, False) for place in items}
            reached = _expand(workload, steps)
            has_template |= dict.fromkeys((place[: wild[-1]] for place in reached), True)
    return [(*workload.path, *place) for place, is_there in has_template.items() if not is_there]


_MAX_PLACES = 2


def misplaced_containers(workload: Workload) -> Iterator[DocumentError]:
    """Yields errors about containers of a known kind where no pod template is read.

    They are those in items without a template or, if nothing in the object has one, in all of it.
    """
    templates = workload.templates
    if not templates:
        return
    is_empty = not any(_expand(workload, _steps(one.path)) for one in templates)
    parts = [workload.path] if is_empty else items_without_template(workload)
    expected = dict.fromkeys(one.path if one.compose else f"{one.path}.spec" for one in templates)
    fix = f"move them to {' or '.join(islice(expected, _MAX_PLACES))}"
    message = f"a {workload.fields['kind']} has no pods here"
    for part in parts:
        value = value_at(workload.document.data, part)
        for place in _places_of_pods(value, ()):
            if _has_containers(value_at(value, place)):
                where = (*part, *place, "containers")
                yield workload.document.error(where, message, fix)


def _numbers(
    workload: Workload, template: Template, place: PathTuple
) -> Iterator[tuple[int, bool]]:
    """Yields the factors of the number of pods, and whether the object sets them."""
    for factor in template.counts:
        value = _number(workload, factor.path, place)
        if value is None:
            value = _quotient(workload, factor, place)
        number = max(0, (factor.default if value is None else value) - factor.less)
        at_least, at_most = (
            _number(workload, text, place) for text in (factor.at_least, factor.at_most)
        )
        none = value_at(workload.fields, _bind(_steps(factor.none_if), place))
        if at_most is not None:
            number = min(number, at_most)
        if at_least is not None:
            number = max(number, at_least)
        yield 0 if none is True else number, (value, at_least) != (None, None)


def _quotient(workload: Workload, factor: Count, place: PathTuple) -> int | None:
    """Returns the quotient of a factor, rounded up; None if its first path has no value."""
    whole, part = (_number(workload, text, place) for text in factor.quotient)
    return None if whole is None else ceil(whole / max(1, part or 1))


def _number(workload: Workload, path: str, place: PathTuple) -> int | None:
    """Returns the number at a path, which may be written as text; None if it is missing."""
    if not path:
        return None
    *inside, last = _bind(_steps(path), place)
    choices = [(*inside, name) for name in str(last).split("|")]
    steps = next((one for one in choices if value_at(workload.fields, one) is not None), choices[0])
    value = value_at(workload.fields, steps)
    is_text = not _FREELY_NAMED.isdisjoint(steps) and isinstance(value, str) and value.isdecimal()
    number = int(value) if is_text else value
    if number is None or (type(number) is int and number >= 0):
        return number
    where, message = (*workload.path, *steps), f"invalid number {value!r}"
    raise workload.document.error(where, message, "use a whole number, 0 or more")


def _bind(steps: tuple[str, ...], place: PathTuple) -> PathTuple:
    """Replaces the wildcards of a path by the steps of a place that begins like it."""
    return tuple(
        place[number] if step in (_ITEM, _VALUE) else step for number, step in enumerate(steps)
    )


def _role(item: dict[str, Any], template: Template, place: PathTuple) -> str:
    if template.role and _ITEM not in template.role:
        return template.role
    steps = _steps(template.path)
    wild = [number for number, step in enumerate(steps) if step in (_ITEM, _VALUE)]
    if not wild:
        return ""
    key = place[wild[-1]]
    named = _steps(template.role) or (*steps[: wild[-1] + 1], "name")
    return key if isinstance(key, str) else str(value_at(item, _bind(named, place)) or key)


_NO_PODS_BELOW = ("apiVersion", "kind", "metadata", "status")


def _find_by_shape(workload: Workload) -> Iterator[PodSource]:
    """Yields the pods of an unknown kind: whatever has a list of containers."""
    found = list(_places_of_pods(workload.fields, ()))
    for place in found:
        value, full = value_at(workload.fields, place), (*workload.path, *place)
        if _is_object(value):
            yield from _inside(workload, value, full, 1)
            continue
        part: tuple[PathTuple, str] = (full, "PodSpec")
        if place[-1:] == ("spec",) and len(place) > 1:
            part = (full[:-1], "PodTemplateSpec")
        # A single template needs no name of its own.
        role = dotted_path(_short(place)) if len(found) > 1 else ""
        yield PodSource(workload, role, full, value, (part,), (), 1, is_assumed=True, can_vary=True)


def _short(place: PathTuple) -> PathTuple:
    """Drops ``spec`` at both ends of a path."""
    inner = place[1:] if place[0] == "spec" else place
    return (inner[:-1] if inner[-1:] == ("spec",) else inner) or place


def _places_of_pods(value: Any, place: PathTuple) -> Iterator[PathTuple]:
    """Yields the paths of pod specifications, and of objects, inside an object."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _places_of_pods(one, (*place, number))
    elif isinstance(value, dict):
        if place and (_has_containers(value) or (_is_object(value) and "spec" in value)):
            yield place
            return
        for name, one in value.items():
            if name not in _NO_PODS_BELOW:
                yield from _places_of_pods(one, (*place, name))


def _has_containers(value: Mapping[str, Any]) -> bool:
    containers = value.get("containers")
    return isinstance(containers, list) and any(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in containers
    )
