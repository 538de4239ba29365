"""Generated starts, trees, pairs of checkpoint states, and upgrades."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import loading, writing
from numaproof.conformance.differential.lockstep import ComparedRun
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, hello_args
from numaproof.conformance.execution.run import Target
from numaproof.conformance.fuzzing.exploration import (
    Explorer,
    checkpoint_pair,
    tree,
    unusual_start,
    upgrade,
)
from numaproof.conformance.fuzzing.generation.checkpoint_pairs import pairs
from numaproof.conformance.fuzzing.generation.scenarios import CHANGES, seeded_scenario
from numaproof.protocol import messages
from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference
from quality import suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.run import Scenario

HELLO = Reference().hello(hello_args("tests"))
OLDEST, NEWEST = RELEASES[0], RELEASES[-1]
CLAIMS = {release: Capabilities(HELLO, release) for release in RELEASES}


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: unusual_start(seed, CLAIMS[NEWEST]).case,
        lambda seed: upgrade(seed, CLAIMS[OLDEST], NEWEST).case,
        lambda seed: seeded_scenario(seed, CLAIMS[NEWEST]),
    ],
    ids=["start", "upgrade", "life"],
)
def test_a_seed_always_generates_the_same_case(make: Callable[[int], Case]) -> None:
    for seed in range(20):
        case = make(seed)
        assert case == make(seed)
        (read,) = loading.parse(writing.text(case), "case.yaml")
        assert (read.machine, read.steps) == (case.machine, case.steps)


def ends(scenarios: Iterable[Scenario], folder: Path) -> set[tuple[str, str]]:
    """Returns how the first starts of scenarios end, and what they break."""
    explorer = Explorer(suite.target(InProcess(Reference)), folder)
    found = set()
    for scenario in scenarios:
        played = explorer.play(scenario)
        calls = played.run.player.session.calls
        answer = next(call.answer for call in calls if call.operation == "start")
        stage = answer.stage if isinstance(answer, messages.StartRefused) else "started"
        found.add((stage, played.failure_kind))
    return found


def test_generated_starts_fail_at_every_stage_or_succeed(tmp_path: Path) -> None:
    odd = ends((unusual_start(seed, CLAIMS[NEWEST]) for seed in range(150)), tmp_path / "odd")
    stages = {stage for stage, broken in odd if broken == ""}
    assert stages >= {"config", "topology", "cpu", "memory", "started"}
    assert len(stages) == len(odd)
    files = (checkpoint_pair(seed, CLAIMS["1.37"]) for seed in range(0, 70_922, 2_819))
    found = {stage for stage, _ in ends(files, tmp_path / "found")}
    assert found == {"cpu", "memory", "started"}


@pytest.mark.parametrize(
    ("release", "count"), [("1.31", 28_124), ("1.36", 70_922), ("1.37", 70_922)]
)
def test_a_range_of_seeds_covers_all_pairs_of_checkpoint_states(release: str, count: int) -> None:
    found = pairs(release)
    assert len(found) == count
    assert len({(one.manager.file, one.policy, one.gates, one.what) for one in found}) == count
    claims = CLAIMS[release]
    assert checkpoint_pair(count, claims).case.steps == checkpoint_pair(0, claims).case.steps


def test_generated_trees_lack_cpus_lists_and_caches(tmp_path: Path) -> None:
    scenarios = [tree(seed, tmp_path / str(seed)) for seed in range(60)]
    infos = [scenario.machine for scenario in scenarios]
    cores = [core for info in infos for node in info.topology or () for core in node.cores or ()]
    assert any(core.caches is None for core in cores)
    assert any(core.socket_id is not None and core.socket_id > 30 for core in cores)
    roots = [scenario.tree.directory() for scenario in scenarios if scenario.tree]
    online = [root / "sys/devices/system/cpu/online" for root in roots]
    assert 0 < sum(not file.exists() for file in online) < len(online)


ENOUGH = 48
"""How many generated upgrades it takes to get every kind."""


@pytest.mark.parametrize(("before", "after"), [(OLDEST, NEWEST), (NEWEST, OLDEST)])
def test_generated_upgrades_cover_all_changes_and_outcomes(
    before: str, after: str, tmp_path: Path
) -> None:
    met: Counter[str] = Counter()
    for seed in range(ENOUGH):
        made = upgrade(seed, CLAIMS[before], after)
        target = Target(InProcess(Reference), HELLO, before, "kubelet")
        run = ComparedRun(target, made.case, made.machine, None, tmp_path / str(seed))
        run.player.play()
        calls = run.player.session.calls
        starts = [call for call in calls if isinstance(call.args, messages.StartArgs)]
        first, second, *_, last = starts
        assert isinstance(first.args, messages.StartArgs)
        # The first release may need a gate that the later one has locked.
        met["lived"] += isinstance(first.answer, messages.Started)
        config = first.args.config
        for policy in ("cpuManagerPolicy", "memoryManagerPolicy", "topologyManagerPolicy"):
            met[config.get(policy, "off")] += 1
        met[config.get("topologyManagerScope", "container")] += 1
        met.update(config.get("cpuManagerPolicyOptions", {}).keys())
        met.update(config.get("featureGates", {}).keys())
        met[list(CHANGES)[seed % len(CHANGES)]] += 1
        met["stay"] += len(second.args.pods) > 0
        met["all left"] += not second.args.pods
        met["starts"] += isinstance(second.answer, messages.Started)
        met["refused"] += isinstance(second.answer, messages.StartRefused)
        met["drained"] += isinstance(last.answer, messages.Started) and not last.args.pods
        met["init containers"] += any(pod["spec"].get("initContainers") for pod in second.args.pods)
    assert met.keys() >= {"static", "Static", "restricted", "best-effort", "single-numa-node"}
    assert met.keys() >= {*CHANGES, *CLAIMS[before].cpu_options(), "container", "pod"}
    assert met["lived"] >= ENOUGH - 2
    few = {name: met[name] for name in ("stay", "starts", "refused", "drained", "init containers")}
    assert min(few.values()) > ENOUGH // 8, few
    assert met["all left"] > 0
    assert met["PodLevelResourceManagers"] >= (ENOUGH // 8 if before == NEWEST else 0)
