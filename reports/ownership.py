"""Who owns each CPU in a drawing, identified by letter and hatching as well as by colour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from numaproof.protocol.sets import CPUSet, ListFormatError
from numaproof.reports.untrusted import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.protocol.events import Owner

RESERVED = "reserved"
"""The owner's name that means CPUs reserved for the system."""

OFFLINE = "offline"
"""The owner's name that means offline CPUs."""

Kind = Literal["container", "shared", "reserved", "offline", "several", "nobody", "plain"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_SYMBOLS: Mapping[Kind, str] = {
    "shared": "·",
    "reserved": "#",
    "offline": "x",
    "several": "!",
    "nobody": "-",
    "plain": "",
}
_NAMES: Mapping[Kind, str] = {
    "shared": "shared pool",
    "reserved": "reserved for the system",
    "offline": "offline",
    "several": "more than one owner",
    "nobody": "no owner",
}
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Holder:
    """What a CPU looks like: its kind, its symbol, and its owner in words.

    `number` counts containers from zero and selects the colour; `parts` holds the numbers of the
    colours if a CPU has more than one owner.
    """

    kind: Kind
    symbol: str
    name: str
    number: int = 0
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ownership:
    """The holder of each CPU, and the legend: each holder with its CPUs.

    `named` maps the names of owners to holders.
    """

    holders: Mapping[int, Holder]
    legend: tuple[tuple[Holder, str], ...]
    elsewhere: frozenset[int]
    named: Mapping[str, Holder] = field(default_factory=dict)


def ownership(cpus: frozenset[int], owners: Iterable[Owner], shared: str) -> Ownership:
    """Determines who owns each CPU of a machine.

    A CPU that is both reserved and in the shared pool counts as reserved, because the kubelet keeps
    reserved CPUs in the shared pool. Without owners and without a shared pool, every CPU is plain.

    Args:
        cpus: the CPUs of the machine.
        owners: who owns which CPUs; `RESERVED` and `OFFLINE` are special names, every other name
            is a container.
        shared: the shared pool, in the Linux list format.
    """
    owners = tuple(owners)
    if not owners and not shared:
        plain = Holder("plain", "", "")
        return Ownership(dict.fromkeys(cpus, plain), (), frozenset())
    ordered = _containers_first(owners)
    sets = [_holder_and_cpus(owner, number) for number, owner in enumerate(ordered)]
    named = {owner.name: holder for owner, (holder, _) in zip(ordered, sets, strict=True)}
    pool = Holder("shared", _SYMBOLS["shared"], _NAMES["shared"])
    sets.append((pool, _parsed(shared)))
    claims: dict[int, list[Holder]] = {}
    for holder, claimed in sets:
        for cpu in claimed:
            claims.setdefault(cpu, []).append(holder)
    nobody = Holder("nobody", _SYMBOLS["nobody"], _NAMES["nobody"])
    everyone = cpus | claims.keys()
    holders = {cpu: _settled(claims.get(cpu, [nobody])) for cpu in sorted(everyone)}
    legend = _legend(sets, holders)
    return Ownership(holders, legend, frozenset(claims.keys() - cpus), named)


def _containers_first(owners: tuple[Owner, ...]) -> list[Owner]:
    # Containers are numbered in their own order, whatever comes between them.
    return sorted(owners, key=lambda owner: owner.name in {RESERVED, OFFLINE})


def _holder_and_cpus(owner: Owner, number: int) -> tuple[Holder, CPUSet]:
    if owner.name == RESERVED:
        holder = Holder("reserved", _SYMBOLS["reserved"], _NAMES["reserved"])
    elif owner.name == OFFLINE:
        holder = Holder("offline", _SYMBOLS["offline"], _NAMES["offline"])
    else:
        letter = LETTERS[number % len(LETTERS)]
        holder = Holder("container", letter, one_line(owner.name, _LONGEST_NAME), number)
    return holder, _parsed(owner.cpus)


def _parsed(text: str) -> CPUSet:
    # A picture may come from a damaged or foreign file; whatever cannot be parsed is not drawn.
    try:
        return CPUSet.parse(text)
    except ListFormatError:
        return CPUSet()


def _settled(claims: list[Holder]) -> Holder:
    """The look of a CPU that these holders claim."""
    kinds = {holder.kind for holder in claims}
    if len(claims) == 1 or kinds == {"reserved", "shared"}:
        return claims[0]
    return Holder(
        "several",
        _SYMBOLS["several"],
        " and ".join(holder.name for holder in claims),
        parts=tuple(holder.number for holder in claims if holder.kind == "container"),
    )


def _in_legend(holder: Holder, claimed: CPUSet) -> bool:
    # A container without exclusive CPUs may have devices.
    return bool(claimed) or holder.kind == "container"


def _legend(
    sets: list[tuple[Holder, CPUSet]], holders: Mapping[int, Holder]
) -> tuple[tuple[Holder, str], ...]:
    rows = [(holder, str(claimed)) for holder, claimed in sets if _in_legend(holder, claimed)]
    kinds: tuple[Kind, ...] = ("several", "nobody")
    for kind in kinds:
        found = [cpu for cpu, holder in holders.items() if holder.kind == kind]
        if found:
            parts = next(holder.parts for holder in holders.values() if holder.kind == kind)
            rows.append(
                (Holder(kind, _SYMBOLS[kind], _NAMES[kind], parts=parts), str(CPUSet(found)))
            )
    return tuple(rows)
