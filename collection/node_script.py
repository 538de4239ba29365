"""The script that runs on a node, and how to read its output.

Files of ``/sys`` claim to have 4,096 bytes, so `tar` and `cpio` can't pack them, and copying 30,000
of them takes 120 MiB. `grep` prints them all in one process: each line of a file as
``PATH:LINE``. Other files are printed in base64, under a name that begins with ``@``.
"""

from __future__ import annotations

import base64
import binascii
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.fakesys.entries import NODE
from numaproof.fakesys.snapshot import read_snapshot
from numaproof.inputs import door
from numaproof.inputs.documents import DocumentError
from numaproof.reference.config import flags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SYS, PROC, KUBELET = "/sysfs", "/procfs", "/kubelet"
"""Where the pod finds the node's ``/sys``, ``/proc`` and the kubelet's folder."""

STATE_FILES = (
    "cpu_manager_state",
    "memory_manager_state",
    "device-plugins/kubelet_internal_checkpoint",
)

_CPU = "sys/devices/system/cpu"
_GLOBS = (
    *(
        f"{_CPU}/{name}"
        for name in ("possible", "present", "online", "offline", "kernel_max", "isolated")
    ),
    f"{_CPU}/nohz_full",
    f"{_CPU}/cpu[0-9]*/online",
    f"{_CPU}/cpu[0-9]*/cpu_capacity",
    f"{_CPU}/cpu[0-9]*/topology/*",
    f"{_CPU}/cpu[0-9]*/cache/index[0-9]*/*",
    *(
        f"{NODE}/{name}"
        for name in ("possible", "online", "has_cpu", "has_memory", "has_normal_memory")
    ),
    *(f"{NODE}/node[0-9]*/{name}" for name in ("cpulist", "cpumap", "distance", "meminfo")),
    f"{NODE}/node[0-9]*/hugepages/hugepages-*/nr_hugepages",
    "sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
)
"""The files of ``/sys`` to print; `read_snapshot` keeps those that discovery reads."""

_LINKS = (f"{NODE}/node[0-9]*/cpu[0-9]*", f"{_CPU}/cpu[0-9]*")
"""Entries that count although they may have no files: links to a node's CPUs, and CPUs."""


@dataclass(frozen=True)
class NodeOutput:
    """What a node's script printed.

    Attributes:
        tree: the files from which a machine is discovered; None if there are none.
        state: the kubelet's state files, by their path below its folder.
        command_line: the kubelet's arguments; empty if no process is called kubelet.
    """

    tree: Mapping[str, fakesys.Entry] | None
    state: Mapping[str, bytes]
    command_line: tuple[str, ...]


def script(sys: str = SYS, proc: str = PROC, kubelet: str = KUBELET) -> str:
    """Returns the script; the arguments are the folders that it reads."""
    files = " ".join(path.removeprefix("sys/") for path in _GLOBS)
    links = " ".join(path.removeprefix("sys/") for path in _LINKS)
    state = " ".join(STATE_FILES)
    return f"""exec 2>/dev/null
{{
cd {shlex.quote(sys)} && {{
printf '%s\\n' {files} | xargs grep -aHs '' | sed 's|^|sys/|'
printf '%s:\\n' {links} | sed 's|^|sys/|'
}}
cd {shlex.quote(proc)} && {{
grep -aHs '' cpuinfo meminfo | sed 's|^|proc/|'
for comm in [0-9]*/comm; do
  read -r name < "$comm" && [ "$name" = kubelet ] || continue
  base64 "${{comm%comm}}cmdline" | sed 's|^|@command_line:|'
  break
done
}}
cd {shlex.quote(kubelet)} && for file in {state}; do
  [ -f "$file" ] && base64 "$file" | sed "s|^|@state/$file:|"
done
echo @end:
}} | gzip | base64
"""


class OutputError(ValueError):
    """The output of a node's script is damaged; the message says how."""


_MAX_OUTPUT = 256 << 20


def parse(output: bytes) -> NodeOutput:
    """Reads the output of a node's script.

    Raises:
        OutputError: it is incomplete.
    """
    lines: dict[str, list[bytes]] = {}
    for line in _unpack(output).split(b"\n"):
        name, _, content = line.partition(b":")
        lines.setdefault(name.decode("utf-8", "replace"), []).append(content)
    if "@end" not in lines:
        raise OutputError("the debug pod's output ends too early")
    state = {
        name: _decode(lines[f"@state/{name}"]) for name in STATE_FILES if f"@state/{name}" in lines
    }
    arguments = _decode(lines.get("@command_line", ())).decode("utf-8", "replace").split("\0")
    return NodeOutput(_tree(lines), state, tuple(filter(None, arguments[1:])))


