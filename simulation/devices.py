"""Reads the devices of a simulated node from option values or files."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof.inputs import documents, typed
from numaproof.inputs.errors import shorten
from numaproof.inputs.plurals import format_numbers, plural
from numaproof.protocol.messages import Device, DeviceResource
from numaproof.protocol.sets import ListFormatError, NUMASet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numaproof.protocol.machine import MachineInfo
    from numaproof.simulation.device_checkpoint import RecordedDevices

MAX_DEVICES = 4096
"""Maximum per resource, more than one message from a device plugin can hold."""

_WORDS = re.compile(r"(?P<count>[0-9]{1,9})(?:@(?P<nodes>[0-9,-]+))?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_HOW = "use NAME=COUNT@NODES, such as vendor.example/nic=4@0, or a file name"


class DevicesError(ValueError):
    """A text does not describe valid devices; the message quotes it and explains what to write."""


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Devices in a file: one with an `id`, or `count` of them; no topology unless `numa` is set."""

    id: str | None = None
    count: int | None = None
    numa: tuple[int, ...] | None = None
    healthy: bool = True


def split_node(text: str) -> tuple[str, str]:
    """Splits ``NODE:VALUE`` into the name of a node, which can be empty, and the value."""
    if os.path.exists(text) or ":" not in text:  # noqa: PTH110 - as in `read`
        return "", text
    node, _, value = text.partition(":")
    return node, value


def of_node(texts: Iterable[str], name: str, machine: MachineInfo) -> tuple[DeviceResource, ...]:
    """Returns the devices of one of several nodes, as `read` does.

    Values for the node itself replace those of all nodes, by resource.

    Raises:
        DevicesError, fakesys.DocumentError: as in `read`.
    """
    split = [split_node(text) for text in texts]
    common, own = (
        {one.resource: one for one in read([text for node, text in split if node == of], machine)}
        for of in ("", name)
    )
    return tuple((common | own).values())


def counts(plugins: Iterable[DeviceResource]) -> dict[str, int]:
    """Returns the numbers of devices by resource."""
    return {one.resource: len(one.ids) for one in plugins}


def read(texts: Iterable[str], machine: MachineInfo) -> tuple[DeviceResource, ...]:
    """Returns the devices described by option values or files.

    An option value is ``RESOURCE=COUNT@NODES,...``: COUNT devices near those NUMA nodes (``2@0-1``
    means near both). Without ``@NODES``, the plugin reports no topology. A file has a list of
    groups for each resource: ``{count: 4, numa: [0]}`` or ``{id: eth0, numa: [0], healthy:
    false}``.

    Raises:
        DevicesError: a text has neither form, or describes devices that the machine cannot have.
        fakesys.DocumentError: a file is invalid.
    """
    found: dict[str, list[Device]] = {}
    for text in texts:
        # pathlib raises an error for texts too long to be file names.
        is_file = os.path.exists(text)  # noqa: PTH110
        groups = _of_file(text) if is_file else _of_words(text)
        for resource, group, blame in groups:
            _check(group, machine, blame)
            devices = found.setdefault(resource, [])
            devices += _devices(resource, group, len(devices))
            if len({device.id for device in devices}) < len(devices):
                raise blame(f"duplicate device {group.id!r} of {resource}")
            if len(devices) > MAX_DEVICES:
                raise blame(f"too many devices of {resource}: the limit is {MAX_DEVICES}")
    return tuple(DeviceResource(name, tuple(devices)) for name, devices in found.items())


def _error(
    words: str,
    document: documents.Document | None,
    path: documents.PathTuple,
    message: str,
    fix: str = "",
) -> ValueError:
    if document is not None:
        return document.error(path, message, fix)
    how = fix or _HOW
    return DevicesError(f"--devices {shorten(words)}: {shorten(message)} ({how})")


def _of_words(text: str) -> Iterator[tuple[str, _Group, Callable[..., ValueError]]]:
    resource, equals, groups = text.partition("=")
    blame = partial(_error, text, None, ())
    if not equals:
        raise blame("neither a file nor a device description")
    _check_name(resource, blame)
    # Commas also separate nodes, so split groups only at a comma followed by COUNT@.
    for part in re.split(r",(?=[0-9]+@)", groups):
        words = _WORDS.fullmatch(part)
        if words is None:
            raise blame(f"expected COUNT@NODES, got {part!r}")
        nodes = None
        if words["nodes"]:
            try:
                nodes = tuple(NUMASet.parse(words["nodes"]))
            except ListFormatError:
                raise blame(f"{words['nodes']!r} is not a list of NUMA nodes") from None
        yield resource, _Group(count=int(words["count"]), numa=nodes), blame


