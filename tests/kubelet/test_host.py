"""What a host lacks is found, with the fix."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import pytest

from numaproof.kubelet import host
from numaproof.protocol.diagnosis import HostCheck

if TYPE_CHECKING:
    from pathlib import Path


def problem(name: str) -> str:
    """The found problem and its fix, of the check with a name."""
    (check,) = (one for one in host.checks() if one.name == name)
    text = f"{check.state}; {check.fix}"
    assert list(host.problems()).count(text) == bool(check.fix)
    return text


def test_this_host_is_described() -> None:
    found = host.checks()
    names = [one.name for one in found]
    assert names == ["Python packages", "kernel", "namespaces", "cgroups"]
    assert found[0] == HostCheck("Python packages", "aiohttp and grpcio")
    assert found[1].state == f"Linux {platform.release()}"
    assert all(one.state for one in found)


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_LIBRARIES", {"nosuch": "no-such", "os": "os", "neither": "nor"})
    assert problem("Python packages") == (
        "no-such and nor missing; install the extra: pip install 'numaproof[kubelet]'"
    )


@pytest.mark.parametrize(
    ("system", "release", "fix"),
    [
        ("Linux", "5.12.0", ""),
        ("Linux", "6.8.0-45-generic", ""),
        ("Linux", "10.0", ""),
        ("Linux", "5.4.0-150-generic", "use Linux 5.12 or later"),
        ("Darwin", "25.1.0", "use Linux 5.12 or later"),
    ],
)
def test_a_kernel_must_be_recent(
    system: str, release: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "release", lambda: release)
    assert problem("kernel") == f"{system} {release}; {fix}"


@pytest.mark.parametrize(("user", "found"), [(0, "as root; "), (1000, "user namespaces; ")])
def test_namespaces_are_tried(user: int, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_PROBE", ("true",))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(host, "_SWITCHES", {"kernel.ostype": ("Linux", "no")})
    assert problem("namespaces") == found


SWITCHED = (
    "not permitted without root (kernel.ostype is Linux); "
    "run numaproof with sudo, or permit them: sudo sysctl kernel.ostype=1"
)


@pytest.mark.parametrize(
    ("user", "switches", "expected"),
    [
        (0, {"kernel.ostype": ("Linux", "1")}, "no namespaces; do this"),
        (1000, {"kernel.ostype": ("Linux", "1")}, SWITCHED),
        (1000, {"kernel.ostype": ("0", "1"), "kernel.no_such": ("", "")}, "no namespaces; do this"),
    ],
)
def test_the_setting_that_forbids_namespaces_is_named(
    user: int,
    switches: dict[str, tuple[str, str]],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse = "echo first >&2; echo 'no namespaces; do this' >&2; exit 1"
    monkeypatch.setattr(host, "_PROBE", ("sh", "-c", refuse))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(host, "_SWITCHES", switches)
    assert problem("namespaces") == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("cgroup.controllers", "version 2; "),
        ("memory", "version 1; "),
        (None, "{} is empty; mount them: sudo mount -t cgroup2 none /sys/fs/cgroup"),
    ],
)
def test_cgroups_must_be_mounted(
    entry: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cgroup"
    monkeypatch.setattr(host, "_CGROUPS", folder)
    if entry:
        folder.mkdir()
        (folder / entry).touch()
    assert problem("cgroups") == expected.format(folder)
