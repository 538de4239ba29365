"""The NUMA nodes of a machine: their CPUs, memory and distances."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from numaproof.fakesys.fields import RowBudget, read, require_cpus
from numaproof.fakesys.machine import MAX_CPUS, MAX_NODES, Cpu, NUMANode, ProfileError
from numaproof.fakesys.profile import DerivedDistances, NodeRow, Profile
from numaproof.fakesys.ranges import parse_list
from numaproof.fakesys.sizes import parse_kilobytes
from numaproof.inputs.documents import PathTuple
from numaproof.inputs.plurals import plural


@dataclass
class _Draft:
    """The nodes as described by the rows so far; `placed` is each CPU's node."""

    members: dict[int, tuple[int, ...]]
    memory: dict[int, int | None] = field(default_factory=dict)
    pages: dict[int, dict[int, int]] = field(default_factory=dict)
    placed: dict[int, int] = field(default_factory=dict)


def lay_out_nodes(
    profile: Profile, cpus: Mapping[int, Cpu], regular: Mapping[int, tuple[int, ...]]
) -> tuple[NUMANode, ...]:
    """The nodes of the regular form, changed and extended by the rows.

    Raises:
        ProfileError: a CPU does not exist or is in two nodes, a node has no memory, or distances
            do not match.
    """
    draft = _Draft(dict(regular))
    budget = RowBudget(32)
    for i, row in enumerate(profile.nodes):
        _apply(row, ("nodes", i), draft, cpus, budget)
    order = sorted(draft.members)
    for number in order:
        if number not in draft.memory:
            raise ProfileError(
                ("nodes",),
                f"node {number} has no memory",
                f"add a row `- {{nodes: {number}, memory: 16Gi}}`, or `memory: none`",
            )
    texts = _distances(profile, order, draft.members, cpus)
    return tuple(
        NUMANode(
            number, draft.members[number], draft.memory[number], draft.pages.get(number, {}), text
        )
        for number, text in zip(order, texts, strict=True)
    )


def read_pages(path: PathTuple, counts: Mapping[str, int]) -> dict[int, int]:
    """The number of huge pages by page size in KiB, ascending.

    Raises:
        ProfileError: a page size is invalid, or a duplicate (``1Gi`` and ``1024Mi``).
    """
    pages = {}
    for text, count in counts.items():
        size = read((*path, text), parse_kilobytes, text)
        if size == 0 or size in pages:
            raise ProfileError((*path, text), "page size is zero or a duplicate")
        pages[size] = count
    return dict(sorted(pages.items()))


def _apply(
    row: NodeRow, path: PathTuple, draft: _Draft, cpus: Mapping[int, Cpu], budget: RowBudget
) -> None:
    numbers = read((*path, "nodes"), parse_list, str(row.nodes), MAX_NODES)
    for number, listed in zip(numbers, _row_cpus(row, path, len(numbers)), strict=True):
        if listed is not None:
            # Whether they exist is looked up in a set of all.
            budget.spend((*path, "cpus"), max(len(listed), len(cpus) // 64))
            require_cpus((*path, "cpus"), listed, cpus)
            if not row.overlapping:
                _place((*path, "cpus"), number, listed, draft.placed)
            draft.members[number] = tuple(sorted(listed))
        draft.members.setdefault(number, ())
        if row.memory is not None:
            if number in draft.memory:
                raise ProfileError((*path, "memory"), f"duplicate memory of node {number}")
            draft.memory[number] = (
                None
                if row.memory == "none"
                else read((*path, "memory"), parse_kilobytes, row.memory)
            )
        if row.hugepages is not None:
            pages = draft.pages.setdefault(number, {})
            pages.update(read_pages((*path, "hugepages"), row.hugepages))


def _row_cpus(row: NodeRow, path: PathTuple, count: int) -> list[tuple[int, ...] | None]:
    if row.cpus is None:
        return [None] * count
    lists = row.cpus if isinstance(row.cpus, tuple) else (row.cpus,)
    if len(lists) != count:
        raise ProfileError((*path, "cpus"), f"got {len(lists)} CPU lists, expected {count}")
    return [read((*path, "cpus"), parse_list, str(text), MAX_CPUS) for text in lists]


def _place(path: PathTuple, node: int, listed: tuple[int, ...], placed: dict[int, int]) -> None:
    for cpu in listed:
        first = placed.setdefault(cpu, node)
        if first != node:
            raise ProfileError(
                path,
                f"CPU {cpu} is in two nodes, {first} and {node}",
                "remove it from one, or set `overlapping: true` if the machine reports both",
            )


def _distances(
    profile: Profile,
    order: Sequence[int],
    members: Mapping[int, tuple[int, ...]],
    cpus: Mapping[int, Cpu],
) -> tuple[str, ...]:
    rule = profile.distances or DerivedDistances()
    if not isinstance(rule, DerivedDistances):
        if len(rule) != len(order):
            raise ProfileError(
                ("distances",), f"got {plural(len(rule), 'row')}, expected {len(order)}"
            )
        return rule
    return apply_distances(rule, [{cpus[cpu].socket for cpu in members[node]} for node in order])


def apply_distances(
    rule: DerivedDistances, sockets: Sequence[AbstractSet[int | None]]
) -> tuple[str, ...]:
    """The text of each node's `distance`; `sockets` are the sockets of each node's CPUs."""
    return tuple(
        " ".join(
            str(rule.local if a == b else rule.near if sockets[a] & sockets[b] else rule.far)
            for b in range(len(sockets))
        )
        for a in range(len(sockets))
    )