def _of_file(text: str) -> Iterator[tuple[str, _Group, Callable[..., ValueError]]]:
    document = documents.load(Path(text))
    for resource, groups in typed.convert(document, dict[str, list[_Group]]).items():
        blame = partial(_error, text, document, (resource,))
        _check_name(resource, blame)
        if not groups:
            raise blame("no devices", "add one, or remove the resource")
        for number, group in enumerate(groups):
            yield resource, group, partial(_error, text, document, (resource, number))


def _check_name(resource: str, blame: Callable[..., ValueError]) -> None:
    if not _NAME.fullmatch(resource):
        raise blame(f"invalid device resource name: {resource!r}", "use DOMAIN/NAME")


def _check(group: _Group, machine: MachineInfo, blame: Callable[..., ValueError]) -> None:
    if (group.id is None) == (group.count is None):
        raise blame("a group needs either an id or a count", "set exactly one of them")
    if not 0 < (1 if group.count is None else group.count) <= MAX_DEVICES:
        raise blame(f"count {group.count} is out of range", f"use 1 to {MAX_DEVICES}")
    nodes = sorted(node.node_id for node in machine.topology or ())
    for node in group.numa or ():
        if node not in nodes:
            known = ", ".join(map(str, nodes))
            raise blame(f"the machine has no NUMA node {node}", f"use one of {known}")


def _devices(resource: str, group: _Group, before: int) -> Iterator[Device]:
    nodes = None if group.numa is None else NUMASet(group.numa)
    if group.id is not None:
        yield Device(group.id, nodes, group.healthy)
        return
    name = resource.partition("/")[2]
    for number in range(before, before + (group.count or 0)):
        yield Device(f"{name}-{number}", nodes, group.healthy)


def as_recorded(
    plugins: tuple[DeviceResource, ...], record: RecordedDevices | None
) -> tuple[tuple[DeviceResource, ...], tuple[str, ...]]:
    """Returns the devices of a node whose Device Manager has recorded devices, and notes.

    A checkpoint has the ids of all healthy devices, but the NUMA nodes of held ones only. Declared
    devices complete it: by their ids or, if they have none of its ids, by their number and nodes.

    Raises:
        DevicesError: a container holds a device that is not declared.
    """
    if record is None:
        return plugins, ()
    found = {one.resource: one for one in plugins}
    notes: list[str] = []
    held_ids: dict[str, set[str]] = {}
    for resource, device in record.nodes:
        held_ids.setdefault(resource, set()).add(device)
    for resource in sorted(record.healthy.keys() | held_ids):
        own = held_ids.get(resource, set())
        ids = own | record.healthy.get(resource, frozenset())
        one = found.get(resource)
        if one is None:
            found[resource] = _from_record(resource, ids, record)
            if free := len(ids - own):
                notes.append(
                    f"{resource}: the state does not record the NUMA nodes of"
                    f" {plural(free, 'free device')};"
                    f" declare all {len(ids)} with --devices {resource}=COUNT@NODES"
                )
        elif ids.isdisjoint(device.id for device in one.ids):
            found[resource] = _with_recorded_ids(one, own, ids - own, record)
            if len(one.ids) != len(ids):
                notes.append(f"{resource}: {len(one.ids)} declared, {len(ids)} in the state")
        elif missing := sorted(own - {device.id for device in one.ids}):
            raise DevicesError(
                f"--devices {resource}: a container holds {missing[0]}, which is not declared"
            )
    return tuple(found.values()), tuple(notes)


def _from_record(resource: str, ids: set[str], record: RecordedDevices) -> DeviceResource:
    healthy = record.healthy.get(resource, frozenset())
    return DeviceResource(
        resource,
        tuple(
            Device(one, record.nodes.get((resource, one)), one in healthy) for one in sorted(ids)
        ),
    )


def _with_recorded_ids(
    plugins: DeviceResource, held_ids: set[str], free: set[str], record: RecordedDevices
) -> DeviceResource:
    """Gives declared devices the ids in the record: held ones by their nodes, then free ones."""
    unnamed = list(plugins.ids)
    named = []
    for device in sorted(held_ids):
        near = record.nodes[plugins.resource, device]
        match = next((one for one in unnamed if one.numa == near), None)
        if match is None:
            where = (
                "without a NUMA node" if near is None else f"near {format_numbers('node', near)}"
            )
            raise DevicesError(
                f"--devices {plugins.resource}: a container holds {device}, which is {where}, but"
                " there are not as many such devices"
            )
        unnamed.remove(match)
        named.append(msgspec.structs.replace(match, id=device))
    for device, one in zip(sorted(free), unnamed, strict=False):
        named.append(msgspec.structs.replace(one, id=device))
    named += unnamed[len(free) :]
    return msgspec.structs.replace(plugins, ids=tuple(named))
