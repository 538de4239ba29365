"""Reports that contain machines: must-gathers, sosreports, archives of `kubectl numaproof`.

They are directories or tar files with a tree of ``/sys`` and ``/proc``, the output of tools, or the
log of a kubelet. The best source of each machine is used: a tree, then what a kubelet discovered,
then the tools that say most. The outputs of ``lscpu`` and ``numactl`` complete each other. Only
these files are unpacked, and no links but those between a node and its CPUs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from numaproof import fakesys
from numaproof.formats.machines import kubernetes, sections
from numaproof.formats.machines.description import Description, DescriptionError, MachineText
from numaproof.inputs import documents, door
from numaproof.inputs.errors import DocumentError
from numaproof.inputs.plurals import plural
from numaproof.protocol.sets import CPUSet, ListFormatError
from numaproof.reference.cadvisor.discovery import DiscoveryError, discover
from numaproof.workdir.scratch import scratch_folder
from numaproof.workdir.trees import FolderTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TREE = r"sys/devices/system/(?:cpu|node)/|sys/kernel/mm/hugepages/|proc/(?:cpuinfo|meminfo)$"
_TOOLS = (r"lscpu_-a?e[^/]*$", r"numactl_-(?:-hardware|H)$", r"lscpu(?:\.txt)?$")
"""The names of outputs that complete each other."""

_TEXTS = (
    r"sysinfo\.t(?:ar\.)?gz$",
    r"(?:machine-?info|discover)[^/]*\.json$",
    r"[^/]*kubelet[^/]*(?:\.log)?$",
    r"lstopo[^/]*xml[^/]*$",
    *_TOOLS,
    r"noderesourcetopology\.json$",
    r"nodes/[^/]+\.ya?ml$",
    r"node\.json$",
)
"""The names of other sources, the best first."""

_NODES = (len(_TEXTS) - 1, len(_TEXTS))
"""The ranks of Nodes."""

_OF_TOOLS = range(_TEXTS.index(_TOOLS[0]) + 1, _TEXTS.index(_TOOLS[-1]) + 2)
"""The ranks of outputs that complete each other."""

_WANTED = re.compile("|".join(rf"(?:^|/)(?:{part})" for part in (_TREE, *_TEXTS)))
_SOS = re.compile(r"((?:.*?/)?)sos_commands/")
_NODE = re.compile(r"(?:^|/)nodes/([^/]+?)(?:/|\.ya?ml$)")
_MAX_FILES = 500_000
_MAX_LISTED = 10

MachineReader = Callable[[bytes, str, Description | None], MachineText | None]
"""Reads a text, given the name to use in messages, and what the machine's Node shows."""


class _Source(NamedTuple):
    """A source of a machine.

    Attributes:
        machine: the machine's name; empty if the report doesn't name it.
        rank: how good the source is; 0 is best.
        path: where it is.
        others: the files that complete it.
        notes: what was left out, and why.
    """

    machine: str
    rank: int
    path: Path
    others: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def place(self, root: Path) -> str:
        """Returns the paths of its files in a report."""
        return " and ".join(str(path.relative_to(root)) for path in (self.path, *self.others))


def read_report(
    name: str,
    read_machine: MachineReader,
    no_cpu: str,
    node: str = "",
) -> MachineText | None:
    """Reads the machine of a report; None if it has none.

    Args:
        name: the directory or tar file.
        read_machine: reads a text, given the name to use in messages, and what the Node shows.
        no_cpu: the release's error for a machine without CPUs.
        node: the name of one of several nodes; empty for the only one.

    Raises:
        DocumentError: the report has several machines, or its only sources are unusable.
        TreeError: the tar file can't be read.
    """
    with _unpack(name) as root:
        sources = [one for one in _sources(root) if not node or one.machine == node]
        machines = sorted({source.machine for source in sources})
        if machines == [""]:
            places = (source.path.relative_to(root).as_posix() for source in sources)
            require_single(name, "sosreports", sosreports(places))
        if len(machines) > 1:
            some = ", ".join(machines[:_MAX_LISTED])
            fix = f"name one of them: {name}#{machines[-1]}"
            raise DocumentError(name, 0, "", f"{len(machines)} machines: {some}", fix)
        own = _node_object(sources, root, name)
        errors: list[DocumentError] = []
        for source in _join_tools(sources, root):
            where = source.place(root)
            try:
                found = _read(source, f"{name}: {where}", read_machine, no_cpu, own)
            except DocumentError as error:
                errors.append(error)
            else:
                if found is not None:
                    notes = (*(found.notes or (f"the machine is that of {where}",)), *source.notes)
                    return replace(found, file=name, notes=(*notes, *_contradictions(found, own)))
    if errors:
        raise errors[0]
    return None


