"""Upgrades as they are made up: each kind of change, on nodes that did live before."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from numaproof.conformance.cases import loading, writing
from numaproof.conformance.differential.lockstep import ComparedRun
from numaproof.conformance.execution.capabilities import Capabilities
from numaproof.conformance.execution.implementation import InProcess, hello_args
from numaproof.conformance.execution.run import Target
from numaproof.conformance.fuzzing.exploration import upgrade
from numaproof.conformance.fuzzing.generation.scenarios import CHANGES
from numaproof.protocol import messages
from numaproof.reference.deviations.releases import RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.conformance.execution.session import Call

HELLO = Reference().hello(hello_args("tests"))
OLDEST, NEWEST = RELEASES[0], RELEASES[-1]
ENOUGH = 48


def played(seed: int, before: str, after: str, folder: Path) -> list[Call]:
    """The calls of an upgrade, made to the reference."""
    capabilities = Capabilities(HELLO, before)
    made = upgrade(seed, capabilities, after)
    target = Target(InProcess(Reference), HELLO, before, "kubelet")
    run = ComparedRun(target, made.case, made.machine, None, folder)
    run.player.play()
    return run.player.session.calls


def test_a_seed_makes_the_same_upgrade_and_a_case_file_of_it() -> None:
    claims = Capabilities(HELLO, OLDEST)
    for seed in range(16):
        case = upgrade(seed, claims, NEWEST).case
        assert case == upgrade(seed, claims, NEWEST).case
        (read,) = loading.parse(writing.text(case), "upgrade.yaml")
        assert (read.machine, read.steps) == (case.machine, case.steps)


@pytest.mark.parametrize(("before", "after"), [(OLDEST, NEWEST), (NEWEST, OLDEST)])
def test_upgrades_have_every_kind_of_change_policy_and_outcome(
    before: str, after: str, tmp_path: Path
) -> None:
    met: Counter[str] = Counter()
    for seed in range(ENOUGH):
        folder = tmp_path / str(seed)
        folder.mkdir()
        calls = played(seed, before, after, folder)
        starts = [call for call in calls if isinstance(call.args, messages.StartArgs)]
        first, second, *_, last = starts
        assert isinstance(first.args, messages.StartArgs)
        # A gate that the later release has locked may be one that the first needs.
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
    assert met.keys() >= {*CHANGES, *Capabilities(HELLO, before).cpu_options(), "container", "pod"}
    assert met["lived"] >= ENOUGH - 2
    few = {name: met[name] for name in ("stay", "starts", "refused", "drained", "init containers")}
    assert min(few.values()) > ENOUGH // 8, few
    assert met["all left"] > 0
    assert met["PodLevelResourceManagers"] >= (ENOUGH // 8 if before == NEWEST else 0)
