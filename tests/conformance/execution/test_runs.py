"""Cases played on a laptop against the original and changed references, from `runs.yaml`.

`program` names the change of the reference; `target` has its claims and the comparison. `says` has
the verdict, the calls (`!` marks a problem), and leftovers. `about` lists the requirements of a
case; `kept`, `unseen` and `violated` list those with that result.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from builders.devices import choosing
from builders.tables import Table
from builders.targets import ChangedReference, case_of, target_of
from numaproof.conformance.cases.loading import CaseError
from numaproof.conformance.execution.implementation import (
    BrokeProtocol,
    Crashed,
    InProcess,
    TimedOut,
)
from numaproof.conformance.execution.run import Run
from numaproof.protocol import messages
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.sets import CPUSet
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numaproof.conformance.execution.implementation import ImplementationFailure
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.conformance.execution.run import RunResult

RUNS = Table(__file__, "runs.yaml")
replace_fields = msgspec.structs.replace

Change = Any
"""A change to the answer, or one for each call."""


def app(**changes: object) -> Change:
    """Changes an admitted container."""

    def change(answer: messages.Answer) -> messages.Answer:
        if not isinstance(answer, messages.Admitted):
            return answer
        return messages.Admitted({"app": replace_fields(answer.containers["app"], **changes)})

    return change


def instead(answer: messages.Answer) -> Change:
    return lambda _: answer


def later(answer: messages.Answer) -> Change:
    """Answers differently from the second call on."""
    numbers = iter(range(100))
    return lambda original: answer if next(numbers) else original


def reword(*pairs: tuple[str, str]) -> Change:
    """Changes the messages of refusals."""

    def change(answer: Any) -> messages.Answer:
        message = getattr(answer, "message", None)
        for old, new in pairs if message else ():
            message = message.replace(old, new)
        return replace_fields(answer, message=message) if message else answer

    return change


def half_blind(answer: messages.Answer) -> messages.Answer:
    """A machine with other core ids, listed in reverse, without caches."""
    if not isinstance(answer, MachineInfo):
        return answer
    unseen = {"caches": None, "uncore_caches": None}
    nodes = tuple(
        replace_fields(
            node,
            memory=7,
            caches=None,
            cores=tuple(
                replace_fields(core, core_id=number, **unseen)
                for number, core in enumerate(reversed(node.cores or ()))
            ),
        )
        for node in answer.topology or ()
    )
    return replace_fields(answer, topology=nodes, num_sockets=0)


def backwards(machine: MachineInfo) -> MachineInfo:
    """A machine with cores listed in reverse."""
    nodes = (replace_fields(one, cores=(one.cores or ())[::-1]) for one in machine.topology or ())
    return replace_fields(machine, topology=tuple(nodes))


SWAPPED = reword(("bogus-a", "x"), ("bogus-b", "bogus-a"), ("x", "bogus-b"))
CHANGES: dict[str, Callable[[], dict[str, Change]]] = {
    "admits once": lambda: {"admit": later(messages.AdmissionRefused("Other", "no"))},
    "supports one admission": lambda: {"admit": later(messages.Unsupported("admitting twice"))},
    "hands out CPU 0": lambda: {"admit": app(exclusive=CPUSet([0, 2]))},
    "hands out CPUs 2 and 5": lambda: {"admit": app(exclusive=CPUSet([2, 5]), cpus=CPUSet([2, 5]))},
    "supports no pods": lambda: {"admit": instead(messages.Unsupported("pods"))},
    "breaks at pods": lambda: {"admit": instead(messages.Fault("boom", "line 3"))},
    "refuses pods": lambda: {"admit": instead(messages.AdmissionRefused("SMTAlignmentError", ""))},
    "supports no state": lambda: {"state": instead(messages.Unsupported("state"))},
    "loses CPU 7": lambda: {
        "state": lambda state: replace_fields(state, shared=state.shared - CPUSet([7]))
    },
    "names the other option": lambda: {"start": SWAPPED, "assign": SWAPPED},
    "forgets an update": lambda: {
        "reconcile": lambda answer: messages.Reconciled(answer.updates[1:])
    },
    "takes d0": lambda: {"admit": app(devices={"v.example/nic": ("d0",)})},
    "is half blind": lambda: {"discover": half_blind},
    "lists cores from the last": lambda: {"discover": backwards},
    "refuses machines": lambda: {"discover": instead(messages.StartRefused("discovery", "no"))},
    "names nic for gpu": lambda: {"admit": reword(("v.example/gpu", "v.example/nic"))},
}
FAILURES: dict[str, type[ImplementationFailure]] = {
    "crashes": Crashed,
    "hangs": TimedOut,
    "breaks the protocol": BrokeProtocol,
}


class Elsewhere(Reference):
    """Reserves another CPU."""

    def start(self, args: messages.StartArgs) -> messages.Started:
        """Starts with CPU 3 reserved."""
        config = {**args.config, "reservedSystemCPUs": "3"}
        return super().start(replace_fields(args, config=config))


class Last(Reference):
    """Takes the last of equivalent devices."""

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the reference's answer with the last devices preferred."""
        if isinstance(args, messages.AdmitArgs):
            self.prefer(choosing(args.pod, "v.example/nic", "d1", "d2", "d3"))
        return super().call(operation, args)


