"""Adapter for OpenStack Nova's CPU pinning: `numa_fit_instance_to_host`.

A container is an instance with the `dedicated` policy, and a NUMA node is a host cell. An instance
has as few guest cells as possible, as if an operator had set `hw:numa_nodes` and `hw:numa_cpus.N`.
Memory is not considered: each cell has plenty.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from ledger import Ledger
from nova import objects
from nova.virt import hardware

from protocol import Refusal, serve

if TYPE_CHECKING:
    from pathlib import Path

HELLO = {
    "protocol": 1,
    "name": "nova",
    "version": "34.0.0",
    "language": "Python",
    "kubernetes": ["1.37"],
    "level": "invariants",
    "operations": ["start", "admit", "remove", "state"],
    "policies": {"cpu": ["static"]},
    "options": {},
    "features": ["container-removal", "restart"],
    "homepage": "https://docs.openstack.org/nova/latest/admin/cpu-topologies.html",
}
_MEMORY = 1 << 20


class Host:
    """A compute host whose `cpu_dedicated_set` contains the CPUs that pods can get."""

    def start(
        self, machine: dict[str, Any], allocatable: set[int], held_cpus: list[set[int]], _: Path
    ) -> None:
        cells = []
        for node in machine["topology"]:
            cores = [set(core["thread_ids"]) for core in node["cores"] or []]
            own = {cpu for core in cores for cpu in core} & allocatable
            cells.append(
                objects.NUMACell(
                    id=node["node_id"],
                    socket=None,
                    cpuset=set(),
                    pcpuset=own,
                    memory=_MEMORY,
                    cpu_usage=0,
                    memory_usage=0,
                    mempages=[],
                    pinned_cpus={cpu for one in held_cpus for cpu in one & own},
                    siblings=cores,
                )
            )
        self._topology = objects.NUMATopology(cells=[one for one in cells if one.pcpuset])

    def take(self, count: int) -> set[int]:
        shares = self._shares(count)
        fitted = hardware.numa_fit_instance_to_host(
            self._topology, _instance(shares), provider_mapping=None
        )
        if not fitted:
            raise Refusal(f"no host cells can hold instance cells with {shares} dedicated CPUs")
        return self._pin(fitted)

    def _shares(self, count: int) -> list[int]:
        """Returns the sizes of the guest cells: as few as will do, of equal size if possible."""
        free = sorted((len(cell.free_pcpus) for cell in self._topology.cells), reverse=True)
        cells = next(n for n in range(1, len(free) + 1) if sum(free[:n]) >= count)
        if count % cells == 0 and count // cells <= free[cells - 1]:
            return [count // cells] * cells
        return [min(one, count - sum(free[:n])) for n, one in enumerate(free[:cells])]

    def _pin(self, instance_topology: objects.InstanceNUMATopology) -> set[int]:
        taken = set()
        for guest in instance_topology.cells:
            cpus = set(guest.cpu_pinning.values())
            next(one for one in self._topology.cells if one.id == guest.id).pin_cpus(cpus)
            taken |= cpus
        return taken

    def give_back(self, cpus: set[int]) -> None:
        for cell in self._topology.cells:
            cell.unpin_cpus(cpus & cell.pinned_cpus)


def _instance(shares: list[int]) -> objects.InstanceNUMATopology:
    cells = [
        objects.InstanceNUMACell(
            id=guest,
            cpuset=set(),
            pcpuset=set(range(sum(shares[:guest]), sum(shares[: guest + 1]))),
            memory=1,
            pagesize=None,
            cpu_policy="dedicated",
            cpu_thread_policy=None,
            cpu_pinning_raw=None,
            cpuset_reserved=None,
        )
        for guest in range(len(shares))
    ]
    return objects.InstanceNUMATopology(cells=cells, emulator_threads_policy=None)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    objects.register_all()
    serve(HELLO, Ledger(Host()).handlers())
    os._exit(0)  # oslo's threads would keep the process alive after the input ends