def machine_digest(name: str) -> str:
    """Returns a digest of the files that describe the machine of an archive or directory.

    Equal digests mean equal machines. If there is a tree, only its files count.

    Raises:
        DocumentError: a file can't be read.
        TreeError: the archive can't be read.
    """
    if Path(name).is_dir():
        # A tree has thousands of files, so this works on plain strings.
        paths = (
            (f"{folder[len(name) :]}/{file}", f"{folder}/{file}")
            for folder, _, inside in os.walk(name)
            for file in inside
        )
        files = sorted((place, door.read(path)) for place, path in paths if _WANTED.search(place))
    else:
        files = sorted(fakesys.read_some(name, lambda place: bool(_WANTED.search(place))))
    tree = [one for one in files if re.search(rf"(?:^|/)(?:{_TREE})", one[0])]
    digest = sha256()
    for place, content in tree or files:
        digest.update(f"{place.lstrip('./')} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _node_object(sources: Iterable[_Source], root: Path, name: str) -> Description | None:
    """Returns what the Node of a report shows, if the report has one."""
    for source in sources:
        if source.rank in _NODES:
            file = f"{name}: {source.path.relative_to(root)}"
            try:
                data = documents.load(door.read_text(source.path), file=file, aliases=True).data
                return kubernetes.read(data) if kubernetes.is_object(data) else None
            except (DescriptionError, DocumentError):
                return None  # reported where it is the only source
    return None


def _contradictions(text: MachineText, node: Description | None) -> Iterator[str]:
    """Yields in what a machine differs from its Node."""
    if node is None:
        return
    machine = text.machine
    if node.cpu_count is not None and node.cpu_count != machine.num_cores:
        cpus = plural(machine.num_cores, "CPU")
        yield f"contradiction: the source has {cpus}, but the Node's capacity is {node.cpu_count}"
    if not text.format and node.memory is not None and node.memory != machine.memory_capacity:
        amounts = f"{machine.memory_capacity} bytes of memory, but the Node's capacity is"
        yield f"contradiction: the source has {amounts} {node.memory}"


def _read(
    source: _Source,
    name: str,
    read_machine: MachineReader,
    no_cpu: str,
    node: Description | None,
) -> MachineText | None:
    if source.rank == 0:
        tree = FolderTree.root(source.path, name)
        try:
            fakesys.require_intact(tree)
            return MachineText(file=name, machine=discover(tree, no_cpu))
        except (fakesys.TreeError, DiscoveryError) as error:
            raise DocumentError(name, 0, "", str(error).removeprefix(f"{name}: ")) from None
    if source.rank == 1:
        return read_report(
            str(source.path), lambda text, file, _: read_machine(text, file, node), no_cpu
        )
    content = b"\n".join(door.read(path, name=name) for path in (source.path, *source.others))
    return read_machine(content, name, node)


@contextmanager
def _unpack(name: str) -> Iterator[Path]:
    """Yields a directory with the files of a report, whose nodes have their CPUs."""
    if Path(name).is_dir():
        yield Path(name)
        return
    with scratch_folder() as root:
        fakesys.unpack_some(name, root, lambda member: _WANTED.search(member) is not None)
        for node in root.rglob("sys/devices/system/node/node*"):
            _link_cpus(node)
        yield root


def _link_cpus(node: Path) -> None:
    """Links a node to the CPUs of its list, as the kernel does."""
    try:
        cpus = CPUSet.parse(door.read_text(node / "cpulist"))
    except (DocumentError, ListFormatError):
        return
    for cpu in cpus:
        link = node / f"cpu{cpu}"
        if not link.exists():
            link.symlink_to(f"../../cpu/cpu{cpu}")


def _sources(root: Path) -> Iterator[_Source]:
    for path in files_below(root):
        place = path.relative_to(root).as_posix()
        node = _NODE.search(place)
        machine = node[1] if node else ""
        if place.endswith("sys/devices/system/cpu/online"):
            yield _Source(machine, 0, path.parents[4])
        for rank, form in enumerate(_TEXTS, 1):
            if re.search(rf"(?:^|/){form}", place):
                yield _Source(machine, rank, path)
                break


def _join_tools(sources: Iterable[_Source], root: Path) -> Iterator[_Source]:
    """Yields the sources, with the outputs of tools that complete each other as one."""
    joined: _Source | None = None
    others: list[_Source] = []
    notes: list[str] = []
    for source in sorted(sources, key=lambda source: source.rank):
        if source.rank not in _OF_TOOLS:
            others.append(source)
            continue
        more = joined._replace(others=(*joined.others, source.path)) if joined else source
        if problem := _problem(more):
            others.append(source)
            notes.append(f"left out {source.place(root)}: {problem}")
        else:
            joined = more
    if joined is not None:
        others.append(joined._replace(rank=_OF_TOOLS.start, notes=tuple(notes)))
    yield from sorted(others, key=lambda source: (source.rank, source is not others[-1]))


def _problem(source: _Source) -> str:
    """Returns why the outputs of tools don't describe a machine; empty if they do."""
    files = (source.path, *source.others)
    try:
        found = sections.read("\n".join(map(door.read_text, files)), least=len(files))
    except (DescriptionError, DocumentError) as error:
        return str(error)
    return "" if found is not None else "not the output of lscpu or numactl"


def sosreports(places: Iterable[str]) -> set[str]:
    """Returns the folders of the sosreports among the paths of files; empty for the top."""
    return {found[1] for place in places if (found := _SOS.match(place))}


def require_single(name: str, what: str, folders: Iterable[str]) -> None:
    """Refuses a report that is several, which would be mixed.

    Args:
        name: the directory or tar file.
        what: what the folders are, in the plural.
        folders: the folder of each; empty for the top.

    Raises:
        DocumentError: there are several.
    """
    found = sorted({folder.rstrip("/") for folder in folders})
    if len(found) > 1:
        some = ", ".join(folder or "." for folder in found[:_MAX_LISTED])
        at = f"{name.rstrip('/')}/{found[-1]}"
        fix = f"choose one: {at}" if Path(name).is_dir() else "unpack it and choose one"
        raise DocumentError(name, 0, "", f"{len(found)} {what}: {some}", fix)


def files_below(root: Path) -> Iterator[Path]:
    """Yields the files of a report in order, except for those of single CPUs.

    Raises:
        DocumentError: there are too many.
    """
    count = 0
    for folder, folders, files in os.walk(root):
        folders.sort()
        if folder.endswith("sys/devices/system/cpu"):
            folders.clear()
        for file in sorted(files):
            count += 1
            if count > _MAX_FILES:
                raise DocumentError(
                    str(root), 0, "", f"more than {plural(_MAX_FILES, 'file')}", "name a subfolder"
                )
            yield Path(folder, file)
