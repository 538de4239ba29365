"""The core and socket counts that a machine reports, which can contradict its topology.

If ``/proc/cpuinfo`` has ids, as on x86, the counts are the numbers of *distinct ids* in it. Core
ids repeat in every socket, so a machine with two 10-core sockets reports 10 cores; offline CPUs are
not listed there. On other machines (Arm, POWER, s390x), the counts are the numbers of distinct
pairs of core and package and of distinct packages among the CPUs in sysfs.

Source: the machine and sysfs packages of cAdvisor v0.49.0 to v0.60.5 (Kubernetes 1.30 to 1.37).
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING

from numaproof.reference.cadvisor.cpus import number_in
from numaproof.reference.cadvisor.sysfs import CPUS, UnreadablePathError

if TYPE_CHECKING:
    from numaproof.reference.cadvisor.cpus import OnlineCPUs
    from numaproof.reference.cadvisor.sysfs import SysTree

# The digits must end the line: white space after them, even a carriage return, hides the id.
_CORE = re.compile(r"^core id[\t\n\f\r ]*:[\t\n\f\r ]*[0-9]+$", re.MULTILINE)
_SOCKET = re.compile(r"^physical id[\t\n\f\r ]*:[\t\n\f\r ]*[0-9]+$", re.MULTILINE)


def count_cores_and_sockets(cpuinfo: str, tree: SysTree, online: OnlineCPUs) -> tuple[int, int]:
    """Returns the numbers of cores and sockets; `cpuinfo` is the text of ``/proc/cpuinfo``.

    Requirements: DISCOVERY-015, DISCOVERY-016.
    """
    cores = len(set(_CORE.findall(cpuinfo)))
    sockets = len(set(_SOCKET.findall(cpuinfo)))
    pairs = cache(partial(_cores_in_sysfs, tree, online))
    return cores or len(pairs()), sockets or len({package for _, package in pairs()})


def _cores_in_sysfs(tree: SysTree, online: OnlineCPUs) -> set[tuple[str, str]]:
    """Returns the pairs of core and package ids of online CPUs, as text; missing ids are ``0``.

    A single entry that looks like a CPU but has no number makes the result empty.
    """
    pairs = set()
    for name in tree.numbered_names(CPUS, "cpu"):
        cpu = number_in(name)
        if cpu is None:
            return set()
        if cpu in online:
            topology = f"{CPUS}/{name}/topology"
            core = _text_or_zero(tree, f"{topology}/core_id")
            pairs.add((core, _text_or_zero(tree, f"{topology}/physical_package_id")))
    return pairs


def _text_or_zero(tree: SysTree, path: str) -> str:
    try:
        return tree.read_trimmed(path)
    except UnreadablePathError:
        return "0"
