"""Adapter for util-linux's lscpu: discovery only."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import defaultdict
from typing import Any

from machine import SeenCache, SeenCore, SeenNode, machine_info

from protocol import Refusal, cpu_set, serve

ENVIRONMENT = {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}


def discover(args: dict[str, Any]) -> dict[str, Any]:
    """Runs discovery on a tree and returns its MachineInfo."""
    root = args["root"]
    names, table = columns(lscpu(root, "-p=CPU,CORE,SOCKET,CACHE"))
    physical = {row[0]: row for row in columns(lscpu(root, "-y", "-p=CPU,CORE,SOCKET"))[1]}
    threads: dict[int, list[int]] = defaultdict(list)
    sharing: dict[tuple[str, int], list[int]] = defaultdict(list)
    for cpu, core, _socket, *caches in table:
        if core < 0:
            continue  # online, but not part of a core
        threads[core].append(cpu)
        for name, number in zip(names[3:], caches, strict=True):
            if number >= 0:
                sharing[name, number].append(cpu)
    cores = [
        SeenCore(frozenset(cpus), physical[cpus[0]][1], physical[cpus[0]][2])
        for cpus in threads.values()
    ]
    sockets = len({row[2] for row in table if row[2] >= 0})
    sizes = kinds(root) if sharing else {}
    caches = [SeenCache(frozenset(cpus), *sizes[name]) for (name, _), cpus in sharing.items()]
    return machine_info(nodes(root), cores, caches, num_sockets=sockets)


def lscpu(root: str, *options: str) -> str:
    """Runs lscpu on a tree."""
    return run_lscpu("--sysroot", root, *options)


def run_lscpu(*options: str) -> str:
    """Returns the output of lscpu.

    Raises:
        Refusal: lscpu failed.
    """
    ended = subprocess.run(  # noqa: S603 - options of our own, and a tree that the harness made
        ["lscpu", *options],  # noqa: S607 - whichever is installed
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode < 0:
        raise RuntimeError(f"lscpu was killed by signal {-ended.returncode}: {ended.stderr}")
    if ended.returncode:
        raise Refusal(ended.stderr.strip(), stage="discovery")
    return ended.stdout


def columns(text: str) -> tuple[list[str], list[list[int]]]:
    """Returns the columns of -p, and a row of numbers for each CPU, with -1 for empty cells."""
    lines = text.splitlines()
    head = next(line for line in reversed(lines) if line.startswith("# CPU"))
    rows = [line for line in lines if line and not line.startswith("#")]
    # An empty column separates the requested columns from those of caches.
    names = [name for name in head.removeprefix("# ").split(",") if name]
    return names, [numbers(line.replace(",,", ",", 1), len(names)) for line in rows]


def numbers(line: str, count: int) -> list[int]:
    """Returns the numbers of a row."""
    found = [int(one) if one.lstrip("-").isdigit() else -1 for one in line.split(",")]
    return [*found, *[-1] * (count - len(found))][:count]


def kinds(root: str) -> dict[str, tuple[int, str, int]]:
    """Returns the level, type and size of each cache by name."""
    listed = json.loads(lscpu(root, "-C", "-B", "-J"))["caches"]
    return {one["name"]: (one["level"], one["type"], int(one["one-size"] or 0)) for one in listed}


def nodes(root: str) -> list[SeenNode]:
    """Returns the NUMA nodes, including those without CPUs, which the table omits."""
    found = json.loads(lscpu(root, "-J"))["lscpu"]
    seen = [(re.fullmatch(r"NUMA node(\d+) CPU\(s\):", one["field"]), one["data"]) for one in found]
    return [SeenNode(int(one[1]), frozenset(cpu_set(data or ""))) for one, data in seen if one]


HELLO = {
    "protocol": 1,
    "name": "lscpu",
    "version": run_lscpu("--version").split()[-1],
    "language": "C",
    "kubernetes": ["1.37"],
    "level": "placement",
    "operations": ["discover"],
    "policies": {},
    "options": {},
    "features": [],
    "discovers": [
        *("num_cores", "num_sockets", "nodes", "cores", "core_ids", "socket_ids"),
        *("caches", "uncore_caches", "node_caches"),
    ],
    "homepage": "https://github.com/util-linux/util-linux",
    "issues": "https://github.com/util-linux/util-linux/issues",
}

if __name__ == "__main__":
    serve(HELLO, {"discover": discover})
