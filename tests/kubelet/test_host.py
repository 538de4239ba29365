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


def test_root_may_create_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(host, "_SWITCHES", {"kernel.ostype": "no"})
    assert problem("namespaces") == "as root; "


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ({}, "user namespaces; "),
        ({"kernel.ostype": "Linux", "kernel.no_such": "1"}, "user namespaces; "),
        (
            {"kernel.ostype": "1"},
            (
                "not permitted without root (kernel.ostype is Linux); "
                "run numaproof with sudo, or permit them: sudo sysctl kernel.ostype=1"
            ),
        ),
    ],
)
def test_users_need_settings_that_permit_namespaces(
    switches: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
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