def _unpack(output: bytes) -> bytes:
    if not output.strip():
        programs = "sh, grep, xargs, sed, gzip and base64"
        raise OutputError(f"the debug pod printed nothing: its image needs {programs}")
    try:
        packed = base64.b64decode(b"".join(output.split()), validate=True)
        return door.unpack_gzip(packed, "the debug pod's output", most=_MAX_OUTPUT)
    except (binascii.Error, DocumentError):
        fix = "the kubelet may have rotated its log"
        raise OutputError(f"the debug pod's output is incomplete: {fix}") from None


def _decode(lines: Iterable[bytes]) -> bytes:
    try:
        return base64.b64decode(b"".join(lines), validate=True)
    except binascii.Error:
        raise OutputError("a file in the debug pod's output is damaged") from None


_ENTRY = re.compile(rf"{NODE}/node[0-9]+/(cpu[0-9]+)|{_CPU}/cpu[0-9]+")


def _tree(lines: Mapping[str, list[bytes]]) -> Mapping[str, fakesys.Entry] | None:
    """Returns the files that discovery reads, with only the fields that it reads."""
    entries: dict[str, fakesys.Entry] = {}
    for path, content in lines.items():
        if entry := _ENTRY.fullmatch(path):
            cpu = entry[1]
            entries[path] = fakesys.Symlink(f"../../cpu/{cpu}") if cpu else fakesys.Directory()
        elif path.startswith(("sys/", "proc/")):
            entries[path] = b"".join(b"%s\n" % line for line in content)
    try:
        root = fakesys.TreePath.root(fakesys.Tree("node", dict(sorted(entries.items()))))
        snapshot = read_snapshot(root)
    except fakesys.TreeError:
        return None
    links = {path: entry for path, entry in entries.items() if not isinstance(entry, bytes)}
    files = {path: _reduce(path, content) for path, content in snapshot.files.items()}
    return dict(sorted({**links, **files}.items()))


_CPUINFO = re.compile(
    rb"processor|cpu number|physical id|core id|siblings|cpu cores|vendor_id|vendor|model name|cpu"
    rb"|arch|flags|timebase|CPU (?:implementer|architecture|variant|part|revision)|isa|hart"
)
_MEMINFO = re.compile(rb"(?:Node [0-9]+ )?(?:MemTotal|HugePages_Total|Hugepagesize):")
_S390 = re.compile(rb"(processor [0-9]+:).*")


def _reduce(path: str, content: bytes) -> bytes:
    """Drops what changes all the time, and serial numbers."""
    name = path.rpartition("/")[2]
    if name == "meminfo":
        lines = [line for line in content.splitlines(keepends=True) if _MEMINFO.match(line)]
        return b"".join(lines)
    if path == "proc/cpuinfo":
        return b"".join(map(_reduce_cpuinfo, content.splitlines(keepends=True)))
    return content


def _reduce_cpuinfo(line: bytes) -> bytes:
    if found := _S390.match(line):
        return b"%s\n" % found[1]
    key, colon, _ = line.partition(b":")
    return line if not colon or _CPUINFO.fullmatch(key.strip()) else b""


_FILES = ("config", "config-dir")


def known_flags(command_line: Iterable[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Returns the flags of a command line that kubelets have, and the names of all others.

    Only flags that set fields of the resource managers, or name files that do, keep their values:
    of the others, it only matters whether a release has them.
    """
    names = frozenset().union(*flags.table().values())
    found: list[str] = []
    others: set[str] = set()
    arguments = iter(command_line)
    for argument in arguments:
        name, equals, value = argument.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not argument.startswith("-") or name not in names:
            others.add(f"--{name}" if argument.startswith("--") else "positional arguments")
            continue
        if not equals:
            value = "true" if name in flags.SWITCHES else next(arguments, "")
        is_read = flags.field(name) or name in _FILES
        found.append(f"--{name}={value if is_read else ''}")
    return tuple(found), frozenset(others)
