"""In which order the NUMA nodes of a discovered machine are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from numaproof.protocol.machine import MachineInfo


class NodeOrder:
    """Lists NUMA nodes by ascending id. No document tells an order."""

    def of(self, machine: MachineInfo) -> MachineInfo:
        """A machine that was discovered, with its nodes in order."""
        nodes = tuple(sorted(machine.topology or (), key=lambda node: node.node_id))
        if nodes == (machine.topology or ()):
            return machine
        return msgspec.structs.replace(machine, topology=nodes)
