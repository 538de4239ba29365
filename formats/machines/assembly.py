"""Completes a description to a machine that a kubelet could discover.

The machine is discovered in the tree of a profile, so that its caches and counts follow the same
rules as those of every other machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.fakesys.fields import format_kilobytes
from numaproof.fakesys.profile import CacheRow, CpuRow, DerivedDistances, NodeRow, Profile
from numaproof.formats.machines.description import DescriptionError, Gap, MachineText
from numaproof.formats.machines.placement import place
from numaproof.inputs.errors import dotted_path
from numaproof.inputs.plurals import plural
from numaproof.reference.cadvisor.discovery import NO_CPU, DiscoveryError, discover

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numaproof.formats.machines.assumptions import Assumptions
    from numaproof.formats.machines.description import CPU, Description
    from numaproof.protocol.machine import MachineInfo

_KIB = 1 << 10

_PLENTY = 1 << 30
"""The memory of a node in KiB where nothing is known: 1 TiB, enough for any pod."""

_ARCHITECTURES = {
    "aarch64": "arm64",
    "arm64": "arm64",
    "armv7l": "arm",
    "i686": "i386",
    "ppc64le": "ppc64",
    "ppc64": "ppc64",
    "riscv64": "riscv64",
    "s390x": "s390x",
}
"""Profiles' names of the architectures that count cores and sockets differently than x86."""


def assemble(
    file: str, text: Description, assume: Assumptions, no_cpu: str = NO_CPU
) -> MachineText:
    """Returns the machine in a text, and what had to be assumed.

    Raises:
        DescriptionError: the text contradicts itself, or an assumption.
    """
    cpus, nodes, gaps = place(text, assume)
    online = [cpu for cpu in cpus if cpu.online]
    more: list[Gap] = []
    memory = _memory(text, nodes, assume, more)
    pages = _pages(text, nodes, assume, more)
    profile = Profile(
        name="described",
        title="A machine by its description",
        source=text.format,
        architecture=_ARCHITECTURES.get(text.architecture, "x86_64"),  # type: ignore[arg-type]
        cpus=tuple(_cpu_rows(online, [cpu for cpu in cpus if not cpu.online])),
        nodes=tuple(
            NodeRow(
                nodes=node,
                cpus=_join(cpu.number for cpu in cpus if cpu.node == node) or None,
                memory=format_kilobytes(memory[node]),
                hugepages=_by_name(pages[node]),
            )
            for node in nodes
        ),
        distances=_distances(text, nodes, more),
        caches=_caches(text, online, assume, more),
        memory=format_kilobytes(
            sum(memory.values()) if text.memory is None else text.memory // _KIB
        ),
        hugepages=_by_name(text.hugepages) if text.hugepages is not None else None,
    )
    assume.require_used(text.format)
    return MachineText(
        file=file,
        format=text.format,
        machine=_discover(profile, no_cpu),
        missing=(*gaps, *more),
        reserved_cpus=text.reserved_cpus,
        kubelet=text.kubelet,
        settings=text.settings,
        devices=text.devices,
        notes=text.notes,
    )


def _discover(profile: Profile, no_cpu: str) -> MachineInfo:
    try:
        tree = fakesys.build_tree(profile, detail="discovery")
        return discover(fakesys.TreePath.root(tree), no_cpu)
    except fakesys.ProfileError as error:
        raise DescriptionError(
            f"describes no machine: {dotted_path(error.path)}: {error.message}", error.fix
        ) from None
    except DiscoveryError as error:
        raise DescriptionError(str(error)) from None


def _join(numbers: Iterable[int | None]) -> str:
    return ",".join(map(str, numbers))


def _cpu_rows(online: Sequence[CPU], offline: Sequence[CPU]) -> Iterable[CpuRow]:
    if not online:
        raise DescriptionError("no CPU is online")
    yield CpuRow(
        cpus=_join(cpu.number for cpu in online),
        socket=_join(cpu.socket for cpu in online),
        core_id=_join(cpu.core for cpu in online),
    )
    if offline:
        yield CpuRow(cpus=_join(cpu.number for cpu in offline), online=False)


