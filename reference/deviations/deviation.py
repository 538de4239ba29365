"""Deviations: named defects of kubelets, and undocumented changes between releases."""

from __future__ import annotations

from dataclasses import dataclass, field

from numaproof.protocol.releases import RELEASES

ALL = RELEASES
"""Every release in the table."""

ISSUES = "https://github.com/kubernetes/kubernetes/issues/"
PULLS = "https://github.com/kubernetes/kubernetes/pull/"

AT_ONCE = (
    "The total amount of a particular resource demanded for an entire pod is calculated by the "
    "effective requests/limits formula: the maximum of the sum of all app container requests and "
    "of the maximum of init container requests."
)
RESTARTS = "After a restart, the kubelet restores the assignments in its checkpoint."


@dataclass(frozen=True, slots=True)
class _Described:
    """A description of a deviation.

    Attributes:
        name: the deviation's name in cases and reports.
        releases: the releases that have it.
        what: what happens, and when. For classes that override a rule, this is their docstring
            after the first paragraph.
    """

    name: str
    releases: tuple[str, ...]
    what: str = field(default="", kw_only=True)

    def __set_name__(self, override: type, _name: str) -> None:
        _, _, described = (override.__doc__ or "").partition("\n\n")
        object.__setattr__(self, "what", " ".join(described.split()))


@dataclass(frozen=True, slots=True)
class Defect(_Described):
    """A behaviour of real kubelets that contradicts their documentation.

    Attributes:
        sentence: the sentence of the documentation that it contradicts, in English.
        issue: the address of the public issue; empty if none is known.
        answers: whether the kubelet still answers, in which case the reference reproduces the
            answer. If the kubelet panics or never answers, the reference follows the documentation.
    """

    sentence: str
    issue: str = ""
    answers: bool = True


@dataclass(frozen=True, slots=True)
class UndocumentedBehaviour(_Described):
    """A behaviour of some releases, mostly early ones, that is allowed but not documented.

    Implementations that follow the documentation may also behave like the reference's rule, which
    mostly matches the newest release. Documented differences between releases are part of the
    release itself, or depend on a feature gate. The name is empty if only the effects of a defect
    change.
    """


def deviation_of(override: type) -> Defect | UndocumentedBehaviour:
    found: Defect | UndocumentedBehaviour = vars(override)["deviation"]
    return found


def name_of(override: type) -> str:
    """Returns the name by which an override can be left out: its defect's or else its change's."""
    return (defect_of(override) or deviation_of(override)).name


def defect_of(override: type) -> Defect | None:
    """Returns the named defect that an override implements or builds on, or None."""
    found = (vars(base).get("deviation") for base in override.__mro__)
    return next((one for one in found if isinstance(one, Defect)), None)
