"""Texts of each format, published ones and real tools' output, and the machines that they describe.

`NUMAPROOF_WRITE_PAGES=1` updates the answers. Review the diff.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.checkout import SHARED
from numaproof.formats.machines.reading import read
from numaproof.protocol.sets import CPUSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.formats.machines.description import MachineText

HERE = Path(__file__).parent
TEXTS = sorted((HERE / "texts").iterdir())
OPERATORS = SHARED / "operators" / "i19-machine-texts"


def shown(text: MachineText) -> Iterator[str]:
    """What is known about a machine, a line each."""
    machine = text.machine
    yield (
        f"{text.format}: {machine.num_cores} CPUs, {machine.num_physical_cores} cores,"
        f" {machine.num_sockets} sockets, {machine.memory_capacity >> 20} MiB"
    )
    for node in machine.topology or ():
        cores = node.cores or ()
        cpus = CPUSet(cpu for core in cores for cpu in core.thread_ids or ())
        first = min((sorted(core.thread_ids or ()) for core in cores), default=[])
        l3 = {cache for core in cores for cache in core.uncore_caches or ()} | set(
            node.caches or ()
        )
        yield (
            f"  node {node.node_id}: CPUs {cpus}, siblings {first},"
            f" sockets {sorted({core.socket_id for core in cores})}, {node.memory >> 20} MiB,"
            f" distances {list(node.distances or ())}, {len(l3)} caches above level 2, pages"
            f" {[(pool.page_size, pool.num_pages) for pool in node.hugepages or ()]}"
        )
    yield from (f"  {line}" for line in text.lines)


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_a_text_describes_the_machine_as_far_as_it_goes(file: Path) -> None:
    found = read(file.read_bytes(), file.name)
    assert found is not None
    answer = HERE / "answers" / f"{file.name}.txt"
    lines = "\n".join(shown(found)) + "\n"
    if os.environ.get("NUMAPROOF_WRITE_PAGES"):
        answer.write_text(lines, "utf-8")
    assert lines == answer.read_text("utf-8")


@pytest.mark.skipif(not OPERATORS.is_dir(), reason="needs the shared inputs")
def test_the_texts_of_operators_describe_machines() -> None:
    found = {file.name: read(file.read_bytes(), file.name) for file in sorted(OPERATORS.iterdir())}
    shapes = {
        name: (text.machine.num_cores, len(text.machine.topology or ()), text.machine.num_sockets)
        for name, text in found.items()
        if text
    }
    assert shapes == {
        "d01_numactl_tstbed.txt": (24, 2, 2),
        "d03_numactl_cod.txt": (56, 4, 2),
        "d05_lscpu.txt": (256, 2, 2),
        "d08_nrt_kwok.yaml": (32, 2, 2),
        "d12_node.yaml": (96, 1, 1),
    }
