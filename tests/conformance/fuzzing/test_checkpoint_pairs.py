"""Every pair of the states in which the two parts of a checkpoint may be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, hello_args
from numaproof.conformance.fuzzing.exploration import Explorer, found_file
from numaproof.conformance.fuzzing.generation import checkpoint_pairs as parts
from numaproof.conformance.fuzzing.generation.checkpoint_pairs import pairs
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference
from quality import suite

if TYPE_CHECKING:
    from pathlib import Path

HELLO = Reference().hello(hello_args("tests"))


@pytest.mark.parametrize(
    ("release", "count"), [("1.31", 28_124), ("1.36", 70_922), ("1.37", 70_922)]
)
def test_a_range_of_seeds_has_every_pair_once(release: str, count: int) -> None:
    found = pairs(release)
    assert len(found) == count
    assert len({(one.manager.file, one.policy, one.gates, one.what) for one in found}) == count
    claims = Capabilities(HELLO, release)
    assert found_file(count, claims).case.steps == found_file(0, claims).case.steps


@pytest.mark.parametrize("manager", [parts.CPUS, parts.MEMORY])
@pytest.mark.parametrize("policy", [0, 1])
def test_every_state_of_one_part_meets_every_state_of_the_other(
    manager: parts.ManagersFile, policy: int
) -> None:
    name = manager.policies[policy]
    old, new = dict(parts.old_parts(manager, name)), dict(parts.new_parts(manager, name))
    assert len(set(old.values())) > 40
    assert len(set(new.values())) > 90
    met = {
        one.what
        for one in pairs("1.37")
        if (one.manager, one.policy, one.gates) == (manager, name, ())
    }
    assert {f"{first}; {second}" for first in old for second in new} <= met


def test_a_healthy_reference_starts_with_some_and_refuses_others(tmp_path: Path) -> None:
    explorer = Explorer(suite.target(InProcess(Reference)), tmp_path)
    claims = Capabilities(HELLO, "1.37")
    ends: Counter[str] = Counter()
    for seed in range(0, 70_922, 1_409):
        scenario = found_file(seed, claims)
        played = explorer.play(scenario)
        answer = next(
            call.answer for call in played.run.player.session.calls if call.operation == "start"
        )
        ends[answer.stage if isinstance(answer, messages.StartRefused) else "started"] += 1
    assert ends.keys() == {"cpu", "memory", "started"}
    assert msgspec.to_builtins(found_file(7, claims).case)["machine"]["num_cores"] == 8
