"""What the form of a case cannot say: whether its steps make sense."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from numaproof.conformance.cases import releases
from numaproof.conformance.cases.schema import VERBS, Case, Expected, ExpectedIn, Step
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.inputs.errors import PathTuple
    from numaproof.protocol.messages import Told


EXPECTED_BY_VERB: dict[str, frozenset[str]] = {
    "start": frozenset(
        {"refused", "message", "all", "allocatable", "readmission", "memory", "config"}
    ),
    "admit": frozenset({"refused", "message", "containers", "pod"}),
    "remove": frozenset(),
    "state": frozenset({"shared", "pods", "files", "checkpoints"}),
    "reconcile": frozenset({"updates"}),
    "hints": frozenset({"hints"}),
    "assign": frozenset({"refused", "message", "cpus"}),
    "discover": frozenset({"refused", "message", "machine"}),
    "tamper": frozenset(),
    "devices": frozenset(),
    "merge": frozenset({"hint", "admit"}),
}
"""Which expectations make sense for which verb."""


MAX_STEPS = 1000
"""Steps of a case. After each, the whole node is judged and kept for the report; a case that
fuzzing finds has a few dozen."""


class WrongCaseError(ValueError):
    """A case makes no sense: the path of the field below the case, what is wrong, and the fix."""

    def __init__(self, path: PathTuple, message: str, fix: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.fix = fix


def check(case: Case) -> None:
    """Checks the steps of a case, and the releases that they and the case name.

    Raises:
        WrongCaseError: one of them makes no sense.
    """
    check_range(case.kubernetes, ("kubernetes",))
    if not case.steps:
        raise WrongCaseError(("steps",), "a case needs a step", "give it one, or remove it")
    if len(case.steps) > MAX_STEPS:
        message = f"{len(case.steps):,} steps, more than {MAX_STEPS:,}"
        raise WrongCaseError(("steps",), message, "make several cases of it")
    for number, step in enumerate(case.steps):
        _check_step(("steps", number), step, case.kubernetes)
        _check_told(("steps", number, "expect"), step, case.tell)
    if isinstance(case.devices, dict):
        for resource in case.preferred.keys() - case.devices.keys():
            message = f"no devices of {resource} are in the case"
            raise WrongCaseError(("preferred", resource), message, "name a resource of devices")


def check_range(kubernetes: str, path: PathTuple) -> None:
    """Checks a range of releases, which is written at a path.

    Raises:
        WrongCaseError: it is none.
    """
    with _readable(path, _A_RANGE):
        releases.includes(kubernetes, RELEASES[0])


_A_RANGE = 'write "< 1.36" or ">= 1.36"'


@contextmanager
def _readable(path: PathTuple, fix: str) -> Iterator[None]:
    """Reports releases that are written at a path in no form that there is."""
    try:
        yield
    except releases.ConstraintError as error:
        raise WrongCaseError(path, str(error), fix) from None


def _check_step(path: PathTuple, step: Step, kubernetes: str) -> None:
    given = [verb for verb in VERBS if getattr(step, verb) is not None]
    if len(given) != 1:
        message = f"a step does one thing, this one has {' and '.join(given) or 'no verb'}"
        raise WrongCaseError(path, message, f"give it one of {', '.join(VERBS)}")
    if step.start is not None and step.start.kubernetes is not None:
        with _readable((*path, "start", "kubernetes"), 'write a release such as "1.36"'):
            releases.check_name(step.start.kubernetes)
    tamper = step.tamper
    if tamper and tamper.checkpoint is not None and (tamper.how != "write" or tamper.text):
        message = "a checkpoint is written, in the place of a text"
        raise WrongCaseError(
            (*path, "tamper", "checkpoint"), message, "let how be write, and leave out text"
        )
    if isinstance(step.expect, Expected):
        _check_verb((*path, "expect"), step.expect, given[0])
    elif isinstance(step.expect, tuple):
        for number, one in enumerate(step.expect):
            _check_verb((*path, "expect", number), one, given[0])
        _check_releases((*path, "expect"), step.expect, kubernetes)


def _check_told(path: PathTuple, step: Step, tell: tuple[Told, ...]) -> None:
    """What answers say on request can be expected only where starts ask for it."""
    for one in step.expect if isinstance(step.expect, tuple) else (step.expect,):
        if not isinstance(one, Expected):
            continue
        pods = (one.containers, *(one.pods or {}).values())
        named: dict[str, tuple[Told, bool]] = {
            "config": ("effective-configuration", one.config is not None),
            "pod": ("refused-pods", one.pod is not None),
            "containers": ("quota", any(c.quota is not None for p in pods for c in p.values())),
        }
        for field, (asked, expected) in named.items():
            if expected and asked not in tell:
                message = f"answers say this only where the case has tell: [{asked}]"
                raise WrongCaseError((*path, field), message, f"add {asked} to tell")
        if one.pod is not None and one.refused is None:
            message = "only a refused pod has a fate to expect"
            raise WrongCaseError((*path, "pod"), message, "say with what it is refused")


def _check_verb(path: PathTuple, expected: Expected, verb: str) -> None:
    allowed = EXPECTED_BY_VERB[verb]
    for field in Expected.__struct_fields__:
        if field not in allowed and getattr(expected, field) != getattr(Expected(), field):
            fix = f"it can expect {', '.join(sorted(allowed)) or 'nothing but success'}"
            raise WrongCaseError((*path, field), f"{verb} has no {field} to expect", fix)


def _check_releases(
    path: PathTuple,
    expected: tuple[ExpectedIn, ...],
    kubernetes: str,
) -> None:
    """Each release that a case is for must have one expectation, and only one."""
    taken: dict[str, str] = {}
    for number, one in enumerate(expected):
        where = (*path, number, "kubernetes")
        with _readable(where, _A_RANGE):
            named = [release for release in RELEASES if releases.includes(one.kubernetes, release)]
        if one.anything and one != ExpectedIn(kubernetes=one.kubernetes, anything=True):
            message = "expects anything, and something besides"
            raise WrongCaseError((*path, number), message, "leave out one of the two")
        for release in named:
            if release in taken:
                message = f"Kubernetes {release} is in {taken[release]!r} too"
                raise WrongCaseError(where, message, "let the ranges not overlap")
            taken[release] = one.kubernetes
    for release in RELEASES:
        if releases.includes(kubernetes, release) and release not in taken:
            message = f"does not say what to expect in Kubernetes {release}"
            raise WrongCaseError(path, message, "add an item for it, or narrow the case")
