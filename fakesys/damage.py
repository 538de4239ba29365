"""Recognises damaged trees: incomplete copies, and files without the contents that Linux writes.

The kubelet does not start on most such trees, and sees a smaller machine on others. Neither says
anything about the machine that the tree was copied from.
"""

import re
from collections.abc import Iterator

from numaproof.fakesys.archive import TreeError
from numaproof.fakesys.entries import CPU, NODE
from numaproof.fakesys.snapshot import Root, Snapshot, mem_total, read_snapshot


def require_intact(root: Root) -> None:
    """Checks that a tree is not damaged.

    Args:
        root: a directory with `sys` and `proc`.

    Raises:
        TreeError: it is damaged; the message names the first file that shows it.
    """
    damage = next(_damages(read_snapshot(root)), None)
    if damage is not None:
        raise TreeError(f"{root}: {damage}; copy the tree again")


def _damages(snapshot: Snapshot) -> Iterator[str]:
    for path in ("proc/cpuinfo", "proc/meminfo"):
        if snapshot.text(path) is None:
            yield f"{path} is missing"
        elif path == "proc/meminfo" and mem_total(snapshot.text(path) or "") is None:
            yield f"{path} has no MemTotal"
    yield from _absent(snapshot, f"{CPU}/online", f"{CPU}/cpu", snapshot.cpus)
    yield from _absent(snapshot, f"{NODE}/online", f"{NODE}/node", tuple(snapshot.members))
    for node, cpus in snapshot.members.items():
        base = f"{NODE}/node{node}"
        yield from _absent(snapshot, f"{base}/cpulist", f"{base}/cpu", cpus, may_be_empty=True)
        meminfo, distances = (snapshot.text(f"{base}/{name}") for name in ("meminfo", "distance"))
        if meminfo is None:
            yield f"{base}/meminfo is missing"
        elif mem_total(meminfo) is None:
            yield f"{base}/meminfo has no MemTotal"
        if distances is not None and not re.fullmatch("[0-9]+(?: [0-9]+)*", distances):
            yield f"{base}/distance: expected numbers, got {distances[:60]!r}"
    yield from _incomplete_cpus(snapshot)


def _incomplete_cpus(snapshot: Snapshot) -> Iterator[str]:
    """Yields what online CPUs lack although others have it."""
    online = set(snapshot.cpu_set(f"{CPU}/online") or ())
    in_nodes = {cpu for cpus in snapshot.members.values() for cpu in cpus}
    topology = re.compile(rf"{CPU}/cpu([0-9]+)/topology/")
    with_topology = {int(found[1]) for path in snapshot.files if (found := topology.match(path))}
    if in_nodes and (absent := online - in_nodes):
        yield f"CPU {min(absent)} is online, but no folder of {NODE} has it"
    if with_topology and (absent := online - with_topology):
        yield f"CPU {min(absent)} is online, but {CPU}/cpu{min(absent)}/topology is missing"


def _absent(
    snapshot: Snapshot,
    path: str,
    prefix: str,
    numbers: tuple[int, ...],
    *,
    may_be_empty: bool = False,
) -> Iterator[str]:
    """Yields what a list has that the tree lacks."""
    text = snapshot.text(path)
    if text is None or (may_be_empty and not text):
        return
    listed = snapshot.cpu_set(path)
    if not listed:
        yield f"{path}: expected a list such as 0-3, got {text[:60]!r}"
        return
    absent = sorted(set(listed) - set(numbers))
    if absent:
        yield f"{path} lists {text}, but {prefix}{absent[0]} is missing"
