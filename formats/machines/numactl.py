"""The output of ``numactl --hardware``: CPUs, memory and distances of NUMA nodes."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from numaproof.formats.machines.description import CPU, Description, DescriptionError, Node
from numaproof.inputs.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = re.compile(r"^ *available: +([0-9]{1,5}) nodes?\b", re.MULTILINE)
_CPUS = re.compile(r"^ *node +([0-9]{1,5}) cpus:(.*(?:\n *[0-9]+(?: +[0-9]+)* *$)*)", re.MULTILINE)
"""The CPUs of a node, and of lines that go on because a terminal or a mail program wraps them."""
_SIZE = re.compile(r"^ *node +([0-9]{1,5}) size:(.*)$", re.MULTILINE)
_ROW = re.compile(r"^ *([0-9]{1,5}):((?: +[0-9]{1,5})+) *$", re.MULTILINE)

_MIB = 1 << 20
_AGAIN = "save the whole output of `numactl --hardware`"


def is_numactl(text: str) -> bool:
    """Returns whether a text looks like the output of ``numactl --hardware``."""
    return HEAD.search(text) is not None


def read(text: str) -> Description:
    """Reads a text that `is_numactl`.

    Raises:
        DescriptionError: it is incomplete.
    """
    head = HEAD.search(text)
    assert head is not None
    cpus = {int(node): list(map(int, numbers.split())) for node, numbers in _numbers(text)}
    shared = Counter(cpu for numbers in cpus.values() for cpu in numbers)
    if shared and max(shared.values()) > 1:
        cpu = max(shared, key=lambda cpu: shared[cpu])
        raise DescriptionError(
            f"CPU {cpu} is in several NUMA nodes, as with the boot option numa=fake",
            "capture the machine: `numaproof profile capture / --out machine.yaml`",
        )
    sizes = dict(_sizes(text))
    count = int(head[1])
    for what, found in (("cpus", cpus), ("size", sizes)):
        if len(found) != count:
            raise DescriptionError(
                f"numactl lists {plural(count, 'node')} but has"
                f" {plural(len(found), 'line')} `node N {what}`",
                _AGAIN,
            )
    order = sorted(cpus)
    rows = {int(node): tuple(map(int, row.split())) for node, row in _ROW.findall(text)}
    if rows and (sorted(rows) != order or any(len(row) != count for row in rows.values())):
        raise DescriptionError(f"the distances are not those of {plural(count, 'node')}", _AGAIN)
    return Description(
        format="numactl --hardware",
        cpus=tuple(CPU(number=cpu, node=node) for node in order for cpu in cpus[node]),
        nodes=tuple(Node(number=node, memory=sizes[node]) for node in order),
        distances=tuple(rows[node] for node in order) if rows else None,
        notes=("memory is rounded to MiB; a kubelet counts bytes",),
    )


def _sizes(text: str) -> Iterator[tuple[int, int]]:
    """Yields each node's memory in bytes."""
    for match in _SIZE.finditer(text):
        size = re.fullmatch(r" +([0-9]{1,12}) MB\s*", match[2])
        if size is None:
            message = f"node {match[1]} size: expected MB, got {match[2].strip()!r}"
            raise DescriptionError(message, _AGAIN, text.count("\n", 0, match.start()) + 1)
        yield int(match[1]), int(size[1]) * _MIB


def _numbers(text: str) -> list[tuple[str, str]]:
    found = [(match[1], match[2]) for match in _CPUS.finditer(text)]
    for node, numbers in found:
        if not re.fullmatch(r"(?:\s+[0-9]{1,5})*\s*", numbers):
            raise DescriptionError(
                f"node {node} cpus: expected numbers, got {numbers.strip()!r}", _AGAIN
            )
        cpus = [*map(int, numbers.split())]
        if cpus != sorted(set(cpus)):
            message = f"node {node} cpus: not in order, as if a number were cut"
            raise DescriptionError(message, _AGAIN)
    return found
