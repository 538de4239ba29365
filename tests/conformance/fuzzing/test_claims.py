"""Neither cases nor fuzzing use anything that an implementation doesn't claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builders.targets import target_of
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run
from numaproof.conformance.fuzzing.exploration import (
    Explorer,
    node_scenario,
    unusual_start,
    upgrade,
)
from numaproof.protocol import messages
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.conformance.execution.run import Target

OPERATIONS = ("start", "admit", "remove", "state")


class Plain(Reference):
    """Only supports the static CPU policy; anything else is a fault."""

    def __init__(self) -> None:
        super().__init__(follows_docs=True)
        self._seen_folders: set[str] = set()

    def start(self, args: messages.StartArgs) -> messages.Started:
        """Starts only on a given machine, with a new state directory each time."""
        fine = (
            args.state_dir not in self._seen_folders
            and not any(Path(args.state_dir).iterdir())
            and args.machine is not None
            and not args.devices
            and not args.config.get("featureGates")
            and args.config.get("memoryManagerPolicy", "None") == "None"
        )
        self._seen_folders.add(args.state_dir)
        if not fine:
            raise AssertionError(f"never claimed: {args}")
        return super().start(args)

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the answer, unless its kind is not claimed."""
        if isinstance(args, messages.AdmitArgs):
            spec = args.pod["spec"]
            assert not spec.get("initContainers"), spec
            assert "resources" not in spec, spec
            # Every program must ignore resources that no manager reads.
            assert _resources(spec) <= {"cpu", "memory", "ephemeral-storage"}, spec
        assert not (isinstance(args, messages.RemoveArgs) and args.container)
        answer = super().call(operation, args)
        assert not (isinstance(answer, messages.StartRefused) and answer.stage == "config"), answer
        return answer


def _resources(spec: dict[str, Any]) -> set[str]:
    given = (one.get("resources") or {} for one in spec["containers"])
    return {
        name for one in given for kind in ("limits", "requests") for name in one.get(kind) or ()
    }


@pytest.fixture
def plain() -> Target:
    return target_of(
        InProcess(Plain),
        kubernetes="1.37",
        level="admission",
        oracle=True,
        operations=OPERATIONS,
        policies=messages.Policies(cpu=("none", "static")),
        options=messages.Options(),
        features=(),
    )


@pytest.mark.parametrize("make", [node_scenario, unusual_start])
def test_scenarios_only_use_claims(make: Any, plain: Target, tmp_path: Path) -> None:
    explorer = Explorer(plain, tmp_path)
    for seed in range(30):
        played = explorer.play(make(seed, plain.capabilities))
        assert played.result.outcome != "fault", (seed, played.result)
        assert played.run.player.session.missing_claim == "", seed


def test_an_upgrade_without_checkpoint_files_changes_none(plain: Target) -> None:
    for seed in range(16):
        steps = upgrade(seed, plain.capabilities, "1.37").case.steps
        assert {step.verb for step in steps} <= {"start", "admit", "remove"}


def test_cases_only_use_claims(plain: Target, laptop: ProfileMachine, tmp_path: Path) -> None:
    runs = [
        run
        for run in runner.select(loading.bundled_cases(), [laptop], plain)
        if not run.only_invariants
    ]
    outcomes, begun = set(), []
    for number, one in enumerate(runs):
        assert laptop.info is not None
        tree = one.machine.tree
        run = Run(plain, one.case, one.machine.info or laptop.info, tree, tmp_path / str(number))
        result = run.play()
        outcomes.add(result.outcome)
        assert result.outcome != "fault", (one.case.id, result)
        assert (result.outcome == "unsupported") == bool(run.player.session.missing_claim)
        if result.outcome == "unsupported":
            begun.append(bool(run.steps()))
    # Most needs are known before the first call.
    assert sum(begun) < len(begun) / 10
    assert outcomes >= {"pass", "unsupported"}
