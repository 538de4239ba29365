"""`check` for programs that use numaproof as a library."""

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
    jobs: int = 1,
) -> Iterator[AnyEvent]:
    """Plays the bundled cases against an implementation and yields events as they happen.

    The last event is a `RunEnded`. Closing the iterator early ends the program.

    Args:
        implementation: the command line of a program that speaks the protocol, or of several
            programs for different releases; None for the reference.
        select: patterns of cases to play, as for `numaproof check --select`; all if empty.
        exclude: patterns of cases to leave out.
        machines: names of bundled machines; all if empty.
        kubernetes: the release to test against; None for the newest that the program claims.
        level: how closely to compare answers; None for the level that the program claims.
        baseline: which behaviour to expect where the kubelet contradicts its documentation.
        timeout: the time limit for a call, in seconds.
        jobs: how many processes to use. With several, a script needs an
            ``if __name__ == "__main__"`` block, because the others import it.

    Raises:
        TargetError: an argument doesn't fit the implementation.
        SelectionError: a pattern is invalid or matches nothing.
        ProfileError: there is no such machine.
        ImplementationFailure: the program didn't answer `hello`.
        ParallelError: it didn't answer `hello` while another copy of it was running.
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
        check_options = whole_check.CheckOptions(jobs=jobs)
        harness_run = HarnessRun(target, registry, "", "")
        yield from whole_check.check(runs, harness_run, options=check_options)
