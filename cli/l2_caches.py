"""Reads which CPUs share level 2 caches, because the kubelet's view of a machine omits it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from numaproof import fakesys
from numaproof.cli.machine_names import load_machine
from numaproof.inputs.sizes import size
from numaproof.protocol.sets import CPUSet, ListFormatError
from numaproof.reference.cadvisor.sysfs import CPUS, SysTree, UnreadablePathError
from numaproof.reports.layout import CacheGroup
from numaproof.workdir.trees import FolderTree

if TYPE_CHECKING:
    from collections.abc import Iterator


def l2_caches(name: str) -> tuple[CacheGroup, ...]:
    """Returns the level 2 caches of a bundled machine, a profile file or a tree.

    Raises:
        click.UsageError: the machine has none, or its description doesn't say.
    """
    if fakesys.is_tree(name):
        with fakesys.open_tree(name) as root:
            found = tuple(_read(SysTree(FolderTree.root(root, name))))
    else:
        generated = fakesys.TreePath.root(fakesys.build_tree(load_machine(name)))
        found = tuple(_read(SysTree(generated)))
    if not found:
        raise click.UsageError(f"--l2: {name} has no files about level 2 caches")
    return found


def _read(tree: SysTree) -> Iterator[CacheGroup]:
    seen: set[CPUSet] = set()
    for cpu in tree.names(CPUS):
        folder = f"{CPUS}/{cpu}/cache"
        if not re.fullmatch(r"cpu\d+", cpu):
            continue
        try:
            caches = [f"{folder}/{index}" for index in tree.names(folder)]
            for cache in caches:
                if cache.rpartition("/")[2].startswith("index"):
                    if tree.read_trimmed(f"{cache}/level") != "2":
                        continue
                    cpus = CPUSet.parse(tree.read_trimmed(f"{cache}/shared_cpu_list"))
                    if cpus not in seen:
                        seen.add(cpus)
                        yield CacheGroup(_label(tree, cache), frozenset(cpus))
        except (UnreadablePathError, ListFormatError):
            continue  # offline CPUs and many guests have no such files


def _label(tree: SysTree, cache: str) -> str:
    try:
        kilobytes = re.fullmatch(r"(\d{1,12})K", tree.read_trimmed(f"{cache}/size"))
    except UnreadablePathError:
        kilobytes = None
    return f"L2 {size(int(kilobytes[1]) << 10)}" if kilobytes else "L2"
