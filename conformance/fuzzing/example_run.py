"""One example of a fuzz run: generated steps, played one by one against the target."""

from __future__ import annotations

from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases.schema import Case
from numaproof.conformance.execution.run import Run, RunResult
from numaproof.conformance.execution.scenario import Scenario
from numaproof.conformance.fuzzing.exploration import ScenarioRun
from numaproof.folders.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numaproof.conformance.cases.schema import Step
    from numaproof.conformance.execution.run import Target
    from numaproof.protocol.events import Outcome
    from numaproof.protocol.machine import MachineInfo


class ExampleFailedError(AssertionError):
    """An example failed; carries the run that shows it."""

    def __init__(self, run: ExampleRun, result: RunResult) -> None:
        super().__init__(result.message)
        self.run = run
        self.result = result


class IdleRun:
    """Stands in for a run once enough has been tried: it calls nothing and finds nothing."""

    def step(self, step: Step) -> None:
        """Does nothing."""

    def finish(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Leaves nothing behind."""


class ExampleRun:
    """A run whose steps are generated as it goes; failures are added to `seen`.

    A failure for one of the `known` causes is no news: the steps after it are left out. It counts
    with the outcome of that cause, which is `known_outcome` then.
    """

    def __init__(
        self,
        target: Target,
        machine: MachineInfo,
        seen: list[ExampleFailedError],
        known: Mapping[str, Outcome] = MappingProxyType({}),
        *,
        from_tree: bool = False,
    ) -> None:
        self._seen = seen
        self._known = known
        self.known_outcome: Outcome | None = None
        self._open = ExitStack()
        scratch = self._open.enter_context(scratch_folder())
        self.machine = machine
        self.steps: list[Step] = []
        placeholder = Case(id="fuzz", title="", requirements=(), steps=(), tree=from_tree)
        self._result = RunResult("pass")
        self.inner = Run(target, placeholder, machine, None, scratch / "run")

    def step(self, step: Step) -> None:
        """Plays one more step, unless an earlier one was not supported and nothing can follow it.

        Raises:
            ExampleFailedError: something is wrong that no known defect explains.
        """
        if self.known_outcome or self.inner.player.lost:
            return
        self.steps.append(step)
        self._result = self.inner.judge(lambda: self.inner.player.step(step))
        self._raise()

    def finish(self) -> None:
        """Looks whether the program outlived its last answer.

        Raises:
            ExampleFailedError: it did not.
        """
        if self._result.good:
            self._result = self.inner.settled(self._result)
            self._raise()

    def _raise(self) -> None:
        if self._result.good:
            return
        self.known_outcome = self._known.get(self.inner.signature(self._result))
        if self.known_outcome is None:
            self._seen.append(ExampleFailedError(self, self._result))
            raise self._seen[-1]

    def close(self) -> None:
        """Removes the state directories."""
        self._open.close()

    def scenario(self) -> Scenario:
        """The steps so far as a scenario."""
        case = msgspec.structs.replace(self.inner.case, level="invariants", steps=tuple(self.steps))
        return Scenario(case, self.machine)

    def played(self) -> ScenarioRun:
        """The same, with how it ended."""
        return ScenarioRun(self.scenario(), self._result, self.inner)

    @property
    def size(self) -> int:
        """How much there is to read."""
        return len(msgspec.json.encode((self.machine, self.steps)))
