"""What a drawing shows of a NUMA node besides CPUs: memory as bars, devices as tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from numaproof.reports.layout import bytes_text
from numaproof.reports.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class DrawnMemory:
    """Memory of one type on one NUMA node, in bytes.

    `reserved` is for the system, `allocated` is held by containers. `group` names the nodes used
    together with this one; it is empty for a node used on its own.
    """

    node: int
    kind: str
    total: int
    reserved: int
    allocated: int
    group: str = ""

    @property
    def shares(self) -> tuple[float, float]:
        """The fractions of the total that are reserved and allocated; together at most 1."""
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
class DrawnDevice:
    """A device near NUMA nodes; `owner` is the name of an owner, or empty for a free device."""

    resource: str
    id: str
    nodes: tuple[int, ...] = ()
    healthy: bool = True
    owner: str = ""

    @property
    def label(self) -> str:
        """The id, made safe and short."""
        return one_line(self.id, _LONGEST)


@dataclass(frozen=True, slots=True)
class Stock:
    """Memory and devices of one group in a drawing, or of a whole machine."""

    memory: tuple[DrawnMemory, ...] = ()
    devices: tuple[DrawnDevice, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.memory or self.devices)

    def by_resource(self) -> Mapping[str, list[DrawnDevice]]:
        """The devices by their resource."""
        found: dict[str, list[DrawnDevice]] = {}
        for device in self.devices:
            found.setdefault(one_line(device.resource, _LONGEST), []).append(device)
        return found


NOTHING = Stock()


def of_node(stock: Stock, node: int | None) -> Stock:
    """What belongs to exactly this node."""
    return Stock(
        tuple(one for one in stock.memory if one.node == node),
        tuple(one for one in stock.devices if one.nodes == (node,)),
    )


def apart(stock: Stock) -> Stock:
    """The devices near several nodes, or near none."""
    return Stock(
        (),
        tuple(
            replace(one, resource=f"{one.resource} (not on a single node)")
            for one in stock.devices
            if len(one.nodes) != 1
        ),
    )
