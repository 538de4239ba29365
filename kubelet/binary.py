"""Which kubelet a file is: whether it runs here, its version and its release."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof.conformance.execution.programs.process import ending
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = re.compile(r"Kubernetes v((\d+)\.(\d+)\.\S*)\s*")
_VENDOR = re.compile(r"[-+](?!alpha|beta|rc|dirty)([a-z][a-z0-9]*?)(?:r?\d+)?(?:[-+.]|$)")

_HEADER = 256
"""The part of a file by which the kernel chooses how to run it."""

_FIELD = re.compile(r'(\w+):"([^"]*)"')
_UNKNOWN = ("", "1970-01-01T00:00:00Z")
"""What a field of a build is if nobody set it; a commit is then a placeholder with a dollar."""

_TIMEOUT, _TIMEOUT_OF_RAW = 60.0, 10.0
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
    def vendor(self) -> str:
        """Who built it, such as `k3s`, by its version; empty for a build of Kubernetes itself."""
        match = _VENDOR.search(self.version)
        return match[1] if match else ""

    @property
    def has_own_release(self) -> bool:
        """Whether it is checked as the release that it reports."""
        return self.version.startswith(f"{self.release}.")

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
    shown = _run(path, "--version", _TIMEOUT)
    match = _VERSION.fullmatch(shown.stdout)
    if match is None:
        what = (shown.stdout.splitlines() or [""])[0][:60]
        said = (shown.stderr.strip().splitlines() or [""])[-1][:120]
        failed = f" and ended with {ending(shown.returncode)}" if shown.returncode else ""
        raise BinaryError(
            f"{path}: not a kubelet: --version printed {what!r}{failed}"
            f" (expected Kubernetes v1.N.P)" + (f": {said}" if failed and said else "")
        )
    own = f"{match[2]}.{match[3]}"
    if release is None and own not in RELEASES:
        nearest = min(RELEASES, key=lambda release: abs(int(release.split(".")[1]) - int(match[3])))
        raise BinaryError(
            f"{path}: Kubernetes {own} is not supported (expected {RELEASES[0]} to {RELEASES[-1]});"
            f" to check it as the nearest release, add --kubernetes {nearest}"
        )
    return Kubelet(path, match[1], release or own)


def build(kubelet: Kubelet) -> dict[str, str]:
    """Identifies a kubelet's build, as far as the binary knows it, and the file itself."""
    try:
        raw = _run(kubelet.path, "--version=raw", _TIMEOUT_OF_RAW).stdout
    except BinaryError:
        raw = ""  # a script in the place of a kubelet may know only one option
    fields = dict(_FIELD.findall(raw))
    known = {
        name: value
        for name, field in {"commit": "GitCommit", "built": "BuildDate", "Go": "GoVersion"}.items()
        if (value := fields.get(field, "").removeprefix("go")) not in _UNKNOWN and "$" not in value
    }
    if "commit" in known and fields.get("GitTreeState") == "dirty":
        known["commit"] += " with changes"
    with kubelet.path.open("rb") as file:
        return {**known, "SHA-256": hashlib.file_digest(file, "sha256").hexdigest()}


def _run(path: Path, option: str, timeout: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the user's own kubelet
            [path, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout,
        )
    except PermissionError:
        raise BinaryError(f"{path}: not executable; run chmod +x {path}") from None
    except subprocess.TimeoutExpired:
        raise BinaryError(
            f"{path}: not a kubelet: {option} did not exit within {timeout:.0f} s"
        ) from None
    except OSError as error:
        missing = "its dynamic loader is missing; get a kubelet for this distribution"
        other = missing if isinstance(error, FileNotFoundError) and path.exists() else None
        raise BinaryError(f"{path}: {_why_not(path) or other or error.strerror}") from None


def _why_not(path: Path) -> str:
    """Why the kernel doesn't run a file; empty if the file doesn't say."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        header = file.read(_HEADER)
    if header[:2] == b"#!":
        interpreter = header[2:].split(b"\n")[0].decode(errors="replace").strip()
        return f"its interpreter {interpreter} is missing"
    if header[:4] != b"\x7fELF":
        return "not a kubelet: not a program for Linux"
    number = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    built, here = _MACHINES.get(number, f"machine {number}"), platform.machine()
    if built != here:
        return f"built for {built}, but this machine is {here}; get the kubelet for {here}"
    return ""
