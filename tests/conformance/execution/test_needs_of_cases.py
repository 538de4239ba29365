"""A bundled case is not begun with an implementation that does not claim all that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.conformance.cases import loading
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.run import Run, RunResult, Target
from numaproof.conformance.selection import needs as needs_of_bundled
from numaproof.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo

NEED = "feature container-removal"


def test_a_case_that_needs_what_is_not_claimed_calls_nothing_and_cannot_fail(
    tmp_path: Path,
    info: MachineInfo,
    make_target: Callable[..., Target],
    changed: Callable[..., InProcess],
) -> None:
    case = next(one for one in loading.bundled_cases() if one.id == "remove-one-container")
    needs = needs_of_bundled.of_case(case.id) or ()
    assert NEED in needs
    broken = InProcess(lambda: changed(admit=lambda _: messages.AdmissionRefused("Odd", "no")))

    def played(name: str, *features: str) -> tuple[RunResult, Run]:
        target = make_target(broken, level="invariants", features=features)
        run = Run(target, case, info, None, tmp_path / name)
        return run.play(), run

    claimed = [one.removeprefix("feature ") for one in needs if one.startswith("feature ")]
    assert played("claimed", *claimed)[0].outcome == "fail"
    result, run = played("unclaimed", *(one for one in claimed if f"feature {one}" != NEED))
    assert result == RunResult("unsupported", f"the implementation does not have {NEED}")
    assert not run.steps()
    assert run.player.session.unclaimed == NEED
