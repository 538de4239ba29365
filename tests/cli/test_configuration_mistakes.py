"""Mistakes in configurations are answered with what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Command

HEAD = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"


@pytest.mark.parametrize("cpus", ["0,99", "x"])
def test_reserved_cpus_that_are_refused_are_one_error(command: Command, cpus: str) -> None:
    text = f"{HEAD}cpuManagerPolicy: static\nreservedSystemCPUs: '{cpus}'\n"
    Path("k.yaml").write_text(text, "utf-8")
    ended = command("config", "check", "k.yaml", "--machine", "epyc-7402p-nps2")
    assert ended.code == 1
    assert ended.out.count(": error: ") == 1
    assert ": error: reservedSystemCPUs: " in ended.out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reservedMemory: [null, {numaNode: null}]", "reservedMemory [null, {numaNode: null}]"),
        (
            "spec: {cpuManagerPolicy: static}",
            "spec: unknown field (move the fields in spec out of it)",
        ),
        ("maxPods: 99999999999999999999", "use a smaller number, or quote it if it is text"),
    ],
)
def test_a_mistake_is_shown_as_written(command: Command, line: str, message: str) -> None:
    Path("k.yaml").write_text(f"{HEAD}{line}\n", "utf-8")
    ended = command("config", "check", "k.yaml", "--machine", "epyc-7402p-nps2")
    assert message in ended.out + ended.err
