"""Nodes that differ where it doesn't matter admit the same pods; programs that don't are found."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest

from builders.machines import regular
from builders.targets import case_of, target_of
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REFUSED = messages.AdmissionRefused("TopologyAffinityError", "no")


class Wrong:
    """A reference that refuses some pods, given the start, the pods so far, and the next pod."""

    def __init__(
        self, refuses: Callable[[messages.StartArgs, list[int], int], bool] | None = None
    ) -> None:
        self._reference = Reference(follows_docs=True)
        self._refuses = refuses
        self._start: messages.StartArgs
        self._sizes: list[int] = []

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Answers like the reference, except for the pods to refuse."""
        if isinstance(args, messages.StartArgs):
            self._start, self._sizes = args, []
        if isinstance(args, messages.AdmitArgs) and self._refuses:
            (container,) = args.pod["spec"]["containers"]
            size = int(container["resources"]["limits"]["cpu"])
            if self._refuses(self._start, self._sizes, size):
                return REFUSED
            self._sizes.append(size)
        return self._reference.call(operation, args)


def expects_dense_ids(start: messages.StartArgs, _sizes: list[int], _size: int) -> bool:
    assert start.machine
    nodes = start.machine.topology or ()
    return any(node.node_id >= len(nodes) for node in nodes)


def expects_cpus_everywhere(start: messages.StartArgs, _sizes: list[int], _size: int) -> bool:
    assert start.machine
    return not all(node.cores for node in start.machine.topology or ())


def uses_reserved_cpus(start: messages.StartArgs, _sizes: list[int], size: int) -> bool:
    return size > int(start.config["kubeReserved"]["cpu"])


def expects_smaller_pods_last(_start: messages.StartArgs, sizes: list[int], size: int) -> bool:
    return any(size > one for one in sizes)


CASE = """
config: {{cpuManagerPolicy: static, kubeReserved: {{cpu: "2"}}, {config}}}
steps:
- start: {{}}
  expect: anything
- admit: {{pod: a, containers: {{app: {{limits: {{cpu: "2", memory: 64Mi}}}}}}}}
  expect: anything
- admit: {{pod: b, containers: {{app: {{limits: {{cpu: "1", memory: {memory}Mi}}}}}}}}
  expect: anything
"""


def broken(
    refuses: Callable[[messages.StartArgs, list[int], int], bool] | None,
    scratch: Path,
    config: str = "",
) -> set[str]:
    """Returns the invariants that a program breaks at the lowest level, in several runs.

    Each run is compared with a single related node, so the second pod varies.
    """
    implementation = InProcess(partial(Wrong, refuses))
    target = target_of(implementation, level="invariants", oracle=True, baseline="documented")
    found: set[str] = set()
    for memory in range(64, 80):
        machine = regular(nodes=2)
        case = case_of(CASE.format(config=config, memory=memory))
        case = msgspec.structs.replace(case, machine=machine)
        run = Run(target, case, machine, None, scratch / str(memory))
        run.play()
        found |= {one.invariant for one in run.player.violations}
    return found


@pytest.mark.parametrize(
    ("refuses", "invariant"),
    [
        (expects_dense_ids, "relabelling-changes-nothing"),
        (expects_cpus_everywhere, "unused-node-changes-nothing"),
        (uses_reserved_cpus, "reservation-admits-no-more"),
        (expects_smaller_pods_last, "pods-commute"),
    ],
)
def test_only_one_relation_shows_a_bug(
    refuses: Callable[[messages.StartArgs, list[int], int], bool], invariant: str, tmp_path: Path
) -> None:
    assert broken(refuses, tmp_path) == {invariant}


@pytest.mark.parametrize(
    "config",
    [
        "topologyManagerPolicy: restricted",
        "topologyManagerPolicy: best-effort",
        "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}",
    ],
)
def test_a_correct_program_breaks_no_relation(config: str, tmp_path: Path) -> None:
    assert broken(None, tmp_path, config) == set()
