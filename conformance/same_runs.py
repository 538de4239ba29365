"""Runs of the reference in several releases, of which those that are the same are played once.

A run that passes in one release passes in another one, too, if there all of these are the same:

- what the reference consults of the release (`numaproof.reference.noting`): then it
  gives the same answers;
- what the case expects of each step, and whether it shows a defect of the release;
- what the configurations entitle containers to, by which the invariants judge;
- what the files say that are written, to those who read them;
- what the calls need of an implementation.

The harness makes its calls from the case, the machine and the answers before, and judges by nothing
else. A run that did not pass is played in each release, as is a case that names releases itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.cases import releases
from numaproof.conformance.claims import needs
from numaproof.conformance.claims.needs import CHECKPOINT_FILES, EarlierStart
from numaproof.conformance.execution.implementation import InProcess
from numaproof.conformance.execution.runner import play_case, reproduce
from numaproof.conformance.judging import entitlement
from numaproof.conformance.judging.invariants import files, memory_file, node
from numaproof.conformance.judging.known_defects import known_defects
from numaproof.protocol import messages
from numaproof.reference.noting.notes import Notes
from numaproof.reference.noting.reference import NotingReference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.runner import PlayedCase, SelectedCase
    from numaproof.conformance.execution.session import Call
    from numaproof.conformance.judging.sides import Side
    from numaproof.protocol.events import CaseFinished
    from numaproof.protocol.machine import MachineInfo


class NotingInProcess(InProcess):
    """The reference in this process, on a side, with notes of what it consults."""

    def __init__(self, side: Side) -> None:
        self.notes = Notes()
        super().__init__(
            lambda: NotingReference(
                self.notes, documented=side.documented, exceptions=side.exceptions
            )
        )


class SameRuns:
    """Plays case runs in one release after the other, and remembers those that are the same.

    Args:
        reference: what is played against, as each of the releases.
        in_order: the releases.
    """

    def __init__(self, reference: NotingInProcess, in_order: Sequence[str]) -> None:
        self._notes = reference.notes
        self._releases = tuple(in_order)
        self._same: dict[tuple[str, str, str], CaseFinished] = {}

    def run_case(self, one: SelectedCase, harness_run: HarnessRun, scratch: Path) -> CaseFinished:
        """Plays a case on a machine, or tells of the run in another release that is the same.

        Raises:
            CaseError: the case can't be played as it is written.
        """
        release = harness_run.target.kubernetes
        same = self._same.pop((one.case.id, one.machine.name, release), None)
        if same is not None:
            again = reproduce(one, harness_run)
            return msgspec.structs.replace(same, at=harness_run.elapsed(), reproduce=again)
        self._notes.begin(release, self._later(one.case, release))
        played = play_case(one, harness_run, scratch)
        if played.finished.outcome == "pass":
            for other in self._notes.same:
                if _judged_alike(played, one.info, other) and self._files_alike(played, other):
                    self._same[one.case.id, one.machine.name, other] = msgspec.structs.replace(
                        played.finished, seconds=0.0, same_as=release
                    )
        return played.finished

    def _later(self, case: Case, release: str) -> Iterator[str]:
        """The releases after one, in which the case is played as well."""
        for other in self._releases[self._releases.index(release) + 1 :]:
            if releases.includes(case.kubernetes, other):
                yield other

    def _files_alike(self, played: PlayedCase, other: str) -> bool:
        """Whether all files that were written say the same to who read them in the run.

        A case that expects or changes files reads them word for word, the invariants what they say.
        """
        exact = CHECKPOINT_FILES in played.finished.needs
        return all(
            texts[self._notes.played] == texts[other]
            or (not exact and _says_the_same(name, texts[self._notes.played], texts[other]))
            for name, texts in self._notes.files
        )


def _says_the_same(name: str, one: bytes, other: bytes) -> bool:
    try:
        return said(name, one) == said(name, other)
    except (msgspec.DecodeError, ValueError):
        return False


def said(name: str, text: str | bytes) -> files.File:
    """What invariants read of the file with this name.

    Raises:
        ValueError: it cannot be read.
        msgspec.DecodeError: likewise.
    """
    return files.read(text, _READ_AS[name])


_READ_AS: Mapping[str, type[files.File]] = {
    node.CPU_FILE: node.CPUFile,
    memory_file.FILE_NAME: memory_file.Content,
}


def _judged_alike(played: PlayedCase, machine: MachineInfo, other: str) -> bool:
    """Whether answers that pass in the played release pass in another one."""
    run = played.run
    release, case = run.target.kubernetes, run.case
    if any(step.start and step.start.kubernetes for step in case.steps):
        return False
    if (case.defect in known_defects(release)) != (case.defect in known_defects(other)):
        return False
    if any(step.on(release) != step.on(other) for step in case.steps):
        return False
    calls = run.player.session.calls
    pods = [call.args.pod for call in calls if isinstance(call.args, messages.AdmitArgs)]
    pods += [pod for call in calls for pod in getattr(call.args, "pods", ())]
    as_a_whole = any("resources" in pod["spec"] for pod in pods)
    starts = [call.args for call in calls if isinstance(call.args, messages.StartArgs)]
    # Flags are those of a release: a start with some is the same in no other.
    return (
        not any(start.flags for start in starts)
        and all(
            entitlement.alike(config, (release, other), pods_as_a_whole=as_a_whole)
            for config in ({}, *(start.config for start in starts))
        )
        and _needs_alike(calls, machine, other)
    )


def _needs_alike(calls: Sequence[Call], machine: MachineInfo, other: str) -> bool:
    """Whether the same calls need the same claims in another release."""
    earlier: EarlierStart | None = None
    for call in calls:
        args = call.args
        if isinstance(args, messages.StartArgs):
            machine = args.machine or machine
        if call.needs != tuple(needs.of_call(call.operation, args, other, machine, earlier)):
            return False
        if isinstance(call.answer, messages.Started) and isinstance(args, messages.StartArgs):
            earlier = EarlierStart(args.config, machine)
    return True
