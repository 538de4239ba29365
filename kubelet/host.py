"""What running kubelets on simulated machines needs of the host, and how to provide it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof.protocol.diagnosis import HostCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARIES = {"aiohttp": "aiohttp", "grpc": "grpcio"}
"""By the name to import: the name to install."""

_OLDEST_KERNEL = (5, 12)
_CGROUPS = Path("/sys/fs/cgroup")
_SWITCHES = {
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "user.max_user_namespaces": ("0", "1000"),
}
"""By name: the value with which a setting forbids users to create namespaces, and another."""

_PROBE = (sys.executable, "-P", "-m", "numaproof.kubelet.namespaces")


def checks() -> list[HostCheck]:
    """What was found of each thing that is needed."""
    return [_libraries(), _kernel(), _namespaces(), _cgroups()]


def description() -> str:
    """The parts of the host on which a kubelet's answers may depend."""
    return f"{_kernel().state}, cgroups {_cgroups().state}"


def problems() -> Iterator[str]:
    """What is missing, each with its fix."""
    return (f"{one.state}; {one.fix}" for one in checks() if one.fix)


def _libraries() -> HostCheck:
    missing = [name for module, name in _LIBRARIES.items() if find_spec(module) is None]
    if missing:
        return HostCheck(
            "Python packages",
            f"{' and '.join(missing)} missing",
            "install the extra: pip install 'numaproof[kubelet]'",
        )
    return HostCheck("Python packages", " and ".join(_LIBRARIES.values()))


def _kernel() -> HostCheck:
    found = f"{platform.system()} {platform.release()}"
    version = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdigit())
    if platform.system() != "Linux" or version < _OLDEST_KERNEL:
        return HostCheck("kernel", found, "use Linux 5.12 or later")
    return HostCheck("kernel", found)


def _namespaces() -> HostCheck:
    is_root = os.geteuid() == 0
    tried = subprocess.run(_PROBE, capture_output=True, text=True, check=False)  # noqa: S603
    if tried.returncode == 0:
        return HostCheck("namespaces", "as root" if is_root else "user namespaces")
    for name, (forbidding, permitting) in () if is_root else _SWITCHES.items():
        try:
            value = Path("/proc/sys", *name.split(".")).read_text().strip()
        except OSError:
            continue
        if value == forbidding:
            return HostCheck(
                "namespaces",
                f"not permitted without root ({name} is {value})",
                f"run numaproof with sudo, or permit them: sudo sysctl {name}={permitting}",
            )
    what, _, fix = (tried.stderr.strip().splitlines() or [""])[-1].partition("; ")
    return HostCheck("namespaces", what, fix)


def _cgroups() -> HostCheck:
    if (_CGROUPS / "cgroup.controllers").exists():
        return HostCheck("cgroups", "version 2")
    if _CGROUPS.is_dir() and any(_CGROUPS.iterdir()):
        return HostCheck("cgroups", "version 1")
    return HostCheck(
        "cgroups", f"{_CGROUPS} is empty", "mount them: sudo mount -t cgroup2 none /sys/fs/cgroup"
    )
