"""Machines as profiles, whose trees can be discovered: small ones, odd in what discovery reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.conformance.cases import Case, NoArguments, Step
from numaproof.fakesys import Profile

if TYPE_CHECKING:
    from numaproof.conformance.generation.choices import Choices

_CACHE = {"type": "Unified", "line": 64, "ways": 8}


def profile(choices: Choices, name: str) -> Profile:
    """A machine of up to two sockets, four nodes with CPUs and sixteen cores."""
    sockets = choices.integer(1, 2)
    nodes = choices.pick((sockets, sockets, 2 * sockets, 1))
    cores = max(1, nodes // sockets) * choices.pick((1, 2, 4))
    step = choices.pick((1, 1, 2))
    bare = choices.pick((0, 0, 1))
    ids = [place * step for place in range(nodes + bare)]
    plain: dict[str, Any] = {
        "name": name,
        "title": "A made-up machine",
        "source": "made up",
        "architecture": "x86_64",
        "topology": {
            "sockets": sockets,
            "cores_per_socket": cores,
            "threads_per_core": choices.integer(1, 2),
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
    return msgspec.convert(plain, Profile)


def discovery(name: str) -> Case:
    """The scenario of discovering a tree."""
    return Case(
        id=name,
        title="A made-up machine is discovered",
        requirements=(),
        level="invariants",
        steps=(Step(discover=NoArguments(), expect="anything"),),
    )


def _node(choices: Choices, number: int) -> dict[str, Any]:
    memory = choices.pick(("1Gi", "2Gi", "1030Mi"))
    return {"nodes": number, "memory": memory, "hugepages": {"2Mi": choices.pick((0, 64))}}
