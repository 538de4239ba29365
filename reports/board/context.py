"""What a board shows about runs, although runs don't contain it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numaproof.protocol.events import ReportedDocument, ReportedRequirement
    from numaproof.protocol.messages import Level


@dataclass(frozen=True)
class CaseTitle:
    """A bundled case, the requirements that it checks, and the named defect that it shows."""

    id: str
    title: str
    level: Level
    requirements: tuple[str, ...]
    defect: str | None = None


@dataclass(frozen=True)
class NamedDefect:
    """A known behaviour of kubelets that contradicts their documentation.

    `what` describes it, `sentence` is the sentence that it contradicts, and `issue` is the URL of
    the public issue; all may be empty.
    """

    name: str
    what: str = ""
    sentence: str = ""
    releases: tuple[str, ...] = ()
    issue: str = ""


@dataclass(frozen=True)
class RunContext:
    """Data that runs refer to but don't contain.

    `requirements` is the registry, and `documents` are its documents by key. `case_text` returns
    the text of the bundled case with a given id, or an empty string if there is none. `cases` are
    the bundled cases, and `defects` the known named defects.
    """

    requirements: tuple[ReportedRequirement, ...]
    case_text: Callable[[str], str]
    documents: Mapping[str, ReportedDocument] = field(default_factory=dict)
    cases: tuple[CaseTitle, ...] = ()
    defects: tuple[NamedDefect, ...] = ()
