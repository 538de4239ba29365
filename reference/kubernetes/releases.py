"""What differs between Kubernetes releases, as data.

This table is the only place that knows releases. Everything else asks a `Release` what holds in
it, and no algorithm compares version numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Maturity = Literal["alpha", "beta", "stable"]

RELEASES = ("1.33", "1.34", "1.35", "1.36")
"""The minor releases, oldest first."""

NEWEST = RELEASES[-1]


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate in one release: its maturity, its default, and whether that is locked."""

    maturity: Maturity
    default: bool
    locked: bool = False


@dataclass(frozen=True, slots=True)
class Defect:
    """A behaviour of real kubelets that breaks their documents.

    `answers` says whether it ends with an answer, which the reference then gives too; where the
    kubelet panics or never answers the reference keeps to the document.
    """

    name: str
    releases: tuple[str, ...]
    sentence: str
    issue: str
    what: str
    answers: bool = True


@dataclass(frozen=True, slots=True)
class Release:
    """One release as the managers behave in it; `defects` are the names of those it has."""

    version: str
    gates: Mapping[str, Gate]
    cpu_options: Mapping[str, Maturity]
    uncore_takes_odd_requests: bool
    checkpoint_attempts: tuple[str, ...]
    defects: frozenset[str]

    def has(self, defect: str) -> bool:
        """Whether this release behaves as the named defect describes."""
        return defect in self.defects


DEFECTS: tuple[Defect, ...] = (
    Defect(
        name="free-core-by-average",
        releases=RELEASES,
        sentence=(
            "Only containers that are part of a Guaranteed pod and have integer CPU requests "
            "are assigned exclusive CPUs."
        ),
        issue="https://github.com/kubernetes/kubernetes/issues/140495",
        what=(
            "A core counts as free when as many of its CPUs are free as a core has on average, "
            "rounded down, and is then taken with all its CPUs: on machines with half-offline or "
            "hybrid cores a reserved or used CPU is handed out, and one CPU can be exclusive and "
            "in the shared pool at once."
        ),
    ),
    Defect(
        name="distribute-endless-loop",
        releases=RELEASES,
        sentence=(
            "If the distribute-cpus-across-numa policy option is specified, the static policy "
            "will evenly distribute CPUs across NUMA nodes in cases where more than one NUMA "
            "node is required to satisfy the allocation."
        ),
        issue="https://github.com/kubernetes/kubernetes/pull/140730",
        what=(
            "With full-pcpus-only, and reserved CPUs that break cores, handing out the remainder "
            "of an uneven request never ends."
        ),
        answers=False,
    ),
)

_ALPHA, _BETA = "CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions"

_OPTIONS_1_33: dict[str, Maturity] = {
    "align-by-socket": "alpha",
    "distribute-cpus-across-cores": "alpha",
    "distribute-cpus-across-numa": "beta",
    "full-pcpus-only": "stable",
    "prefer-align-cpus-by-uncorecache": "alpha",
    "strict-cpu-reservation": "beta",
}
_OPTIONS_1_34: dict[str, Maturity] = {
    **_OPTIONS_1_33,
    "prefer-align-cpus-by-uncorecache": "beta",
}
_OPTIONS_1_35: dict[str, Maturity] = {**_OPTIONS_1_34, "strict-cpu-reservation": "stable"}
_OPTIONS_1_36: dict[str, Maturity] = {
    **_OPTIONS_1_35,
    "prefer-align-cpus-by-uncorecache": "stable",
}

_GATES = {
    _ALPHA: Gate("alpha", default=False),
    _BETA: Gate("beta", default=True),
    "TopologyManagerPolicyAlphaOptions": Gate("alpha", default=False),
    "TopologyManagerPolicyBetaOptions": Gate("beta", default=True),
}


def _defects(version: str) -> frozenset[str]:
    return frozenset(
        defect.name for defect in DEFECTS if defect.answers and version in defect.releases
    )


_1_33 = Release(
    version="1.33",
    gates=_GATES,
    cpu_options=_OPTIONS_1_33,
    uncore_takes_odd_requests=False,
    checkpoint_attempts=("V1", ""),
    defects=_defects("1.33"),
)
_1_34 = replace(
    _1_33,
    version="1.34",
    cpu_options=_OPTIONS_1_34,
    uncore_takes_odd_requests=True,
    defects=_defects("1.34"),
)
_1_35 = replace(_1_34, version="1.35", cpu_options=_OPTIONS_1_35, defects=_defects("1.35"))
_1_36 = replace(
    _1_35,
    version="1.36",
    cpu_options=_OPTIONS_1_36,
    checkpoint_attempts=("", "V1"),
    defects=_defects("1.36"),
)

TABLE: Mapping[str, Release] = MappingProxyType(
    {release.version: release for release in (_1_33, _1_34, _1_35, _1_36)}
)


class UnknownReleaseError(ValueError):
    """No such release in the table."""


def release(version: str | None, *, documented: bool = False) -> Release:
    """The release by its minor version, the newest for None; `documented` without its defects.

    Raises:
        UnknownReleaseError: the table has no such release.
    """
    found = TABLE.get(version or NEWEST)
    if found is None:
        raise UnknownReleaseError(
            f"Kubernetes release {version!r} is not one of {', '.join(RELEASES)}"
        )
    return replace(found, defects=frozenset()) if documented else found
