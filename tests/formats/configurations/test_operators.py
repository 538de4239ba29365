"""Files that operators have are read, or refused by their right name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from builders.checkout import SHARED
from numaproof.formats import configurations
from numaproof.inputs.documents import DocumentError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = SHARED / "operators"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no files in {FOLDER}; NUMAPROOF_SHARED names another folder"
)

REFUSED = {
    "i04-*/2-after-*": "an OpenShift KubeletConfig with another kind",
    "i04-*/rke2-*": "a k3s or RKE2 configuration with another kind",
    "i04-*/talos-*": "a Talos machine configuration with another kind",
    "i20-*/c05_*": "a MachineConfig without a kubelet configuration.*PerformanceProfile",
    "i20-*/c09_*": "a resource-topology-exporter configuration",
}
READ = {
    "i04-*/1-*": ("topologyManagerPolicy", "single-numa-node"),
    "i04-*/3-*": ("topologyManagerPolicy", "single-numa-node"),
    "i05-*/kubelet*": ("reservedSystemCPUs", "0"),
    "i06-*/*": ("memoryManagerPolicy", "Static"),
    "i18-*/c236*": ("reservedSystemCPUs", "9-15"),
    "i18-*/pp236*": ("reservedSystemCPUs", "9-15"),
    "i20-*/c01_*": ("maxPods", 58),
    "i20-*/c03_*": ("kubeReservedCgroup", ""),
    "i20-*/c07_*": ("topologyManagerScope", "container"),
    "i20-*/c13_*": ("--cpu-manager-policy", "static"),
    "i20-*/c15_*": ("reservedSystemCPUs", "0-1"),
    "i20-*/c17_*": ("kubeReserved", {"cpu": "1", "memory": "2Gi"}),
    "i20-*/c19_*": ("cpuManagerPolicy", "static"),
    "i20-*/c21_*": ("reservedSystemCPUs", "0-1"),
    "i20-*/c23_*": ("reservedSystemCPUs", "0-3"),
    "i20-*/c25_*": ("--eviction-hard", ""),
    "i20-*/c29_*": ("reservedSystemCPUs", "0-3,64-67"),
    "i20-*/c31_*": ("reservedSystemCPUs", "0-1"),
}


def the_file(pattern: str) -> Path:
    (file,) = FOLDER.glob(pattern)
    return file


@pytest.mark.parametrize(("pattern", "message"), REFUSED.items())
def test_a_file_is_refused_by_its_name(pattern: str, message: str) -> None:
    file = the_file(pattern)
    with pytest.raises(DocumentError) as raised:
        configurations.read(file.read_text("utf-8"), file.name)
    assert re.search(message, str(raised.value))
    assert "set apiVersion" not in str(raised.value)


@pytest.mark.parametrize(("pattern", "setting"), READ.items())
def test_a_file_is_read(pattern: str, setting: tuple[str, Any]) -> None:
    file = the_file(pattern)
    (first, *_) = configurations.read(file.read_text("utf-8"), file.name)
    found = configurations.combine([first])
    flags = {f"--{flag.name}": flag.value for flag in found.flags}
    assert (found.document.data | flags)[setting[0]] == setting[1]


def test_all_files_of_configurations_are_tested() -> None:
    tested = {the_file(pattern) for pattern in (*REFUSED, *READ)}
    folders = ("i04-*", "i18-*", "i20-*")
    others = {file for folder in folders for file in FOLDER.glob(f"{folder}/*")} - tested
    assert {file.name for file in others} <= {"machine.yaml"}


def test_an_openshift_configuration_is_what_its_kubelet_gets() -> None:
    wrapped, plain = (
        configurations.read(the_file(pattern).read_text("utf-8"), "file")[0].document.data
        for pattern in ("i04-*/1-*", "i04-*/3-*")
    )
    assert wrapped == {name: plain[name] for name in plain if name not in ("apiVersion", "kind")}
