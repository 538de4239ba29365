"""The registry of documented requirements and the sentences that they come from."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.inputs import documents, typed
from numaproof.protocol import events
from numaproof.protocol.discovery import DISCOVERED
from numaproof.protocol.messages import LEVELS, Level
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numaproof.conformance.cases.schema import Case


PLANNED = "planned"
"""The maturity of requirements announced for a future release."""

NODE_IDS = "node_ids"
"""The ids of NUMA nodes, apart from their CPUs."""

MISSING_CPUS, EXTRA_CPUS = "missing_cpus", "extra_cpus"
"""CPUs of a machine that are not discovered, and discovered CPUs that don't exist."""

UNTOLD_CACHES = "untold_caches"
"""Caches reported although the machine's files describe none."""

ASPECTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **{name: frozenset({name}) for name in DISCOVERED},
        NODE_IDS: frozenset({"nodes"}),
        **dict.fromkeys((MISSING_CPUS, EXTRA_CPUS), frozenset({"nodes", "cores"})),
        UNTOLD_CACHES: frozenset({"caches", "uncore_caches", "node_caches"}),
    }
)
"""The aspects of a machine that requirements cover, with the fields in ``hello`` that reveal each.
"""

# For example `pkg/kubelet/cm/cpumanager/cpu_manager.go, manager.Start, v1.36.3`, possibly with more
# after a semicolon.
_CITATION = re.compile(r"[\w./-]+\.go, \w+(\.\w+)?, v\d+\.\d+\.\d+(; .+)?")


class SourceDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that requirements cite, and the release it describes.

    `code` marks source code, which requirements cite by file, function and tag. The other fields
    are those of `events.ReportedDocument`.
    """

    title: str
    language: str
    original_title: str = ""
    lang: str = "en"
    address: str = ""
    anchors: dict[str, str] = msgspec.field(default_factory=dict)
    repository: str = "kubernetes/kubernetes"
    kubernetes: str = ""
    code: bool = False

    def event(self) -> events.ReportedDocument:
        """Converts the document for reports."""
        return events.ReportedDocument(
            self.title,
            self.language,
            original_title=self.original_title,
            lang=self.lang,
            kubernetes=self.kubernetes,
            address=self.address,
            anchors=self.anchors,
            repository=self.repository,
        )


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A normative statement. `id` never changes; `level` is the lowest that reveals a violation.

    `untestable_reason` says why no case can test it, and `releases` says how releases differ.
    `discovers` lists the `ASPECTS` of a machine that a requirement about discovery covers; any of
    them can reveal a violation. `everywhere` marks requirements that apply to every machine.
    """

    id: str
    area: str
    statement: str
    document: str
    section: str
    since: str | None
    maturity: str
    level: Level
    also: tuple[str, ...] = ()
    untestable_reason: str | None = None
    releases: dict[str, Any] = msgspec.field(default_factory=dict)
    discovers: tuple[str, ...] = ()
    everywhere: bool = False

    @property
    def is_planned(self) -> bool:
        """Whether it is announced for a future release."""
        return self.maturity == PLANNED

    @property
    def is_tested(self) -> bool:
        """Whether it must have a case: it is testable and not planned."""
        return not (self.untestable_reason or self.is_planned)

    def event(self) -> events.ReportedRequirement:
        """Converts the requirement for reports."""
        return events.ReportedRequirement(
            self.id, self.area, self.statement, self.document, self.section, self.also
        )


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All requirements and the documents that they cite."""

    documents: dict[str, SourceDocument]
    requirements: tuple[Requirement, ...]

    def by_id(self) -> Mapping[str, Requirement]:
        """The requirements by id."""
        return {row.id: row for row in self.requirements}

    def reported_documents(self) -> dict[str, events.ReportedDocument]:
        """The documents by key, for reports."""
        return {key: one.event() for key, one in self.documents.items()}


@cache
def load_registry() -> Registry:
    """The project's registry, cached.

    Raises:
        documents.DocumentError: the file is not a registry.
    """
    file = resources.files("numaproof.conformance") / "requirements.yaml"
    name = "conformance/requirements.yaml"
    document = documents.load(file.read_text(encoding="utf-8"), file=name)
    return typed.convert(document, Registry)


def problems(registry: Registry, cases: Iterable[Case]) -> list[str]:
    """All problems with the registry and the cases, as sentences.

    Ids must be unique. Requirements must cite existing documents, and source code by file, function
    and tag. Cases must name existing requirements. Every requirement must have either a case or a
    reason for having none; planned ones have no case and name a future release. A case above a
    requirement's level isn't played for implementations that claim only that level, so each
    requirement needs a case at its own level or below.
    """
    found = _wrong_rows(registry)
    rows = registry.by_id()
    used: dict[str, int] = {}
    names: list[str] = []
    for case in cases:
        names += [case.id, *case.aliases]
        level = LEVELS.index(case.level)
        used |= {one: min(level, used.get(one, level)) for one in case.requirements}
        if not case.requirements:
            found.append(f"case {case.id} names no requirement")
        found += [
            f"case {case.id} names the unknown requirement {one}"
            for one in case.requirements
            if one not in rows
        ]
    found += [f"case id {one} is used twice" for one in sorted(_duplicates(names))]
    for row in registry.requirements:
        if not row.is_tested and row.id in used:
            marked = PLANNED if row.is_planned else "untested"
            found.append(f"requirement {row.id} is marked {marked} but has a case")
        if row.is_tested and row.id not in used:
            found.append(f"requirement {row.id} has neither a case nor a reason for having none")
        if row.is_tested and used.get(row.id, 0) > LEVELS.index(row.level):
            found.append(
                f"requirement {row.id} has level {row.level}, but all its cases have higher levels"
            )
    return found


def _wrong_rows(registry: Registry) -> list[str]:
    ids = [row.id for row in registry.requirements]
    found = [f"requirement id {one} is used twice" for one in sorted(_duplicates(ids))]
    for row in registry.requirements:
        found += [
            f"requirement {row.id} cites the unknown document {key}"
            for key in (row.document, *row.also)
            if key not in registry.documents
        ]
        found += [
            f"requirement {row.id} is about the unknown field {one} of a machine"
            for one in row.discovers
            if one not in ASPECTS
        ]
        if row.is_planned and (row.since is None or row.since in RELEASES):
            found.append(
                f"planned requirement {row.id} must start with a release after {RELEASES[-1]},"
                f" not {row.since}"
            )
        document = registry.documents.get(row.document)
        if document and document.code and not _CITATION.fullmatch(row.section):
            found.append(
                f"requirement {row.id} must cite {row.document} by file, function and tag,"
                f" not {row.section!r}"
            )
    return found


def _duplicates(names: Iterable[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


class Sentence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence, heading, list item or code sample of a document.

    Each document has a file in ``documents/``. A sentence has requirements, or a reason for having
    none, or a missing statement.

    Attributes:
        lines: its line numbers, such as ``41`` or ``41-43``.
        says: what it says, in English.
        rows: the requirements that cover it, in order.
        why: why no requirement covers it.
        missing: the part that no requirement covers yet, as a testable statement.
    """

    lines: str
    says: str
    rows: tuple[str, ...] = ()
    why: str = ""
    missing: str = ""

    @property
    def span(self) -> range:
        """Its line numbers."""
        first, _, last = self.lines.partition("-")
        return range(int(first), int(last or first) + 1)


class TracedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document by its key in the registry, with all of its sentences in order."""

    document: str
    sentences: tuple[Sentence, ...]


@cache
def traced_documents() -> tuple[TracedDocument, ...]:
    """The documents whose sentences are traced, ordered by file name.

    Raises:
        documents.DocumentError: a file is invalid.
    """
    folder = resources.files("numaproof.conformance") / "documents"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        typed.convert(
            documents.load(file.read_text(encoding="utf-8"), file=f"documents/{file.name}"),
            TracedDocument,
        )
        for file in files
    )


def trace_problems(documents_traced: Iterable[TracedDocument], registry: Registry) -> Iterator[str]:
    """All inconsistencies between the sentences and the registry, as sentences.

    Every sentence needs requirements, a reason or a missing statement. Its requirements must exist
    and cite its document, and every requirement that cites a traced document must cover one of its
    sentences.
    """
    rows = registry.by_id()
    for document in documents_traced:
        key = document.document
        if key not in registry.documents:
            yield f"the registry has no document {key}"
        carrying: set[str] = set()
        for sentence in document.sentences:
            place = f"{key}, line {sentence.lines}"
            carrying.update(sentence.rows)
            if not (sentence.rows or sentence.why or sentence.missing):
                yield f"{place}: expected a requirement, a reason or a missing statement"
            for one in sentence.rows:
                if one not in rows:
                    yield f"{place}: there is no requirement {one}"
                elif key not in (rows[one].document, *rows[one].also):
                    yield f"{place}: {one} does not cite the document"
        for row in registry.requirements:
            if key in (row.document, *row.also) and row.id not in carrying:
                yield f"{row.id} cites {key}, but covers none of its sentences"
