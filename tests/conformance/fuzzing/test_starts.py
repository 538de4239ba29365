"""Starts with something odd in them, and trees that are odd."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import loading, writing
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, hello_args
from numaproof.conformance.fuzzing.exploration import Explorer, odd_start, tree
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference
from quality import suite
from quality.catalogue import BUGS

if TYPE_CHECKING:
    from pathlib import Path

HELLO = Reference().hello(hello_args("tests"))
CLAIMS = Capabilities(HELLO, HELLO.kubernetes[-1])


def test_a_seed_makes_the_same_start_and_a_case_file_of_it() -> None:
    for seed in range(20):
        case = odd_start(seed, CLAIMS).case
        assert case == odd_start(seed, CLAIMS).case
        (read,) = loading.parse(writing.text(case), "start.yaml")
        assert (read.machine, read.steps) == (case.machine, case.steps)


def test_starts_are_refused_at_every_stage_and_some_are_not(tmp_path: Path) -> None:
    explorer = Explorer(suite.target(InProcess(Reference)), tmp_path)
    ends: Counter[str] = Counter()
    for seed in range(150):
        played = explorer.play(odd_start(seed, CLAIMS))
        assert played.broken == ""
        (answer,) = (
            call.answer for call in played.run.player.session.calls if call.operation == "start"
        )
        ends[answer.stage if isinstance(answer, messages.StartRefused) else "started"] += 1
    assert ends.keys() >= {"config", "topology", "cpu", "memory", "started"}


def test_odd_trees_lack_cpus_lists_and_caches(tmp_path: Path) -> None:
    scenarios = [tree(seed, tmp_path / str(seed)) for seed in range(60)]
    infos = [scenario.machine for scenario in scenarios]
    cores = [core for info in infos for node in info.topology or () for core in node.cores or ()]
    assert any(core.caches is None for core in cores)
    assert any(core.socket_id is not None and core.socket_id > 30 for core in cores)
    roots = [scenario.tree.directory() for scenario in scenarios if scenario.tree]
    online = [root / "sys/devices/system/cpu/online" for root in roots]
    assert 0 < sum(not file.exists() for file in online) < len(online)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    [
        "a-list-of-cpus-that-cannot-be-read-names-none",
        "a-reservation-that-cannot-be-is-passed-over",
        "reserved-memory-that-cannot-be-read-is-none",
        "numbers-and-booleans-are-texts",
    ],
)
def test_who_takes_what_no_kubelet_takes_is_judged_all_the_same(tmp_path: Path, bug: str) -> None:
    seeded = next(one for one in BUGS if one.id == bug)
    explorer = Explorer(suite.target(seeded.implementation(), compared=True), tmp_path)
    broken = {explorer.play(odd_start(seed, CLAIMS)).broken for seed in range(200)}
    assert "difference" in broken
