"""The devices of a simulated node: given in a few words, or in a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaproof.fakesys import documents
from numaproof.protocol.messages import Device, DeviceResource
from numaproof.protocol.sets import ListFormatError, NUMASet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.protocol.machine import MachineInfo

MOST_DEVICES = 4096
"""Of one resource; more than a kubelet can list in one message of a device plugin."""

_WORDS = re.compile(r"(?P<count>[0-9]+)(?:@(?P<nodes>[0-9,-]+))?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_HOW = "write NAME=COUNT@NODES, such as vendor.example/nic=4@0, or name a file"


class DevicesError(ValueError):
    """Devices given in words are not to be understood; says which and what to write."""


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Devices in a file: one by its id, or a `count` of them; `numa` None for no topology."""

    id: str | None = None
    count: int | None = None
    numa: tuple[int, ...] | None = None
    healthy: bool = True


def read(given: Iterable[str], machine: MachineInfo) -> tuple[DeviceResource, ...]:
    """What device plugins report, from texts that are words or the names of files.

    Words are ``RESOURCE=COUNT@NODES,...``: so many devices near each of those NUMA nodes
    (``2@0-1`` is near both), without ``@NODES`` devices whose plugin reports no topology. A file
    has a list of groups for each resource: ``{count: 4, numa: [0]}`` or ``{id: eth0, numa: [0],
    healthy: false}``.

    Raises:
        DevicesError: a text is neither, or what it says cannot be on this machine.
        fakesys.DocumentError: a file is not what it should be.
    """
    found: dict[str, list[Device]] = {}
    for text in given:
        groups = _of_file(text) if Path(text).is_file() else _of_words(text)
        for resource, group, blame in groups:
            _check(resource, group, machine, blame)
            devices = found.setdefault(resource, [])
            devices += _devices(resource, group, len(devices))
            if len({device.id for device in devices}) < len(devices):
                raise blame(f"{resource} has the device {group.id!r} twice")
            if len(devices) > MOST_DEVICES:
                raise blame(f"more than {MOST_DEVICES} devices of {resource}")
    return tuple(DeviceResource(name, tuple(devices)) for name, devices in found.items())


class _Blame:
    """Makes the error about one group: it knows where the group was given."""

    def __init__(
        self, words: str, document: documents.Document | None, path: documents.PathTuple
    ) -> None:
        self._words = words
        self._document = document
        self._path = path

    def __call__(self, message: str, mend: str = "") -> ValueError:
        if self._document is None:
            return DevicesError(f"--devices {self._words}: {message} ({mend or _HOW})")
        return self._document.error(self._path, message, mend)


def _of_words(text: str) -> Iterator[tuple[str, _Group, _Blame]]:
    resource, equals, groups = text.partition("=")
    blame = _Blame(text, None, ())
    if not equals:
        raise blame("there is no such file, and it is not devices either")
    # A comma parts nodes (2@0,1@1 has a count next), so it parts groups before COUNT@ or the end.
    for part in re.split(r",(?=[0-9]+@)", groups):
        words = _WORDS.fullmatch(part)
        if words is None:
            raise blame(f"{part!r} is not COUNT@NODES")
        nodes = None
        if words["nodes"]:
            try:
                nodes = tuple(NUMASet.parse(words["nodes"]))
            except ListFormatError:
                raise blame(f"{words['nodes']!r} is not a list of NUMA nodes") from None
        yield resource, _Group(count=int(words["count"]), numa=nodes), blame


def _of_file(text: str) -> Iterator[tuple[str, _Group, _Blame]]:
    document = documents.load(Path(text))
    for resource, groups in documents.convert(document, dict[str, list[_Group]]).items():
        for number, group in enumerate(groups):
            yield resource, group, _Blame(text, document, (resource, number))


def _check(resource: str, group: _Group, machine: MachineInfo, blame: _Blame) -> None:
    if not _NAME.fullmatch(resource):
        raise blame(f"{resource!r} is no name of a device resource", "write DOMAIN/NAME")
    if (group.id is None) == (group.count is None):
        raise blame("a group has either an id or a count", "give one of them")
    if not 0 < (1 if group.count is None else group.count) <= MOST_DEVICES:
        raise blame(f"{group.count} devices", f"write 1 to {MOST_DEVICES}")
    nodes = [node.node_id for node in machine.topology or ()]
    for node in group.numa or ():
        if node not in nodes:
            known = ", ".join(map(str, nodes))
            raise blame(f"the machine has no NUMA node {node}", f"it has the nodes {known}")


def _devices(resource: str, group: _Group, before: int) -> Iterator[Device]:
    nodes = None if group.numa is None else NUMASet(group.numa)
    if group.id is not None:
        yield Device(group.id, nodes, group.healthy)
        return
    name = resource.partition("/")[2]
    for number in range(before, before + (group.count or 0)):
        yield Device(f"{name}-{number}", nodes, group.healthy)
