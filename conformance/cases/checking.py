"""Checks cases for errors that their schema can't express."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from numaproof.conformance.cases import releases
from numaproof.conformance.cases.schema import (
    VERBS,
    Case,
    DeviceSpec,
    Expected,
    ExpectedIn,
    Step,
    device_id,
)
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numaproof.conformance.cases.schema import Devices
    from numaproof.inputs.errors import PathTuple
    from numaproof.protocol.messages import Told


EXPECTED_BY_VERB: dict[str, frozenset[str]] = {
    "start": frozenset(
        {"refused", "message", "all", "allocatable", "readmission", "memory", "config"}
    ),
    "admit": frozenset({"refused", "message", "containers", "pod", "preempted"}),
    "resize": frozenset({"refused", "message", "containers"}),
    "remove": frozenset(),
    "end": frozenset(),
    "state": frozenset({"metrics", "shared", "pods", "files", "checkpoints"}),
    "reconcile": frozenset({"updates"}),
    "hints": frozenset({"hints"}),
    "assign": frozenset({"refused", "message", "cpus"}),
    "discover": frozenset({"refused", "message", "machine"}),
    "tamper": frozenset(),
    "devices": frozenset(),
    "merge": frozenset({"hint", "admit"}),
}
"""The expectations that each verb allows."""


MAX_STEPS = 1000
"""The maximum number of steps in a case. Every step is judged and reported in full; cases from
fuzzing have a few dozen.
"""


class WrongCaseError(ValueError):
    """A case is invalid; holds the path of the field within the case, the problem, and a fix."""

    def __init__(self, path: PathTuple, message: str, fix: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.fix = fix


def check(case: Case) -> None:
    """Checks a case's steps and releases.

    Raises:
        WrongCaseError: a step or a range of releases is invalid.
    """
    check_range(case.kubernetes, ("kubernetes",))
    if not case.steps:
        raise WrongCaseError(
            ("steps",), "a case needs at least one step", "add one, or remove the case"
        )
    if len(case.steps) > MAX_STEPS:
        message = f"expected at most {MAX_STEPS:,} steps, got {len(case.steps):,}"
        raise WrongCaseError(("steps",), message, "split the case")
    for number, step in enumerate(case.steps):
        _check_step(("steps", number), step, case.kubernetes)
        _check_told(("steps", number, "expect"), step, case.tell)
        _check_preempted(("steps", number, "expect"), step, check_node=case.check_node)
    _check_ids(("devices",), case.devices)
    if isinstance(case.devices, dict):
        named: dict[PathTuple, str] = {("preferred", one): one for one in case.preferred}
        named |= {("failing", number): one for number, one in enumerate(case.failing)}
        for path, resource in named.items():
            if resource not in case.devices:
                message = f"the case has no devices of {resource}"
                raise WrongCaseError(path, message, "use a resource listed in `devices`")


def _check_ids(path: PathTuple, devices: Devices | None) -> None:
    """Checks that no two devices of a resource have the same id; expressions aren't checked."""
    for resource, listed in devices.items() if isinstance(devices, dict) else ():
        ids: set[str] = set()
        for number, one in enumerate(listed if isinstance(listed, tuple) else ()):
            name = device_id(number, one.id if isinstance(one, DeviceSpec) else "")
            if name in ids:
                message = f"an earlier device of {resource} has the id {name!r} already"
                raise WrongCaseError((*path, resource, number), message, "give it another `id`")
            ids.add(name)


def check_range(kubernetes: str, path: PathTuple) -> None:
    """Checks the range of releases at a path.

    Raises:
        WrongCaseError: the range is invalid.
    """
    with _readable(path, _A_RANGE):
        releases.includes(kubernetes, RELEASES[0])


_A_RANGE = 'write "< 1.36" or ">= 1.36"'


@contextmanager
def _readable(path: PathTuple, fix: str) -> Iterator[None]:
    """Reports invalid releases at a path."""
    try:
        yield
    except releases.ConstraintError as error:
        raise WrongCaseError(path, str(error), fix) from None


