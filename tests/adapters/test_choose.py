"""Measuring what each scenario reaches, separated by `hello` calls."""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.targets import target_of
from numaproof.conformance.differential import recordings
from numaproof.conformance.execution.implementation import InProcess
from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "adapters" / "kubelet" / "reach"
MODULES = ("choose", "building", "cover", "statements")
FILES = "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/"

PROGRAM = f"""
import os, sys
from pathlib import Path
from numaproof.protocol import codec, messages
from numaproof.reference.implementation import Reference
reference, called, greetings = Reference(), set(), 0
for line in sys.stdin.buffer:
    request = codec.decode(line, codec.Request)
    if request.op == "hello":
        lines = [f"{FILES}{{one}}.go:1.1,2.2 1 1" for one in sorted(called)]
        text = "\\n".join(["mode: atomic", *lines, ""])
        Path(os.environ["GOCOVERDIR"], f"covcounters.{{greetings}}").write_text(text)
        called, greetings = set(), greetings + 1
    else:
        called.add(request.op)
    answer = reference.call(request.op, codec.decode_args(request))
    if request.op == "devices":
        answer = messages.Fault("broken")
    sys.stdout.buffer.write(codec.encode_answer(request.id, answer))
    sys.stdout.flush()
"""
"""A reference that "reaches" a file per operation, and breaks when devices are reported."""


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Loads the program, which is a folder without a package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("choose")
    for name in MODULES:
        del sys.modules[name]


def test_coverage_is_kept_by_scenario_and_failed_ones_are_omitted(
    choose: Any, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    seeds = range(25)

    def read(counters: Path) -> str:
        (file,) = counters.iterdir()
        return file.read_text()

    command = shlex.join((sys.executable, str(program)))
    found = dict(choose.play(command, seeds, read))
    target = target_of(InProcess(Reference), kubernetes=RELEASES[-1])
    made = {seed: recordings.record_seed(target, seed, tmp_path) for seed in seeds}
    called = {seed: {call.op for call in one.calls} for seed, one in made.items() if one}
    assert found == {
        seed: {f"{FILES}{one}.go:1.1,2.2" for one in operations}
        for seed, operations in called.items()
        if "devices" not in operations
    }
    assert 0 < len(found) < len(seeds)
    assert len({frozenset(one) for one in found.values()}) > 1
