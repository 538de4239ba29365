"""Owners of CPUs, memory and devices to draw on a machine with two nodes."""

from __future__ import annotations

from numaproof.protocol.events import Owner
from numaproof.reports.layout import DrawnDevice, DrawnMemory, Stock

GIB = 1 << 30

STOCK = Stock(
    (
        DrawnMemory(0, "memory", 4 * GIB, GIB // 10, GIB),
        DrawnMemory(0, "hugepages-1Gi", 2 * GIB, 0, 0),
        DrawnMemory(1, "memory", 4 * GIB, 0, 2 * GIB, "0-1"),
    ),
    (
        DrawnDevice("v.example/nic", "eth0", (0,), owner="db/main"),
        DrawnDevice("v.example/nic", "eth1", (0,), healthy=False),
        DrawnDevice("v.example/gpu", "gpu0", (0, 1)),
        DrawnDevice("v.example/gpu", "gpu1"),
    ),
)
OWNERS = (Owner("db/main", "2-3"), Owner("web/app", ""), Owner("reserved", "0"))
