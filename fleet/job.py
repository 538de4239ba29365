"""What every worker of a campaign knows: the implementation, the machines, what a case is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.protocol import codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.execution.machines import ProfileMachine
    from numaproof.protocol.messages import Hello


@dataclass(frozen=True)
class NamedProfile:
    """A machine's profile, and how a person names it where that is not its own name."""

    profile: fakesys.Profile
    given: str


@dataclass(frozen=True)
class Job:
    """The same for all units of a campaign; it is sent to each worker once.

    Attributes:
        key: of the campaign.
        numaproof: the version that a worker must have.
        cases: the digest of the table that a worker must have.
        machines: on which cases run.
        program: the words of the implementation's command; none for the reference.
        timeout: seconds that one call of the program may take.
        hello: what the implementation said of itself where the campaign began.
    """

    key: str
    numaproof: str
    cases: str
    machines: tuple[NamedProfile, ...]
    program: tuple[str, ...]
    timeout: float
    hello: Hello


def named(machines: Iterable[ProfileMachine]) -> tuple[NamedProfile, ...]:
    """The machines of a run as a job has them."""
    return tuple(NamedProfile(one.profile, one.given) for one in machines)


def digest_of_cases(cases: Iterable[Case]) -> str:
    """Tells one table of cases from another."""
    return _digest(codec.encode(tuple(cases)))


def digest_of_machine(profile: fakesys.Profile) -> str:
    """Tells a profile from another of the same name."""
    return _digest(fakesys.dump_profile(profile).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
