"""Boots kernels in qemu and brings back the files that they write.

A guest runs only `guest.sh`, which prints an archive of its `/sys` and `/proc` on the console.
"""

from __future__ import annotations

import base64
import gzip
import shlex
import shutil
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import yaml

_SHAPES = Path(__file__).with_name("shapes.yaml")
_INIT = Path(__file__).with_name("guest.sh")

_TIMEOUT = 900
"""Seconds that a guest may take; without hardware acceleration, most take 40."""

_PROGRAMS = (
    *("sh", "mount", "cat", "cp", "echo", "tr", "mkdir"),
    *("find", "rm", "tar", "gzip", "base64", "poweroff"),
)
"""The programs that `guest.sh` calls."""


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A guest, as `shapes.yaml` describes it."""

    name: str
    architecture: Literal["x86_64", "arm64", "i386", "arm"] = "x86_64"
    kernel: str = "6.1"
    cpus: str
    model: str = ""
    memory: str = "1G"
    nodes: tuple[str, ...] = ()
    distances: Mapping[str, int] = {}
    qemu: str = ""
    boot: str = ""


class _Architecture(NamedTuple):
    """How the guests of an architecture are booted.

    Attributes:
        program: qemu's program.
        package: the Debian package that contains the program.
        machine: qemu's ``-machine``.
        model: the ``-cpu`` of shapes that have none.
        console: the kernel's name for the console.
        debian: Debian's name for the architecture.
    """

    program: str
    package: str
    machine: str
    model: str
    console: str
    debian: str


_ARCHITECTURES = {
    "x86_64": _Architecture(
        "qemu-system-x86_64", "qemu-system-x86", "q35", "qemu64", "ttyS0", "amd64"
    ),
    "arm64": _Architecture(
        *("qemu-system-aarch64", "qemu-system-arm", "virt,gic-version=3"),
        *("cortex-a57", "ttyAMA0", "arm64"),
    ),
    "i386": _Architecture(
        "qemu-system-i386", "qemu-system-x86", "q35", "Skylake-Server", "ttyS0", "i386"
    ),
    "arm": _Architecture(
        *("qemu-system-arm", "qemu-system-arm", "virt,highmem=off"),
        *("cortex-a15", "ttyAMA0", "armhf"),
    ),
}


class MissingError(Exception):
    """Something that a boot needs is missing; the message names it."""


class BootError(Exception):
    """A guest did not send its files; the message has the last lines of its console."""


def shapes() -> tuple[Shape, ...]:
    text = _SHAPES.read_text(encoding="utf-8")
    return tuple(msgspec.convert(yaml.safe_load(text), list[Shape]))


def archive_of(shape: Shape, folder: Path) -> Path:
    """Boots a guest, and returns the archive (`.tar.gz`) of its files.

    The archive of an earlier boot is used if the kernel, the shape and `guest.sh` are the same.

    Args:
        shape: the guest.
        folder: contains Debian's kernels and static busyboxes, unpacked in `amd64` and `arm64`;
            the archives are written to `trees`.

    Raises:
        MissingError: qemu, a kernel or a busybox is missing.
        BootError: the guest did not send its files.
    """
    kernel = _kernel(shape, folder)
    basis = b"".join((kernel.name.encode(), msgspec.json.encode(shape), _INIT.read_bytes()))
    archive = folder / "trees" / f"{shape.name}-{zlib.crc32(basis):08x}.tar.gz"
    if not archive.exists():
        archive.parent.mkdir(exist_ok=True)
        archive.write_bytes(_boot(shape, kernel, folder))
    return archive


def _kernel(shape: Shape, folder: Path) -> Path:
    debian = _ARCHITECTURES[shape.architecture].debian
    kernels = sorted(folder.glob(f"{debian}/boot/vmlinuz-{shape.kernel}.*"))
    if not kernels:
        raise MissingError(f"no kernel {shape.kernel} in {folder / debian / 'boot'}")
    return kernels[-1]


def _boot(shape: Shape, kernel: Path, folder: Path) -> bytes:
    command = _command(shape, kernel, folder)
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise BootError(f"{shape.name} took more than {_TIMEOUT} seconds") from None
    _, begin, rest = done.stdout.partition(b"BEGIN-TREE")
    encoded, end, _ = rest.partition(b"END-TREE")
    if not (begin and end):
        lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()[-8:]
        raise BootError("\n".join([f"{shape.name} sent no files:", *lines]))
    return base64.b64decode(encoded)


def _command(shape: Shape, kernel: Path, folder: Path) -> list[str]:
    architecture = _ARCHITECTURES[shape.architecture]
    if shutil.which(architecture.program) is None:
        raise MissingError(f"no {architecture.program}: install {architecture.package}")
    options = f"console={architecture.console} quiet panic=-1 {shape.boot}"
    return [
        architecture.program,
        *("-machine", architecture.machine, "-cpu", shape.model or architecture.model),
        *("-smp", shape.cpus, *_memory(shape), *shlex.split(shape.qemu)),
        *("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"),
        *("-kernel", str(kernel), "-initrd", str(_initramfs(architecture, folder))),
        *("-append", options),
    ]


def _memory(shape: Shape) -> Iterator[str]:
    """Yields qemu's arguments for the memory, the nodes and their distances."""
    if not shape.nodes:
        yield from ("-m", shape.memory)
        return
    total = 0
    for number, node in enumerate(shape.nodes):
        cpus, memory, *more = node.split()
        parts = ["node", f"nodeid={number}", *more]
        if cpus != "none":
            parts.append(f"cpus={cpus}")
        if memory != "none":
            total += int(memory[:-1]) * {"M": 1, "G": 1024}[memory[-1]]
            yield from ("-object", f"memory-backend-ram,id=m{number},size={memory}")
            parts.append(f"memdev=m{number}")
        yield from ("-numa", ",".join(parts))
    yield from ("-m", f"{total}M")
    for pair, distance in shape.distances.items():
        source, target = pair.split("-")
        yield from ("-numa", f"dist,src={source},dst={target},val={distance}")


def _initramfs(architecture: _Architecture, folder: Path) -> Path:
    """Writes the guests' first file system, which holds busybox and `guest.sh`."""
    busybox = folder / architecture.debian / "bin/busybox"
    if not busybox.exists():
        raise MissingError(f"no {busybox}")
    directory, program, link = 0o40755, 0o100755, 0o120777
    entries = [(name, directory, b"") for name in ("bin", "dev", "proc", "sys", "tree")]
    entries += [("bin/busybox", program, busybox.read_bytes())]
    entries += [(f"bin/{name}", link, b"busybox") for name in _PROGRAMS]
    entries += [("init", program, _INIT.read_bytes()), ("TRAILER!!!", 0, b"")]
    target = folder / architecture.debian / "initramfs.gz"
    target.write_bytes(gzip.compress(b"".join(_cpio(*entry) for entry in entries), 1))
    return target


def _cpio(name: str, mode: int, content: bytes) -> bytes:
    """Formats an entry of an archive in cpio's `newc` format, which the kernel unpacks."""
    path = name.encode() + b"\0"
    fields = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return b"".join(part + bytes(-len(part) % 4) for part in (header, content))