def _check_step(path: PathTuple, step: Step, kubernetes: str) -> None:
    given = [verb for verb in VERBS if getattr(step, verb) is not None]
    if len(given) != 1:
        message = f"expected exactly one verb, got {' and '.join(given) or 'none'}"
        raise WrongCaseError(path, message, f"use one of {', '.join(VERBS)}")
    if step.start is not None and step.start.kubernetes is not None:
        with _readable((*path, "start", "kubernetes"), 'write a release such as "1.36"'):
            releases.check_name(step.start.kubernetes)
    if step.start is not None and step.start.new_pods and not step.start.running:
        message = "after a reboot, no new pods are on the node"
        raise WrongCaseError((*path, "start", "new"), message, "add `running: true`, or admit them")
    if step.start is not None:
        _check_ids((*path, "start", "devices"), step.start.devices)
    _check_ids((*path, "devices"), step.devices)
    tamper = step.tamper
    if tamper and tamper.checkpoint is not None and (tamper.how != "write" or tamper.text):
        message = "a checkpoint can only replace the contents of a file"
        raise WrongCaseError(
            (*path, "tamper", "checkpoint"), message, "use `how: write` without `text`"
        )
    if isinstance(step.expect, Expected):
        _check_verb((*path, "expect"), step.expect, given[0])
    elif isinstance(step.expect, tuple):
        for number, one in enumerate(step.expect):
            _check_verb((*path, "expect", number), one, given[0])
        _check_releases((*path, "expect"), step.expect, kubernetes)


def _check_told(path: PathTuple, step: Step, tell: tuple[Told, ...]) -> None:
    """Optional fields can be expected only if the case requests them."""
    for one in step.expect if isinstance(step.expect, tuple) else (step.expect,):
        if not isinstance(one, Expected):
            continue
        pods = (one.containers, *(one.pods or {}).values())
        named: dict[str, tuple[Told, bool]] = {
            "config": ("effective-configuration", one.config is not None),
            "pod": ("refused-pods", one.pod is not None),
            "metrics": ("metrics", one.metrics is not None),
            "containers": ("quota", any(c.quota is not None for p in pods for c in p.values())),
        }
        for field, (asked, expected) in named.items():
            if expected and asked not in tell:
                message = f"answers include this only if the case has `tell: [{asked}]`"
                raise WrongCaseError((*path, field), message, f"add {asked} to `tell`")
        if one.pod is not None and one.refused is None:
            message = "only a refused pod can have an expected status"
            raise WrongCaseError((*path, "pod"), message, "add `refused` with the expected reason")


def _check_preempted(path: PathTuple, step: Step, *, check_node: bool) -> None:
    """Pods can be preempted only if they must fit into the node's allocatable resources."""
    for one in step.expect if isinstance(step.expect, tuple) else (step.expect,):
        if isinstance(one, Expected) and one.preempted and not check_node:
            message = "pods are preempted only if the case has `check_node: true`"
            raise WrongCaseError((*path, "preempted"), message, "add it to the case")


def _check_verb(path: PathTuple, expected: Expected, verb: str) -> None:
    allowed = EXPECTED_BY_VERB[verb]
    for field in Expected.__struct_fields__:
        if field not in allowed and getattr(expected, field) != getattr(Expected(), field):
            fix = f"{verb} allows {', '.join(sorted(allowed))}" if allowed else "leave it out"
            raise WrongCaseError((*path, field), f"{verb} does not allow this expectation", fix)


def _check_releases(
    path: PathTuple,
    expected: tuple[ExpectedIn, ...],
    kubernetes: str,
) -> None:
    """Every release that the case covers must have exactly one expectation."""
    taken: dict[str, str] = {}
    for number, one in enumerate(expected):
        where = (*path, number, "kubernetes")
        with _readable(where, _A_RANGE):
            named = [release for release in RELEASES if releases.includes(one.kubernetes, release)]
        if one.anything and one != ExpectedIn(kubernetes=one.kubernetes, anything=True):
            message = "an item with `anything` can't expect anything else"
            raise WrongCaseError((*path, number), message, "remove either")
        for release in named:
            if release in taken:
                message = f"Kubernetes {release} is also covered by {taken[release]!r}"
                raise WrongCaseError(where, message, "write ranges that don't overlap")
            taken[release] = one.kubernetes
    for release in RELEASES:
        if releases.includes(kubernetes, release) and release not in taken:
            message = f"there is no expectation for Kubernetes {release}"
            raise WrongCaseError(path, message, "add an item for it, or restrict the case")
