"""Checks an implementation from a program, without the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance import check as whole_check
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import runner
from numaproof.conformance.execution.harness_run import DEFAULT_TIMEOUT, HarnessRun
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.opening import TargetOptions, open_target
from numaproof.conformance.requirements import load_registry
from numaproof.conformance.selection import needs
from numaproof.conformance.selection.patterns import Selection
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numaproof.protocol.events import AnyEvent, BaselineChoice
    from numaproof.protocol.messages import Level


def check(
    implementation: str | Sequence[str] | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    machines: Sequence[str] = (),
    kubernetes: str | None = None,
    level: Level | None = None,
    baseline: BaselineChoice | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Iterator[AnyEvent]:
    """Plays the bundled cases against an implementation, and yields events as they happen.

    The last event is a `RunEnded`. Closing the iterator early ends the program.

    Args:
        implementation: the command line of a program that speaks the protocol, or those of
            several, each for the releases that it claims; None for the reference.
        select: patterns of the cases to play, as for `numaproof check --select`; all if empty.
        exclude: patterns of those to leave out.
        machines: names of bundled machines; all if empty.
        kubernetes: the release to test against; None for the newest that the program claims.
        level: how closely to compare answers; None for the level that the program claims.
        baseline: what is right where kubelets contradict their documents.
        timeout: seconds that one call may take.

    Raises:
        TargetError: an argument does not fit the implementation.
        SelectionError: a pattern is wrong, or matches nothing.
        ProfileError: there is no such machine.
        ImplementationFailure: the program did not answer `hello`.
    """
    cases = loading.bundled_cases()
    registry = load_registry()
    selection = Selection(select, exclude, registry, needs.features_of)
    selection.check(cases)
    profiles = [fakesys.load_profile(name) for name in machines or fakesys.bundled_profiles()]
    options = TargetOptions(implementation, timeout, kubernetes, level, baseline)
    with scratch_folder() as trees, open_target(options) as target:
        catalogue = [ProfileMachine(one, trees) for one in profiles]
        runs = runner.select(selection.of(cases), catalogue, target)
        yield from whole_check.check(runs, HarnessRun(target, registry, "", ""))
