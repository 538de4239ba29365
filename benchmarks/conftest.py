"""Fixtures of the benchmarks: a kubelet with everything enabled, on a bundled machine.

Ratios that benchmarks compute themselves are listed below pytest's table, one per line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from numaproof import fakesys
from numaproof.protocol import messages
from numaproof.reference.cadvisor.discovery import discover
from numaproof.reference.topology import options
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo

    NodeStart = Callable[..., messages.StartArgs]

_RATIOS = pytest.StashKey[list[str]]()


def machine(name: str) -> MachineInfo:
    """A bundled machine as discovered."""
    return discover(fakesys.TreePath.root(fakesys.build_tree(fakesys.load_profile(name))))


def config(nodes: int) -> Mapping[str, Any]:
    """A kubelet configuration with everything enabled, for a machine with `nodes` NUMA nodes."""
    made: dict[str, Any] = {
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "topologyManagerPolicy": "best-effort",
        "kubeReserved": {"cpu": "1", "memory": "924Mi"},
        "evictionHard": {"memory.available": "100Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
    }
    if nodes > options.DEFAULT_MAX_ALLOWABLE_NUMA_NODES:
        made["topologyManagerPolicyOptions"] = {"max-allowable-numa-nodes": "64"}
    return made


@pytest.fixture
def report_ratio(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Adds a line to the ratios."""
    return request.config.stash.setdefault(_RATIOS, []).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Shows the ratios."""
    if lines := config.stash.get(_RATIOS, []):
        terminalreporter.section("ratios")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A state directory in memory."""
    with scratch_folder() as made:
        yield made


@pytest.fixture
def node_start(folder: Path) -> NodeStart:
    """Returns the arguments of a start on the bundled machine `name`, with `pods` on the node."""

    def make(name: str, pods: tuple[messages.Pod, ...] = ()) -> messages.StartArgs:
        found = machine(name)
        return messages.StartArgs(
            config(len(found.topology or ())), str(folder), machine=found, pods=pods
        )

    return make
