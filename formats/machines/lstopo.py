"""The XML of hwloc's ``lstopo``, of its versions 1 and 2.

Version 1 puts NUMA nodes around their cores, and leaves out a single one; version 2 puts them next
to their cores. In both, the set of CPUs of each object says what is where.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn
from xml.parsers import expat

from numaproof.formats.machines.description import CPU, Cache, Description, DescriptionError, Node
from numaproof.protocol.sets import LARGEST_MEMBER, CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_AGAIN = "save the output of `lstopo --of xml`"
_MAX_DEPTH = 100
_MAX_OBJECTS = 50_000
_HEAD = 1 << 16
_CACHES = re.compile(r"(?:L([1-5])(i?)|)Cache")
_WITH_IDS = frozenset({"x86_64", "i686", ""})
_TYPES = ("Unified", "Data", "Instruction")


class _Object:
    """An object of the topology: its attributes, its memory pages, and what it is inside."""

    def __init__(self, attributes: Mapping[str, str]) -> None:
        self.attributes = attributes
        self.kind = {"Socket": "Package"}.get(attributes["type"], attributes["type"])
        self.pages: dict[int, int] = {}
        self.cpus = _bits(attributes.get("cpuset"))

    def number(self, name: str) -> int | None:
        text = self.attributes.get(name, "")
        return int(text) if re.fullmatch(r"[0-9]{1,19}", text) else None

    def size(self, name: str) -> int:
        """Returns a size, which is 0 if it is absent."""
        found = self.number(name)
        if found is None and name in self.attributes:
            raise _invalid(self.attributes[name])
        return found or 0


def _bits(text: str | None) -> int:
    """A set of CPUs as a mask: hexadecimal words of 32 bits."""
    mask = 0
    for word in (text or "").split(","):
        digits = word.removeprefix("0x") or "0"
        if not re.fullmatch(r"[0-9a-fA-F]{1,8}", digits):
            raise DescriptionError(f"the CPU set {text!r} is not hexadecimal", _AGAIN)
        mask = mask << 32 | int(digits, 16)
    if mask >> LARGEST_MEMBER:
        raise DescriptionError("a CPU set is too large", _AGAIN)
    return mask


class _Reader:
    """Collects what a machine needs from the elements."""

    def __init__(self) -> None:
        self.objects: list[_Object] = []
        self.inside: list[_Object | None] = []
        self.architecture = ""
        self.matrices: list[tuple[Mapping[str, str], list[float]]] = []
        self.indexes: list[int] = []
        self._text = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._text = ""
        if len(self.inside) > _MAX_DEPTH:
            raise DescriptionError(f"nested deeper than {_MAX_DEPTH} levels", _AGAIN)
        found = None
        if name == "object" and "type" in attributes:
            if len(self.objects) == _MAX_OBJECTS:
                raise DescriptionError(f"more than {_MAX_OBJECTS} objects", _AGAIN)
            found = _Object(attributes)
            self.objects.append(found)
        elif name == "page_type":
            self._page_type(attributes)
        elif name == "info" and attributes.get("name") == "Architecture":
            self.architecture = attributes.get("value", "")
        elif name in ("distances", "distances2"):
            self.matrices.append((attributes, []))
            self.indexes = []
        elif name == "latency" and self.matrices:
            self.matrices[-1][1].append(_real(attributes.get("value", "")))
        self.inside.append(found)

    def _page_type(self, attributes: Mapping[str, str]) -> None:
        owner = next((one for one in reversed(self.inside) if one), None)
        size, count = attributes.get("size", ""), attributes.get("count", "0")
        for text in (size, count):
            if not re.fullmatch(r"[0-9]{1,19}", text):
                raise _invalid(text)
        if owner:
            owner.pages[int(size) // 1024] = int(count)

    def text(self, data: str) -> None:
        self._text += data

    def end(self, name: str) -> None:
        self.inside.pop()
        if name == "indexes":
            self.indexes += [int(_real(one)) for one in self._text.split() if ":" not in one]
        elif name == "u64values" and self.matrices:
            self.matrices[-1][1].extend(map(_real, self._text.split()))
        self._text = ""


def _real(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", text):
        raise _invalid(text)
    return float(text)


def _invalid(text: str) -> DescriptionError:
    return DescriptionError(f"the number {text!r} is invalid", _AGAIN)


def is_lstopo(text: str) -> bool:
    """Returns whether a text looks like the XML of lstopo."""
    return re.search(r"<topology\b[^>]*>\s*<object\b", text[:_HEAD]) is not None


def read(text: str) -> Description:
    """Reads a text that `is_lstopo`.

    Raises:
        DescriptionError: it is not XML, defines entities, or has no CPUs.
    """
    reader = _parse(text)
    machine = reader.objects[0]
    pus = {cpu.bit_length() - 1 for one in reader.objects if one.kind == "PU" and (cpu := one.cpus)}
    if not pus:
        raise DescriptionError("lstopo without CPUs", "save it without a filter of PUs")
    for one in reader.objects:
        if lost := [*_members(one.cpus & ~sum(1 << cpu for cpu in pus))]:
            name = one.attributes["type"]
            raise DescriptionError(
                f"lstopo has CPU {lost[0]} in a {name}, but no PU for it", _AGAIN
            )
    of_kind = {
        kind: [one for one in reader.objects if one.kind == kind]
        for kind in ("Core", "Package", "NUMANode")
    }
    nodes = of_kind["NUMANode"] or [machine]
    cores = {
        cpu: _index(core, position)
        for position, core in enumerate(of_kind["Core"])
        for cpu in _members(core.cpus)
    }
    packages = {
        cpu: package.number("os_index") or 0
        for package in of_kind["Package"]
        for cpu in _members(package.cpus)
    }
    # A node without CPUs has those of the objects around it, and a higher number than theirs.
    numbers = [_index(node, position) for position, node in enumerate(nodes)]
    place = {
        cpu: number
        for number, node in sorted(zip(numbers, nodes, strict=True), key=lambda pair: -pair[0])
        for cpu in _members(node.cpus)
    }
    known = set(_members(_bits(machine.attributes.get("complete_cpuset"))))
    offline = known - pus if len(known) <= LARGEST_MEMBER // 8 else set()
    return Description(
        format="lstopo --of xml",
        architecture=reader.architecture,
        cpus=tuple(
            CPU(
                number=cpu,
                node=place.get(cpu),
                core=cores.get(cpu, cpu) if of_kind["Core"] else None,
                socket=packages.get(cpu),
                online=cpu not in offline,
            )
            for cpu in sorted(pus | offline)
        ),
        nodes=tuple(map(_node, numbers, nodes)),
        distances=_distances(reader, numbers),
        caches=tuple(_caches(reader.objects, reader.architecture)) or None,
        notes=(f"CPUs {CPUSet(offline)} are offline, or hidden from lstopo",) if offline else (),
    )


def _parse(text: str) -> _Reader:
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.EntityDeclHandler = _refuse_entity
    parser.buffer_text = True
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise DescriptionError(f"not XML: {message}", _AGAIN, error.lineno) from None
    if not reader.objects:
        raise DescriptionError("lstopo without objects", _AGAIN)
    return reader


def _refuse_entity(*_: object) -> NoReturn:
    raise DescriptionError("XML that defines entities", _AGAIN)


def _members(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _index(item: _Object, position: int) -> int:
    found = item.number("os_index")
    return position if found is None or item.kind == "Machine" else found


def _node(number: int, node: _Object) -> Node:
    base = min(node.pages, default=0)
    return Node(
        number=number,
        memory=node.size("local_memory"),
        hugepages={size: count for size, count in node.pages.items() if size != base}
        if node.pages
        else None,
    )


def _distances(reader: _Reader, nodes: Sequence[int]) -> tuple[tuple[int, ...], ...] | None:
    """The matrix of the kernel's distances, by ascending number of the node.

    Version 1 divides them by `latency_base`; version 2 may list nodes in any order.
    """
    count = len(nodes)
    order = sorted(range(count), key=lambda position: nodes[position])
    for attributes, values in reader.matrices:
        if len(values) != count * count or attributes.get("type", "NUMANode") != "NUMANode":
            continue
        base = _real(attributes["latency_base"]) if "latency_base" in attributes else 1
        listed = (
            reader.indexes if len(reader.indexes) == count else [nodes[i] for i in range(count)]
        )
        at = {node: position for position, node in enumerate(listed)}
        if set(at) != set(nodes):
            continue
        rows = [at[nodes[position]] for position in order]
        return tuple(tuple(round(values[i * count + j] * base) for j in rows) for i in rows)
    return None


def _caches(objects: Sequence[_Object], architecture: str) -> Iterator[Cache]:
    """Yields the caches that a kubelet sees: other kernels than x86's may give them no ids."""
    for one in objects:
        if one.number("os_index") is None and architecture not in _WITH_IDS:
            continue
        found = _CACHES.fullmatch(one.kind)
        level = found and (found[1] or one.number("depth"))
        if level is None:
            continue
        kind = one.number("cache_type") or 0
        yield Cache(
            level=int(level),
            type=_TYPES[kind] if kind < len(_TYPES) else _TYPES[0],
            size=one.size("cache_size"),
            cpus=tuple(_members(one.cpus)),
        )
