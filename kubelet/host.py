"""What a host lacks for running kubelets on simulated machines, and how to fix it."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARIES = ("aiohttp", "grpc")
_OLDEST_KERNEL = (5, 12)
_SWITCHES = (
    Path("/proc/sys/kernel/unprivileged_userns_clone"),
    Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
)


def problems() -> list[str]:
    """The problems, each with its fix; empty if kubelets can run here."""
    return [*_libraries(), *_kernel(), *_permissions(), *_files()]


def _libraries() -> Iterator[str]:
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        yield (
            f"the Python package {' and '.join(missing)} is missing; install the extra:"
            " pip install 'numaproof[kubelet]'"
        )


def _kernel() -> Iterator[str]:
    if platform.system() != "Linux":
        yield f"kubelets run on Linux only, and this is {platform.system()}"
        return
    version = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdigit())
    if version < _OLDEST_KERNEL:
        yield (
            f"Linux {platform.release()} can't make a whole tree of mounts read-only; Linux 5.12"
            " or later is needed"
        )


def _permissions() -> Iterator[str]:
    if os.geteuid() == 0:
        return
    clone, restricted = (_number(one) for one in _SWITCHES)
    if clone == 0:
        yield (
            "without root, user namespaces are needed; run it with sudo, or allow them:"
            " sysctl kernel.unprivileged_userns_clone=1"
        )
    elif restricted == 1:
        yield (
            "without root, user namespaces are needed, and AppArmor restricts them; run it with"
            " sudo, or allow them: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )


def _number(switch: Path) -> int | None:
    try:
        return int(switch.read_text())
    except (OSError, ValueError):
        return None


def _files() -> Iterator[str]:
    if not Path("/sys/fs/cgroup").is_dir():
        yield "there is no /sys/fs/cgroup; mount cgroups: mount -t cgroup2 none /sys/fs/cgroup"
