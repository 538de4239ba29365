"""Which kubelet a file is: whether it runs here, its version and its release."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = re.compile(r"Kubernetes v((\d+)\.(\d+)\.\S*)\s*")
_TIMEOUT = 60.0
_MACHINES = {
    0x03: "i386",
    0x28: "arm",
    0x3E: "x86_64",
    0xB7: "aarch64",
    0x15: "ppc64le",
    0x16: "s390x",
}
"""By the number in an ELF file's header: the architecture, as `uname -m` names it."""


class BinaryError(Exception):
    """A file can't be checked as a kubelet; the message says why and what to do."""


@dataclass(frozen=True)
class Kubelet:
    """A kubelet binary.

    Attributes:
        path: the file.
        version: what it reports, such as `1.34.1+k3s1`.
        release: the minor release that it is checked as, such as `1.34`.
    """

    path: Path
    version: str
    release: str

    @property
    def minor(self) -> tuple[int, int]:
        """The minor release as numbers, such as `(1, 34)`."""
        major, minor = self.release.split(".")
        return int(major), int(minor)


def identify(path: Path, release: str | None = None) -> Kubelet:
    """Asks a binary for its version.

    Args:
        path: the file.
        release: the release to check it as; None for its own.

    Raises:
        BinaryError: it doesn't run here, is no kubelet, or is of an unknown release.
    """
    shown = _run(path)
    match = _VERSION.fullmatch(shown)
    if match is None:
        what = (shown.splitlines() or [""])[0][:60]
        raise BinaryError(
            f"{path}: not a kubelet: --version printed {what!r} (expected Kubernetes v1.N.P)"
        )
    own = f"{match[2]}.{match[3]}"
    if release is None and own not in RELEASES:
        nearest = min(RELEASES, key=lambda release: abs(int(release.split(".")[1]) - int(match[3])))
        raise BinaryError(
            f"{path}: Kubernetes {own} is not supported (expected {RELEASES[0]} to {RELEASES[-1]});"
            f" to check it as the nearest release, add --kubernetes {nearest}"
        )
    return Kubelet(path, match[1], release or own)


def _run(path: Path) -> str:
    try:
        return subprocess.run(  # noqa: S603 - the user's own kubelet
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT,
        ).stdout
    except PermissionError:
        raise BinaryError(f"{path}: not executable; run chmod +x {path}") from None
    except subprocess.TimeoutExpired:
        raise BinaryError(
            f"{path}: not a kubelet: --version did not exit within {_TIMEOUT:.0f} s"
        ) from None
    except OSError as error:
        raise BinaryError(f"{path}: {_why_not(path) or error.strerror}") from None


def _why_not(path: Path) -> str:
    """Why the kernel doesn't run a file; empty if the file doesn't say."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        header = file.read(20)
    if header[:4] != b"\x7fELF":
        return "not a kubelet: not a program for Linux"
    number = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    built, here = _MACHINES.get(number, f"machine {number}"), platform.machine()
    if built != here:
        return f"built for {built}, but this machine is {here}; get the kubelet for {here}"
    return ""
