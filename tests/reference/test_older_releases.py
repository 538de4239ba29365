"""What the releases before 1.33 do otherwise, beside their named defects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from builders import devices, pods
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Callable

FULL_CORES = {"full-pcpus-only": "true"}


def test_hints_for_a_refused_pod_are_those_of_what_it_still_holds_up_to_1_31(
    node: Any, machine: Callable[..., dict[str, Any]], pod: Callable[..., dict[str, Any]]
) -> None:
    node.start(machine(nodes=2), release="1.31")
    late = pod("late", "3", "20")
    node.ask("admit", pod=late)

    def hinted() -> list[list[int]]:
        answer = node.ask("hints", pod=late, container="app0")["ok"]["cpu"]
        return [hint["numa"] for hint in answer["cpu"]]

    assert hinted() == [[0], [0, 1]]
    node.shared()
    assert hinted() == [[0], [1], [0, 1]]


@pytest.mark.parametrize("release", ["1.31", "1.32"])
def test_hints_for_a_pod_that_left_during_a_restart_are_those_of_its_devices_up_to_1_31(
    node: Any, machine: Callable[..., dict[str, Any]], release: str
) -> None:
    def start() -> None:
        answer = node.ask(
            "start",
            machine=machine(nodes=2),
            config={},
            state_dir=str(node.state_dir),
            kubernetes=release,
            devices=[codec.to_plain(devices.reported(a=[0], b=[1]))],
        )
        assert "ok" in answer

    gone = pods.numbered("gone", [{"limits": {devices.NIC: "1"}}])
    start()
    assert "ok" in node.ask("admit", pod=gone)
    start()
    hints = node.ask("hints", pod=gone, container="app0")["ok"]["devices"][devices.NIC]
    alone = [hint["numa"] for hint in hints if hint["preferred"]]
    assert len(alone) == (1 if release == "1.31" else 2)


@pytest.mark.parametrize("release", ["1.31", "1.32"])
def test_a_refusal_for_want_of_any_free_core_blames_the_request_up_to_1_31(
    node: Any, pod: Callable[..., dict[str, Any]], release: str
) -> None:
    node.start(release=release, cpuManagerPolicyOptions=FULL_CORES)
    assert node.admit(pod("a", "6"))
    said = node.ask("admit", pod=pod("b", "2"))["refused"]["message"]
    assert ("requested 2 cpus not multiple cpus per core = 2" in said) == (release == "1.31")
