"""Generates machines with trees for lives that start from a tree, and unusual small machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.trees import as_discovered
from numaproof.fakesys import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numaproof.conformance.fuzzing.generation.choices import Choices
    from numaproof.protocol.machine import MachineInfo


def on_a_tree(choices: Choices, machine: MachineInfo) -> MachineInfo | None:
    """Returns the machine as discovered from its tree, or None for a life without a tree.

    About half of the lives have a tree.
    """
    return as_discovered(machine) if choices.chance(2) else None


_CACHE = {"type": "Unified", "line": 64, "ways": 8}


def profile(choices: Choices, name: str) -> Profile:
    """Generates a machine with up to two sockets, four nodes with CPUs and sixteen cores.

    One in three has unusual CPUs, ids or caches, or a kernel that omits a file.
    """
    sockets = choices.integer(1, 2)
    nodes = choices.pick((sockets, sockets, 2 * sockets, 1))
    cores = max(1, nodes // sockets) * choices.pick((1, 2, 4))
    threads = choices.integer(1, 2)
    step = choices.pick((1, 1, 2))
    bare = choices.pick((0, 0, 1))
    ids = [place * step for place in range(nodes + bare)]
    plain: dict[str, Any] = {
        "name": name,
        "title": "A generated machine",
        "source": "generated",
        "architecture": "x86_64",
        "topology": {
            "sockets": sockets,
            "cores_per_socket": cores,
            "threads_per_core": threads,
            "nodes": nodes,
            "node_ids": ",".join(map(str, ids[:nodes])),
        },
        "nodes": [_node(choices, one) for one in ids],
        "distances": {"near": 12, "far": choices.pick((20, 21, 32))},
        "caches": [
            {"level": 2, "size": "1M", "shared": "core", **_CACHE},
            {
                "level": 3,
                "size": "16M",
                "shared": choices.pick(("node", "socket", "2 cores")),
                **_CACHE,
            },
        ],
        "cpuinfo": {"vendor": "GenuineIntel", "model": "Made up", "mhz": 2100},
    }
    if choices.chance(3):
        choices.pick(_ODDITIES)(choices, plain)
    return msgspec.convert(plain, Profile)


def _node(choices: Choices, number: int) -> dict[str, Any]:
    memory = choices.pick(("1Gi", "2Gi", "1030Mi"))
    return {"nodes": number, "memory": memory, "hugepages": {"2Mi": choices.pick((0, 64))}}


# Unusual properties


def _offline(choices: Choices, plain: dict[str, Any]) -> None:
    """Takes CPUs offline; an older kernel keeps their topology files."""
    topology = plain["topology"]
    count = topology["sockets"] * topology["cores_per_socket"] * topology["threads_per_core"]
    first = choices.integer(0, count - 1)
    row = {"cpus": f"{first}-{min(first + 1, count - 1)}", "online": False}
    plain["cpus"] = [{**row, "topology": choices.chance(2)}]


def _wide_ids(choices: Choices, plain: dict[str, Any]) -> None:
    first = choices.pick((36, 4090, 8442))
    sockets = plain["topology"]["sockets"]
    plain["topology"]["socket_ids"] = ",".join(str(first + 99 * one) for one in range(sockets))


def _core_ids(choices: Choices, plain: dict[str, Any]) -> None:
    cores = plain["topology"]["cores_per_socket"]
    step = choices.pick((2, 8))
    plain["topology"]["core_ids"] = ",".join(str(one * step) for one in range(cores))


_ODDITIES: tuple[Callable[[Choices, dict[str, Any]], None], ...] = (
    _offline,
    lambda _, plain: plain.update(lacks=["cpu/online"]),
    _wide_ids,
    _core_ids,
    lambda _, plain: plain.update(caches=[{**row, "ids": "none"} for row in plain["caches"]]),
    lambda _, plain: plain.update(caches=[]),
    lambda _, plain: plain["caches"][0].update(shared="2 cores"),
)
