"""Reserved memory against Node Allocatable, as every release answers."""

from __future__ import annotations

from typing import Any

import pytest

from builders.machines import of_memory
from numaproof.reference.config import configuration
from numaproof.reference.deviations import releases
from numaproof.reference.memory import reservation

MACHINE = of_memory(8 << 30, 8 << 30)
ENABLED = releases.release(None).enabled


def by_node(*entries: tuple[int, dict[str, str]], **given: Any) -> reservation.Reserved:
    reserved = [{"numaNode": node, "limits": limits} for node, limits in entries]
    loaded = configuration.load({"reservedMemory": reserved, **given}, ENABLED)
    return reservation.by_node(loaded, MACHINE)


def test_a_threshold_in_percent_is_of_the_machine() -> None:
    found = by_node((0, {"memory": "858993472"}), evictionHard={"memory.available": "5%"})
    assert found[0] == {"memory": 858993472}


_SUM = (
    'the total amount "{}" of type "{}" is not equal to the value "{}" determined by Node '
    "Allocatable feature"
)


@pytest.mark.parametrize(
    ("entries", "given", "message"),
    [
        ([], {}, _SUM.format(0, "memory", "100Mi")),
        (
            [(0, {"memory": "1Gi"}), (1, {"memory": "1.5Gi"})],
            {},
            _SUM.format("2560Mi", "memory", "100Mi"),
        ),
        (
            [(0, {"memory": "100Mi", "hugepages-1Gi": "1Gi"})],
            {},
            _SUM.format("1Gi", "hugepages-1Gi", 0),
        ),
        (
            [(0, {"memory": "858993472"})],
            {
                "evictionHard": {"memory.available": "5%"},
                "kubeReserved": {"memory": "1e9"},
                "systemReserved": {"memory": "1M"},
            },
            _SUM.format("858993472", "memory", "1859993472"),
        ),
        (
            [(5, {"memory": "100Mi"})],
            {},
            (
                "the reserved memory configuration references a NUMA node 5 that does not exist on "
                "this machine"
            ),
        ),
        (
            [(0, {"memory": "1.5Gi"})],
            {"evictionHard": {}, "kubeReserved": {"memory": "1.5Gi"}},
            "could not covert a variable of type Quantity to int64",
        ),
        ([], {"evictionHard": {}}, "[memorymanager] you should specify the system reserved memory"),
        (
            [],
            {"evictionHard": {"memory.available": "0%"}},
            "[memorymanager] you should specify the system reserved memory",
        ),
    ],
)
def test_what_does_not_add_up_is_refused_as_the_kubelet_says(
    entries: list[tuple[int, dict[str, str]]], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(reservation.ReservationError) as refused:
        by_node(*entries, **given)
    assert str(refused.value) == message


@pytest.mark.parametrize("node", [-(1 << 31), (1 << 31) - 1])
def test_a_reservation_of_any_int32_decodes(node: int) -> None:
    given = {"reservedMemory": [{"numaNode": node, "limits": {"memory": "1Gi"}}]}
    loaded = configuration.load(given, ENABLED)
    assert loaded.reserved_memory == ((node, {"memory": "1Gi"}),)


def test_an_amount_that_is_no_quantity_does_not_decode() -> None:
    with pytest.raises(
        configuration.ConfigError, match=r"^failed to decode: quantities must match"
    ):
        by_node((0, {"memory": "zz"}))
