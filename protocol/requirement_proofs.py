"""What shows that the cases of a requirement test it: each of its violators fails one of them."""

from __future__ import annotations

import msgspec

from numaproof.protocol.messages import Level


class Catch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The run of a case that a violator fails.

    Attributes:
        case: the id of the case, which cites the requirement.
        machine: the name of the machine.
        kubernetes: the release.
    """

    case: str
    machine: str
    kubernetes: str


class Proof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A violator of a requirement, and what caught it.

    Attributes:
        requirement: the id of the requirement.
        level: the requirement's level, at which its cases were played.
        violator: the id of the violator.
        runs: how many case runs were made.
        catch: the first run that failed; None where the violator passed all of them.
    """

    requirement: str
    level: Level
    violator: str
    runs: int
    catch: Catch | None = None


class RequirementProofs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proofs of all requirements that were asked for.

    Attributes:
        numaproof: the version.
        proofs: one for each violator and requirement, in the order of the registry.
        without: the tested requirements that have no violator.
        complete: whether all violators were played.
    """

    numaproof: str
    proofs: tuple[Proof, ...]
    without: tuple[str, ...] = ()
    complete: bool = True

    @property
    def let_through(self) -> tuple[Proof, ...]:
        """Those whose violator passed every case of its requirement."""
        return tuple(proof for proof in self.proofs if proof.catch is None)

    @property
    def proven(self) -> tuple[str, ...]:
        """The requirements whose violators are all caught."""
        missed = {proof.requirement for proof in self.let_through}
        every = dict.fromkeys(proof.requirement for proof in self.proofs)
        return tuple(one for one in every if one not in missed)
