"""Finds a node's configuration, state and pods in what was collected about it.

The machine in the same file or directory is read by `numaproof.formats.machines`.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from numaproof import fakesys
from numaproof.formats.machines.reports import files_below, require_single, sosreports
from numaproof.formats.nodes import contents
from numaproof.inputs import documents, door, typed
from numaproof.inputs.documents import value_at
from numaproof.inputs.errors import DocumentError
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class SourceFile(NamedTuple):
    """A file or folder of a report: where it is, and how messages call it."""

    path: Path
    name: str


class CapturedNode(NamedTuple):
    """What a report contains about a node.

    Its machine is read by name, as `machine`.

    Attributes:
        file: the report, as the user named it.
        format: what it is, such as ``a must-gather``.
        node: the node's name; empty if it is unknown.
        kubernetes: the kubelet's version, such as ``v1.36.2``; empty if it is unknown.
        configuration: the files with its kubelet's configuration; later ones override earlier ones.
        state: a folder with the kubelet's state files, if there are any.
        pods: the file with its pods, if there is one.
        record: how an archive was collected; None for other reports.
        has_machine: whether it can have a machine.
        has_tree: whether it has the machine's tree, which is complete.
        absent: the object with the configuration, if the report names it but lacks it.
    """

    file: str
    format: str
    node: str = ""
    kubernetes: str = ""
    configuration: tuple[SourceFile, ...] = ()
    state: SourceFile | None = None
    pods: SourceFile | None = None
    record: contents.Record | None = None
    has_machine: bool = True
    has_tree: bool = False
    absent: str = ""

    @property
    def machine(self) -> str:
        """How the options that take machines call this one."""
        return f"{self.file}#{self.node}" if self.format == MUST_GATHER else self.file

    @property
    def without_configuration(self) -> str:
        """The message if the report has no configuration."""
        reason = f": it lacks {self.absent}, which the node runs" if self.absent else ""
        return f"{self.file} has no configuration{reason}"


MUST_GATHER = "a must-gather"
ARCHIVE = "an archive of kubectl numaproof"


@contextmanager
def open_node(name: str, node: str = "") -> Iterator[CapturedNode]:
    """Yields what a report contains about a node; its files are valid within the context.

    Args:
        name: an archive of `kubectl numaproof`, a must-gather, a sosreport or a tree, packed or
            not.
        node: the name of one of several nodes; empty for the only one.

    Raises:
        DocumentError: it is something else, or has several nodes and `node` is empty.
        TreeError: it can't be unpacked.
    """
    if Path(name).is_dir():
        yield _read(_Report(Path(name), name), node)
        return
    members: list[str] = []

    def is_wanted(member: str) -> bool:
        members.append(posixpath.normpath(member))
        return _WANTED.search(member) is not None

    with scratch_folder() as root:
        fakesys.unpack_some(name, root, is_wanted)
        yield _read(_Report(root, name, members), node)


_STATE = ("cpu_manager_state", "memory_manager_state", "kubelet_internal_checkpoint")
_FOLDER = "cluster-scoped-resources"
_NODE = rf"{_FOLDER}/core/nodes/([^/]+)\.yaml$"
_MACHINE_CONFIG = rf"{_FOLDER}/machineconfiguration\.openshift\.io/machineconfigs/([^/]+)\.yaml$"
_SOS = r"sos_commands/"
"""Where a sosreport has the output of tools; every one has that of `date`."""

_FILES = (
    r"var/lib/kubelet/config\.yaml$",
    r"etc/kubernetes/kubelet\.conf$",
    r"etc/kubernetes/kubelet-config\.yaml$",
    r"etc/kubernetes/kubelet/(?:kubelet-)?config\.json$",
    r"var/lib/kubelet/kubeadm-flags\.env$",
)
"""The files in a sosreport that kubelets of different products read, in that order."""

_WANTED = re.compile(
    "|".join(
        rf"(?:^|/)(?:{part})"
        for part in (
            *(re.escape(name) + "$" for name in _STATE),
            re.escape(contents.RECORD) + "$",
            re.escape(contents.CONFIGURATION) + "$",
            re.escape(contents.FLAGS) + "$",
            re.escape(contents.PODS) + "$",
            _NODE,
            _MACHINE_CONFIG,
            *_FILES,
            rf"{_SOS}date/date$",
        )
    )
)


class _Report:
    """The files of a report by their path in it.

    `members` are the paths of all its files, even of those that aren't unpacked.
    """

    def __init__(self, root: Path, name: str, members: Iterable[str] = ()) -> None:
        self.root = root
        self.name = name
        self.paths = {path.relative_to(root).as_posix(): path for path in files_below(root)}
        self.members = frozenset((*self.paths, *members))

    def has(self, place: str) -> bool:
        """Returns whether the report has a file, or a file in a folder."""
        return place in self.members or any(one.startswith(f"{place}/") for one in self.members)

    def find(self, pattern: str) -> Iterator[tuple[re.Match[str], SourceFile]]:
        """Yields the files whose path ends as a pattern says, with what the pattern matched."""
        form = re.compile(rf"(?:^|/)(?:{pattern})")
        for place, path in self.paths.items():
            if found := form.search(place):
                yield found, SourceFile(path, f"{self.name}: {place}")

    def files(self, pattern: str) -> tuple[SourceFile, ...]:
        """Returns the files whose path ends as a pattern says."""
        return tuple(source for _, source in self.find(pattern))

    def state(self, below: str = "") -> SourceFile | None:
        """Returns the folder of the state files whose path contains `below`.

        The Device Manager's file can be in a folder of its own.
        """
        for _, source in self.find(f"(?:{'|'.join(_STATE)})$"):
            place = source.path.relative_to(self.root)
            if below in f"/{place.as_posix()}":
                parent = place.parent
                folder = parent.parent if parent.name == "device-plugins" else parent
                return SourceFile(self.root / folder, f"{self.name}: {folder.as_posix()}")
        return None


def _read(report: _Report, node: str) -> CapturedNode:
    has_tree = any(map(_TREE.search, report.members))
    return _read_report(report, node)._replace(has_tree=has_tree)


def _read_report(report: _Report, node: str) -> CapturedNode:
    records = report.files(re.escape(contents.RECORD) + "$")
    nodes = {found[1]: source for found, source in report.find(_NODE)}
    if records:
        require_single(report.name, "archives", (_parent(report, one) for one in records))
        return _archive(report, records[0])
    if nodes:
        return _must_gather(report, nodes, node)
    folders = sosreports(report.members)
    require_single(report.name, "sosreports", folders)
    if not folders:
        require_single(report.name, "copies of a node's files", _copies(report))
    if folders or report.state():
        return _sosreport(report, has_commands=bool(folders))
    if any(_AT_TOP.search(member) for member in report.members):
        return CapturedNode(report.name, "a tree")
    fix = "expected an archive of `kubectl numaproof`, a must-gather or a sosreport"
    raise DocumentError(report.name, 0, "", "does not describe a node", fix)


_TREE = re.compile(r"(?:^|/)sys/devices/system/")
_AT_TOP = re.compile(r"^(?:[^/]+/)?sys/devices/system/")


def _parent(report: _Report, source: SourceFile) -> str:
    """Returns the folder of a file in a report; empty at the top."""
    return source.path.parent.relative_to(report.root).as_posix().removeprefix(".")


def _copies(report: _Report) -> set[str]:
    """Returns the folders that stand for the root of a node."""
    return {found[1] for place in report.paths if (found := _KUBELET.match(place))}


_KUBELET = re.compile(r"((?:.*?/)?)var/lib/kubelet/")


def _archive(report: _Report, record_file: SourceFile) -> CapturedNode:
    document = documents.load(door.read_text(record_file.path), file=record_file.name)
    version = value_at(document.data, ("version",))
    if version != contents.VERSION:
        fix = "update numaproof" if isinstance(version, int) else "collect it again"
        message = f"unknown version {version!r} of the format"
        raise document.error(("version",), message, fix)
    record = typed.convert(document, contents.Record)
    folder = record_file.path.parent
    place = _parent(report, record_file)
    absent = [part for part in record.parts if not report.has(posixpath.join(place, part))]
    if absent:
        message = f"{', '.join(absent)}: listed but absent, so the archive is incomplete"
        raise document.error(("parts",), message, "copy it completely, or collect it again")

    def there(part: str) -> Iterator[SourceFile]:
        if (folder / part).exists():
            yield SourceFile(folder / part, f"{report.name}: {part}")

    return CapturedNode(
        file=report.name,
        format=ARCHIVE,
        node=record.node,
        kubernetes=record.kubernetes,
        configuration=(*there(contents.CONFIGURATION), *there(contents.FLAGS)),
        state=next(there(contents.STATE), None),
        pods=next(there(contents.PODS), None),
        record=record,
        has_machine=any(part in _MACHINES for part in record.parts),
    )


_MACHINES = (contents.TREE, contents.TOPOLOGY, contents.NODE)
"""The parts of an archive that show the machine."""


def _must_gather(report: _Report, nodes: dict[str, SourceFile], node: str) -> CapturedNode:
    if not node and len(nodes) > 1:
        some = ", ".join(sorted(nodes)[:MAX_LISTED])
        fix = f"choose one: {report.name}#{max(nodes)}"
        raise DocumentError(report.name, 0, "", f"{len(nodes)} nodes: {some}", fix)
    name = node or next(iter(nodes))
    if name not in nodes:
        some = ", ".join(sorted(nodes)[:MAX_LISTED])
        raise DocumentError(report.name, 0, "", f"no node {name!r}", f"it has: {some}")
    content = documents.load(
        door.read_text(nodes[name].path), file=nodes[name].name, aliases=True
    ).data
    rendered = value_at(content, ("metadata", "annotations", _CURRENT_CONFIG))
    configuration = tuple(
        source for found, source in report.find(_MACHINE_CONFIG) if found[1] == rendered
    )
    return CapturedNode(
        file=report.name,
        format=MUST_GATHER,
        node=name,
        kubernetes=str(value_at(content, ("status", "nodeInfo", "kubeletVersion")) or ""),
        configuration=configuration,
        state=report.state(f"/{name}/"),
        absent=f"the MachineConfig {rendered}" if rendered and not configuration else "",
    )


_CURRENT_CONFIG = "machineconfiguration.openshift.io/currentConfig"
"""The annotation with the name of the MachineConfig that a node runs."""

MAX_LISTED = 10
"""Maximum number of nodes to list in a message."""


def _sosreport(report: _Report, *, has_commands: bool) -> CapturedNode:
    return CapturedNode(
        file=report.name,
        format="a sosreport" if has_commands else "a copy of a node's files",
        configuration=(*_configuration_files(report),),
        state=report.state(),
    )


def _configuration_files(report: _Report) -> Iterator[SourceFile]:
    for pattern in _FILES:
        for source in report.files(pattern):
            # kubeadm has a kubeconfig where OpenShift has the kubelet's configuration.
            if not re.search(r"^kind: *Config *$", door.read_text(source.path), re.MULTILINE):
                yield source
