"""Runs a program apart from the host: in mount, network and process namespaces of its own.

A kubelet sees a read-only `/`, the simulated machine in the place of `/sys` (but for cgroups) and
over `cpuinfo` and `meminfo` of `/proc`. It can write only to the run's folder, which is in memory,
and to its state directory. When the first process of the namespaces ends, however it ends, the
kernel kills all others and removes the mounts with what is in them.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import signal
import socket
import stat
import struct
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_SYS_MOUNT_SETATTR = 442
_AT_RECURSIVE, _AT_FDCWD = 0x8000, -100
_ATTR_RDONLY = 1
_PR_SET_PDEATHSIG = 1
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_SIGNALLED = 128
_SCRATCH = Path("/run")
"""Where every Linux has a folder, over which the run's own is mounted."""

_CLOCK = re.compile(rb"(?:cpu MHz|CPU MHz|clock)\s*:\s*[0-9]+\.[0-9]+")

_libc = ctypes.CDLL(None, use_errno=True)


class NamespaceError(Exception):
    """The host does not permit what a run needs; the message says how to permit it."""


def _check(result: int, what: str, fix: str = "") -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise NamespaceError(f"{what}: {os.strerror(number)}" + (f"; {fix}" if fix else ""))


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mounts something, as the system call does."""
    made = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None
    )
    _check(made, f"mount {source} on {target}")


def bind(source: Path, target: Path) -> None:
    """Lets a file or folder be seen at another place as well."""
    mount(str(source), str(target), flags=_MS_BIND | _MS_REC)


def hide(folder: Path, *exceptions: Path) -> None:
    """Puts an empty folder in memory over a folder, but for what must stay visible."""
    inside = [
        (path, os.open(path, os.O_PATH))
        for path in {one.resolve() for one in exceptions}
        if path.exists() and folder in path.parents
    ]
    mount("tmpfs", str(folder), "tmpfs", data="mode=755")
    for path, number in inside:
        is_folder = stat.S_ISDIR(os.fstat(number).st_mode)
        (path if is_folder else path.parent).mkdir(parents=True, exist_ok=True)
        if not is_folder:
            path.touch()
        bind(Path(f"/proc/self/fd/{number}"), path)
        os.close(number)


def run(work: Callable[[Path], None], *exceptions: Path) -> int:
    """Does something in namespaces of its own, as their first process.

    Args:
        work: what to do, given a folder in memory that disappears with the namespaces.
        exceptions: what stays visible even if it is where that folder is.

    Returns:
        The exit code of the first process. All other processes have ended with it.

    Raises:
        NamespaceError: the host does not permit namespaces.
    """
    user = os.geteuid(), os.getegid()
    flags = _NEWNS | _NEWPID | _NEWNET | (0 if user[0] == 0 else _NEWUSER)
    fix = "give it CAP_SYS_ADMIN; for a container, add --privileged"
    if user[0] != 0:
        fix = "run it as root, or permit user namespaces"
    _check(_libc.unshare(flags), "cannot create namespaces", fix)
    if user[0] != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user[0]} 1")
        Path("/proc/self/gid_map").write_text(f"0 {user[1]} 1")
    child = os.fork()
    if not child:
        _be_first(work, exceptions, fix)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(child, number))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNALLED - code


def _be_first(work: Callable[[Path], None], exceptions: Iterable[Path], fix: str) -> NoReturn:
    """Works as the first process of the namespaces; the kernel kills it with its parent.

    If the host doesn't permit that, `fix` says what to do.
    """
    code = 1
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: os._exit(_SIGNALLED + number))
        try:
            _prepare(*exceptions)
        except (NamespaceError, OSError) as error:
            sys.stderr.write(f"cannot use namespaces: {error}; {fix}\n")
        else:
            work(_SCRATCH)
            code = 0
    except BaseException:  # noqa: BLE001 - the process ends here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _prepare(*exceptions: Path) -> None:
    """Gives the namespaces processes, a folder in memory and a network of their own."""
    mount("none", "/", flags=_MS_REC | _MS_PRIVATE)
    mount("proc", "/proc", "proc")
    hide(_SCRATCH, *exceptions)
    _raise_loopback()


def own_mounts() -> None:
    """Gives this process mounts of its own, which nobody else sees."""
    _check(_libc.unshare(_NEWNS), "cannot create a mount namespace")
    mount("none", "/", flags=_MS_REC | _MS_PRIVATE)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def writable(source: Path, target: Path) -> None:
    """Lets a folder be seen at another place, where it can be written."""
    bind(source, target)
    mount("none", str(target), flags=_MS_REMOUNT | _MS_BIND)


def make_read_only() -> None:
    """Makes everything that is mounted read-only; what is mounted later is not."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_RDONLY, 0, 0, 0)
    made = _libc.syscall(
        _SYS_MOUNT_SETATTR,
        _AT_FDCWD,
        b"/",
        _AT_RECURSIVE,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )
    _check(made, "cannot make / read-only", "Linux 5.12 is needed")


def show_machine(root: Path, scratch: Path) -> None:
    """Puts the `sys` and `proc` of a tree in the place of the host's.

    Args:
        root: the tree.
        scratch: a folder for files that the tree lacks.
    """
    cgroups = os.open("/sys/fs/cgroup", os.O_PATH)
    mount("proc", "/proc", "proc")
    sysfs = Path("/sys")
    mount("tmpfs", "/sys", "tmpfs", data="mode=755")
    for source in (root / "sys").iterdir():
        if source.name != "fs":
            (sysfs / source.name).mkdir()
            bind(source, sysfs / source.name)
    (sysfs / "fs/cgroup").mkdir(parents=True)
    bind(Path(f"/proc/self/fd/{cgroups}"), sysfs / "fs/cgroup")
    os.close(cgroups)
    for source in (root / "proc").iterdir():
        bind(_with_clock(source, scratch), Path("/proc") / source.name)


def _with_clock(source: Path, scratch: Path) -> Path:
    """A `cpuinfo` with a clock frequency.

    A kubelet for x86-64 refuses to start without, but machines of other architectures show none.
    """
    if source.name != "cpuinfo" or _CLOCK.search(text := source.read_bytes()):
        return source
    copy = scratch / "cpuinfo"
    copy.write_bytes(text + b"\ncpu MHz\t\t: 1000.000\n")
    return copy


def main() -> None:
    """Tries whether the host permits namespaces; ends with the reason if it doesn't."""
    try:
        sys.exit(run(lambda _: None))
    except NamespaceError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
