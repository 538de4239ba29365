"""The sources of requirements, as links: documents, source files at their tags, and issues.

A requirement cites a document and a place in it: a section, issues or source code. Its `section`
may contain several places, separated by semicolons. This is the only module that turns them into
URLs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numaproof.protocol.events import ReportedDocument, ReportedRequirement

_GITHUB = "https://github.com"

_CITED = re.compile(
    r"(?P<path>(?:[\w-][\w.-]*/)*[\w-][\w.-]*\.go), \w+(?:\.\w+)?, (?P<tag>v\d+\.\d+\.\d+)"
    r"|(?:(?P<repository>[\w.-]+/[\w.-]+)|(?P<kubernetes>kubernetes )|(?P<pull>PR ))?"
    r"#(?P<number>\d+)"
    r"|KEP-(?P<kep>\d+)"
)
"""For example ``pkg/kubelet/kubelet.go, Kubelet.rejectPod, v1.36.3`` or ``PR #133279``."""


@dataclass(frozen=True)
class Place:
    """A part of a citation; `address` is its URL, empty for plain text."""

    text: str
    address: str = ""


@dataclass(frozen=True)
class Source:
    """A document that states a requirement, and the places in it.

    `title` is in the document's own language, whose BCP 47 tag is `lang`. `english` is the title in
    English, if different, and `language` is empty for English. `kubernetes` is the described
    release, and `address` is the document's URL; both are empty if unknown. `places` are texts to
    be shown one after the other.
    """

    title: str
    lang: str = "en"
    english: str = ""
    language: str = ""
    kubernetes: str = ""
    address: str = ""
    places: tuple[Place, ...] = ()

    @property
    def is_linked(self) -> bool:
        """Whether any of the places has a link."""
        return any(place.address for place in self.places)

    @property
    def english_name(self) -> str:
        """The title in English, with the language of a document that isn't in English."""
        name = self.english or self.title
        return f"{name} ({self.language})" if self.language else name

    @property
    def about(self) -> str:
        """The English title, the language and the release of a document that isn't in English."""
        release = f"Kubernetes {self.kubernetes}" if self.kubernetes else ""
        parts = (self.english, self.language, release) if self.language else ()
        return ", ".join(filter(None, parts))


def sources(
    requirement: ReportedRequirement, documents: Mapping[str, ReportedDocument]
) -> tuple[Source, ...]:
    """Returns the documents that state a requirement; the first one is cited with its places.

    Args:
        requirement: the requirement.
        documents: the documents by key. A document that is not among them is named by its key and
            has no links.
    """
    if not requirement.document:
        return ()
    first = _source(
        requirement.document, documents, _places(requirement, documents.get(requirement.document))
    )
    return (first, *(_source(key, documents, ()) for key in requirement.also))


def citation(requirement: ReportedRequirement, documents: Mapping[str, ReportedDocument]) -> str:
    """Returns the document, by its English name, and the section that state a requirement."""
    names = [one.english_name for one in sources(requirement, documents)[:1]]
    return ", ".join(filter(None, (*names, requirement.section)))


def _source(
    key: str, documents: Mapping[str, ReportedDocument], places: tuple[Place, ...]
) -> Source:
    found = documents.get(key)
    if found is None:
        return Source(key, places=places)
    return Source(
        found.original_title or found.title,
        found.lang if found.original_title else "en",
        english=found.title if found.original_title else "",
        language="" if found.lang == "en" else found.language,
        kubernetes=found.kubernetes,
        address=_web_address(found),
        places=places,
    )


def _web_address(document: ReportedDocument) -> str:
    """Returns a document's URL; one from a foreign stream could be a script."""
    return document.address if document.address.startswith("https://") else ""


def _places(
    requirement: ReportedRequirement, document: ReportedDocument | None
) -> tuple[Place, ...]:
    if document is None:
        return (Place(requirement.section),) if requirement.section else ()
    found: list[Place] = []
    for part in filter(None, requirement.section.split("; ")):
        if found:
            found.append(Place("; "))
        anchor, address = document.anchors.get(part), _web_address(document)
        if anchor and address:
            found.append(Place(part, f"{address}#{anchor}"))
        else:
            found += _cited_places(part, document.repository)
    return tuple(found)


def _cited_places(text: str, repository: str) -> Iterator[Place]:
    end = 0
    for cited in _CITED.finditer(text):
        if cited.start() > end:
            yield Place(text[end : cited.start()])
        yield Place(cited[0], f"{_GITHUB}/{_target(cited, repository)}")
        end = cited.end()
    if end < len(text):
        yield Place(text[end:])


def _target(match: re.Match[str], repository: str) -> str:
    if match["path"]:
        return f"{repository}/blob/{match['tag']}/{match['path']}"
    if match["kep"]:
        return f"kubernetes/enhancements/issues/{match['kep']}"
    if match["kubernetes"]:
        repository = "kubernetes/kubernetes"
    kind = "pull" if match["pull"] else "issues"
    return f"{match['repository'] or repository}/{kind}/{match['number']}"
