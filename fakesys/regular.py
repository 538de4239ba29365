"""Finds the `topology` that describes a regular machine, if there is one."""

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from numaproof.fakesys.layout import cpu_number, lay_out_regular
from numaproof.fakesys.machine import Cpu, ProfileError
from numaproof.fakesys.profile import Numbering, Topology
from numaproof.fakesys.ranges import Value, format_list, format_sequence

Members = Mapping[int, tuple[int, ...]]


def find_topology(cpus: Sequence[Cpu], members: Members) -> Topology | None:
    """The regular form that yields the socket, core and node of every CPU, or None.

    It includes dies and clusters if they are regular too; otherwise rows must state them. CPUs
    without a `topology` directory match anything.
    """
    if [cpu.number for cpu in cpus] != list(range(len(cpus))):
        return None
    with_cpus = {node: numbers for node, numbers in members.items() if numbers}
    known = [cpu for cpu in cpus if cpu.topology]
    sockets = len({cpu.socket for cpu in known})
    cores = len({cpu.core for cpu in known})
    parts = (sockets, max(len(with_cpus), 1))
    if not cores or any(cores % part for part in parts) or len(cpus) % cores:
        return None
    basis = Topology(
        sockets=sockets,
        cores_per_socket=cores // sockets,
        threads_per_core=len(cpus) // cores,
        nodes=len(with_cpus),
        dies_per_socket=_dies(known, sockets),
        cores_per_cluster=_cluster(known, cores),
    )
    if with_cpus and list(with_cpus) != list(range(len(with_cpus))):
        basis = msgspec.structs.replace(basis, node_ids=format_list(with_cpus))
    for numbering in get_args(Numbering):
        topology = _with_ids(msgspec.structs.replace(basis, numbering=numbering), cpus)
        for attempt in (
            topology,
            msgspec.structs.replace(topology, cores_per_cluster=0),
            msgspec.structs.replace(topology, cores_per_cluster=0, dies_per_socket=0),
        ):
            if _fits(attempt, cpus, with_cpus):
                return attempt
    return None


def _dies(cpus: Sequence[Cpu], sockets: int) -> int:
    dies = {(cpu.socket, cpu.die) for cpu in cpus if cpu.die is not None}
    return len(dies) // sockets


def _cluster(cpus: Sequence[Cpu], cores: int) -> int:
    clusters = {cpu.cluster for cpu in cpus if cpu.cluster is not None}
    return cores // len(clusters) if clusters else 0


def _with_ids(topology: Topology, cpus: Sequence[Cpu]) -> Topology:
    """The topology with the ids of the first threads of its cores."""
    cores = topology.sockets * topology.cores_per_socket
    first = [cpus[cpu_number(topology, core, 0)] for core in range(cores)]
    core_ids = _period([cpu.core_id for cpu in first])
    sockets = [cpu.socket for cpu in first[:: topology.cores_per_socket]]
    usual = list(range(topology.cores_per_socket))
    return msgspec.structs.replace(
        topology,
        core_ids=None if core_ids == usual else format_sequence(core_ids),
        socket_ids=(None if sockets == list(range(topology.sockets)) else format_sequence(sockets)),
    )


def _period(values: list[Value]) -> list[Value]:
    for length in range(1, len(values)):
        if len(values) % length == 0 and values == values[:length] * (len(values) // length):
            return values[:length]
    return values


def _fits(topology: Topology, cpus: Sequence[Cpu], members: Members) -> bool:
    try:
        wanted, nodes = lay_out_regular(topology)
    except ProfileError:
        return False
    if nodes != members:
        return False
    return all(
        (cpu.socket, cpu.core_id) == (wanted[cpu.number].socket, wanted[cpu.number].core_id)
        and (not topology.dies_per_socket or cpu.die == wanted[cpu.number].die)
        and (not topology.cores_per_cluster or cpu.cluster == wanted[cpu.number].cluster)
        for cpu in cpus
        if cpu.topology
    )
