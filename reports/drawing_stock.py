"""What a NUMA node has besides CPUs, as it is drawn: memory as bars, devices as tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from numaproof.reports.layout import bytes_text
from numaproof.reports.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one type on one NUMA node, in bytes.

    `reserved` is the system's, `allocated` what containers have. `group` names the nodes that
    are used together with this one, and is empty for a node alone.
    """

    node: int
    kind: str
    total: int
    reserved: int
    allocated: int
    group: str = ""

    @property
    def shares(self) -> tuple[float, float]:
        """The parts of the total that are reserved and allocated, from 0 to 1 together."""
        if not self.total:
            return 0.0, 0.0
        reserved = min(self.reserved / self.total, 1.0)
        return reserved, min(self.allocated / self.total, 1.0 - reserved)

    @property
    def text(self) -> str:
        """``3 GiB of 16 GiB allocated, 100 MiB reserved``."""
        text = f"{bytes_text(self.allocated)} of {bytes_text(self.total)} allocated"
        if self.reserved:
            text += f", {bytes_text(self.reserved)} reserved"
        return f"{text}, with nodes {self.group}" if self.group else text


@dataclass(frozen=True, slots=True)
class Device:
    """A device near NUMA nodes; `owner` is a name among the owners, or empty for a free one."""

    resource: str
    id: str
    nodes: tuple[int, ...] = ()
    healthy: bool = True
    owner: str = ""

    @property
    def label(self) -> str:
        """Its id, safe and short."""
        return one_line(self.id, _LONGEST)


@dataclass(frozen=True, slots=True)
class Stock:
    """Memory and devices; what is in a group of a drawing, or what is on a whole machine."""

    memory: tuple[Memory, ...] = ()
    devices: tuple[Device, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.memory or self.devices)

    def by_resource(self) -> Mapping[str, list[Device]]:
        """The devices by their resource."""
        found: dict[str, list[Device]] = {}
        for device in self.devices:
            found.setdefault(one_line(device.resource, _LONGEST), []).append(device)
        return found


NOTHING = Stock()


def of_node(stock: Stock, node: int | None) -> Stock:
    """What is on one node alone."""
    return Stock(
        tuple(one for one in stock.memory if one.node == node),
        tuple(one for one in stock.devices if one.nodes == (node,)),
    )


def apart(stock: Stock) -> Stock:
    """The devices that are near several nodes, or near none."""
    return Stock(
        (),
        tuple(
            replace(one, resource=f"{one.resource} (on no single node)")
            for one in stock.devices
            if len(one.nodes) != 1
        ),
    )