def _memory(
    text: Description, nodes: Sequence[int], assume: Assumptions, gaps: list[Gap]
) -> Mapping[int, int]:
    """The memory of each node in KiB."""
    known = {
        node.number: node.memory // _KIB for node in text.nodes or () if node.memory is not None
    }
    open_ = [node for node in nodes if node not in known]
    if not nodes and text.memory is None:
        # Without NUMA nodes, only the machine has memory.
        open_, nodes = [-1], [-1]
    if not open_:
        return known
    total = text.memory // _KIB if text.memory is not None else assume.take("memory")
    if total is not None:
        share = max(total - sum(known.values()), 0) // len(open_)
        if text.memory is not None and len(nodes) > 1:
            gaps.append(Gap("memory", "each NUMA node's memory", "that all have the same amount"))
    else:
        share = min((size for size in known.values() if size), default=_PLENTY)
        which = "the memory" if not known else f"the memory of NUMA node {_join(open_)}"
        each = f"{format_kilobytes(share)}" + (" on each node" if len(nodes) > 1 else "")
        each = "as much as on another node" if known else each
        gaps.append(Gap("memory", which, each, "--assume memory=SIZE, the machine's total"))
    return known | dict.fromkeys(open_, share)


def _pages(
    text: Description, nodes: Sequence[int], assume: Assumptions, gaps: list[Gap]
) -> Mapping[int, Mapping[int, int]]:
    """The huge pages of each node, by page size in KiB."""
    known = {node.number: node.hugepages for node in text.nodes or () if node.hugepages is not None}
    open_ = [node for node in nodes if node not in known]
    if not open_:
        return known
    total = text.hugepages
    if total is None:
        supplied = {2 << 10: assume.take("hugepages-2Mi"), 1 << 20: assume.take("hugepages-1Gi")}
        total = {size: count for size, count in supplied.items() if count is not None}
        if not total:
            gaps.append(Gap("hugepages", "huge pages", "none", "--assume hugepages-2Mi=COUNT"))
            return known | {node: {} for node in open_}
    elif len(nodes) > 1 and any(total.values()):
        gaps.append(Gap("hugepages", "each NUMA node's huge pages", "that all have as many"))
    each = {size: count // len(open_) for size, count in total.items()}
    return known | dict.fromkeys(open_, each)


def _by_name(pages: Mapping[int, int]) -> dict[str, int] | None:
    return {format_kilobytes(size): count for size, count in pages.items()} or None


def _distances(
    text: Description, nodes: Sequence[int], gaps: list[Gap]
) -> tuple[str, ...] | DerivedDistances | None:
    if text.distances is not None:
        return tuple(" ".join(map(str, row)) for row in text.distances)
    rule = DerivedDistances()
    if len(nodes) > 1:
        gaps.append(
            Gap(
                "distances",
                "the distances between NUMA nodes",
                f"{rule.near} within a socket and {rule.far} between sockets",
            )
        )
    return rule if nodes else None


_L3_SIZE = "32Mi"


def _caches(
    text: Description, cpus: Sequence[CPU], assume: Assumptions, gaps: list[Gap]
) -> tuple[CacheRow, ...]:
    if text.caches is None:
        cores, rest = divmod(len({(cpu.socket, cpu.core) for cpu in cpus}), text.l3_count or 1)
        if text.l3_count and cores and not rest:
            gaps.append(
                Gap(
                    "sharing",
                    "each CPU's L3 cache",
                    f"that {plural(cores, 'core')} {'shares' if cores == 1 else 'share'} each",
                )
            )
        else:
            cores = assume.take("cores-per-l3") or 0
        if not cores:
            gaps.append(Gap("caches", "caches", "none", "--assume cores-per-l3=N"))
            return ()
        return (CacheRow(level=3, type="Unified", size=_L3_SIZE, shared=f"{cores} cores"),)
    kinds: dict[tuple[int, str, int], list[tuple[int, ...]]] = {}
    for cache in text.caches:
        kinds.setdefault((cache.level, cache.type, cache.size), []).append(cache.cpus)
    return tuple(
        CacheRow(
            level=level,
            type=kind,  # type: ignore[arg-type] # one of the three, or it is refused
            size=format_kilobytes(size // _KIB),
            shared=tuple(_join(cpus) for cpus in sorted(shared)),
            cpus=_join(cpu for cpus in shared for cpu in cpus),
        )
        for (level, kind, size), shared in sorted(kinds.items())
    )
