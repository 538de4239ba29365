"""What a deviation is: a named defect of kubelets, or a change of the rules between releases."""

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
RESTARTS = "A kubelet restarts with the assignments of its checkpoint as they were."


@dataclass(frozen=True, slots=True)
class _Described:
    """What is known of a deviation.

    Attributes:
        name: what cases and reports call it.
        releases: those that have it.
        what: what happens, and on what. A class that overrides a rule says it in its docstring,
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
    """A behaviour of real kubelets that breaks their documents.

    Attributes:
        sentence: the sentence of the documents that it breaks, in English.
        issue: where it is public; empty where no report is known.
        answers: whether it ends with an answer, which the reference then gives too. Where the
            kubelet panics or never answers, the reference keeps to the document.
    """

    sentence: str
    issue: str = ""
    answers: bool = True


@dataclass(frozen=True, slots=True)
class UndocumentedBehaviour(_Described):
    """A behaviour of releases, mostly earlier ones, that their documents allow, but do not tell.

    Whoever follows the documents may as well do as the reference's rule does, which mostly is that
    of the newest release. What the documents of a release do tell is part of the release itself,
    or comes back with a feature gate. It has no name if it changes only how a defect shows.
    """


def deviation_of(override: type) -> Defect | UndocumentedBehaviour:
    """What is known of an override: the ``deviation`` that stands in its class."""
    found: Defect | UndocumentedBehaviour = vars(override)["deviation"]
    return found


def name_of(override: type) -> str:
    """The name by which an override is left out: that of its defect, or else of its change."""
    return (defect_of(override) or deviation_of(override)).name


def defect_of(override: type) -> Defect | None:
    """The named defect that an override makes, or that it builds on; None for other changes."""
    found = (vars(base).get("deviation") for base in override.__mro__)
    return next((one for one in found if isinstance(one, Defect)), None)
