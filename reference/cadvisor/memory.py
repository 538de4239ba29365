"""Memory and huge pages of the machine and of each NUMA node.

Source: the machine and sysinfo packages of cAdvisor v0.49.0 to v0.60.5 (Kubernetes 1.30 to 1.37).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from numaproof.protocol.machine import HugePages
from numaproof.reference.cadvisor.sysfs import DiscoveryError, UnreadablePathError
from numaproof.reference.golang.numbers import UNSIGNED_LIMIT, leading_unsigned, parse_unsigned
from numaproof.reference.golang.text import quote

if TYPE_CHECKING:
    from numaproof.reference.cadvisor.sysfs import SysTree

# In a node's file, the line begins with "Node 0". The first match anywhere counts.
_TOTAL = re.compile(r"MemTotal:[\t\n\f\r ]*([0-9]+) kB")


def machine_memory(tree: SysTree) -> int:
    """Returns the machine's memory in bytes, from ``/proc/meminfo``.

    Raises:
        DiscoveryError: the file is unreadable or has no total in kB.
        NumeralError: the total is too large.

    Requirements: DISCOVERY-017.
    """
    return _total(tree.read("/proc/meminfo"))


def node_memory(tree: SysTree, node: str) -> int:
    """Returns the memory in bytes of the node whose folder is `node`, or 0 if it is unreadable.

    Raises:
        DiscoveryError: the file has no total in kB.
        NumeralError: the total is too large.

    Requirements: DISCOVERY-018.
    """
    try:
        text = tree.read_trimmed(f"{node}/meminfo")
    except UnreadablePathError:
        return 0
    return _total(text)


def _total(text: str) -> int:
    match = _TOTAL.search(text)
    if not match:
        raise DiscoveryError(f"failed to match regexp in output: {quote(text)}")
    return parse_unsigned(match[1]) * 1024 % UNSIGNED_LIMIT


def huge_pages(tree: SysTree, folder: str) -> tuple[HugePages, ...] | None:
    """Returns the pools of huge pages in `folder`, by name in byte order, or None if none exist.

    A pool is an entry such as ``hugepages-2048kB`` with its count in ``nr_hugepages``. An
    unreadable folder counts as having no pools, because kernels can be built without huge pages.
    The kubelet panics on entries without a hyphen; here, they are ignored.

    Raises:
        DiscoveryError: a count is unreadable or not a number.
        NumeralError: a pool's name contains no size.

    Requirements: DISCOVERY-019.
    """
    try:
        names = tree.names(folder)
    except UnreadablePathError:
        return None
    return tuple(_pool(tree, folder, name) for name in names if "-" in name) or None


def _pool(tree: SysTree, folder: str, name: str) -> HugePages:
    page_size = parse_unsigned(name.split("-")[1].partition("kB")[0])
    text = tree.read_trimmed(f"{folder}/{name}/nr_hugepages")
    num_pages = leading_unsigned(text)
    if num_pages is None:
        raise DiscoveryError(f"could not parse file nr_hugepage for {name}, contents {quote(text)}")
    return HugePages(page_size=page_size, num_pages=num_pages)