class Picky(Reference):
    """Doesn't support pod `a` after `starts` starts, `remove`, or new `devices`."""

    def __init__(self, starts: int = 1, wrong: str = "") -> None:
        super().__init__()
        self._starts_left = starts
        self._wrong = wrong

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Returns the reference's answer, or unsupported."""
        self._starts_left -= operation == "start"
        pod = args.pod["metadata"]["uid"] if isinstance(args, messages.AdmitArgs) else ""
        if operation in ("remove", "devices") or (pod == "uid-a" and self._starts_left <= 0):
            return messages.Unsupported(f"{operation} {pod}".strip())
        answer = super().call(operation, args)
        if isinstance(answer, messages.Admitted) and pod == self._wrong:
            affinity = answer.containers["app"].affinity
            turned = replace_fields(affinity, preferred=not affinity.preferred)
            changed: messages.Answer = app(affinity=turned)(answer)
            return changed
        return answer


CLASSES: dict[str, Callable[[], Reference]] = {
    "reserves CPU 3": Elsewhere,
    "takes the last devices": Last,
    "lacks pod a": Picky,
    "lacks pod a later": lambda: Picky(starts=2),
    "lacks pod a, turns b": lambda: Picky(wrong="uid-b"),
}


class Failing(InProcess):
    """Never answers a start."""

    def __init__(self, kind: type[ImplementationFailure]) -> None:
        super().__init__(Reference)
        self._kind = kind

    def call(self, operation: str, args: messages.Args) -> messages.Answer:
        """Only answers `hello`."""
        if operation != "hello":
            raise self._kind(f"no answer to {operation}", "last words")
        return super().call(operation, args)


@RUNS
def test_a_run_has_the_expected_result(
    row: dict[str, Any],
    laptop: ProfileMachine,
    tmp_path: Path,
) -> None:
    name = row.get("program", "")
    wanted = dict(row.get("target", {}))
    if "policies" in wanted:
        wanted["policies"] = msgspec.convert(wanted["policies"], messages.Policies)
    claims = wanted.pop("claims", {})
    if name in FAILURES:
        program: InProcess = Failing(FAILURES[name])
    elif name in CHANGES:
        program = InProcess(lambda: ChangedReference(**CHANGES[name]()))
    else:
        program = InProcess(CLASSES.get(name, Reference))
    target = target_of(program, **wanted)
    target = replace(target, hello=replace_fields(target.hello, **claims))
    assert laptop.info is not None
    tree = laptop.tree if row.get("tree", True) else None
    case = replace_fields(case_of(row["case"]), requirements=row.get("about", ()))
    run = Run(target, case, laptop.info, tree, tmp_path / "run")
    try:
        result = run.play()
    except CaseError as error:
        RUNS.check(row, str(error).splitlines()[0])
        return
    RUNS.check(row, run_fields(run, result))


def run_fields(run: Run, result: RunResult) -> dict[str, object]:
    """The results of a run, without empty ones."""
    session = run.player.session
    before = [f"{step.operation}: {deed}" for step in run.steps() for deed in step.before]
    with suppress(LookupError):
        assert run.steps()[0].args.get("state_dir", "$STATE_DIR") == "$STATE_DIR"
    found = {
        "outcome": result.outcome,
        "message": result.message,
        "besides": [one for one in map(str, run.player.problems) if one != result.message],
        "log": result.stderr,
        "defect": result.defect,
        "signature": run.signature(result),
        "calls": " ".join(step.operation + "!" * bool(step.problems) for step in run.steps()),
        "between": before,
        "broken": [one.invariant for one in run.player.violations],
        "agreed": session.agreed_level if run.target.oracle else "",
        "unclaimed": session.missing_claim,
        "unseen": " ".join(run.undiscovered()),
        "kept": " ".join(run.unaffected(result)),
        "violated": " ".join(run.violated_requirements(result)) if run.case.requirements else "",
        "pods": " ".join(session.pods),
        "pictures": [
            f"{picture.title}: {', '.join(owner.name for owner in picture.owners)}"
            for picture in run.pictures()
        ],
    }
    return {name: value for name, value in found.items() if value}
