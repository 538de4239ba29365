"""The registry of documented requirements: each has its cases, and carries its sentences."""

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
"""The maturity of what is announced for a release that is yet to come."""

NODE_IDS = "node_ids"
"""The ids of NUMA nodes, apart from their CPUs."""

MISSING_CPUS, EXTRA_CPUS = "missing_cpus", "extra_cpus"
"""CPUs of a machine that are not discovered, and CPUs that are and should not be."""

UNTOLD_CACHES = "untold_caches"
"""Caches where a machine's files do not tell of any that count."""

ASPECTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **{name: frozenset({name}) for name in DISCOVERED},
        NODE_IDS: frozenset({"nodes"}),
        **dict.fromkeys((MISSING_CPUS, EXTRA_CPUS), frozenset({"nodes", "cores"})),
        UNTOLD_CACHES: frozenset({"caches", "uncore_caches", "node_caches"}),
    }
)
"""What of a machine a requirement may be about, and the names in ``hello`` any of which tell it."""

# `pkg/kubelet/cm/cpumanager/cpu_manager.go, manager.Start, v1.36.3`, and more after a semicolon.
_CITATION = re.compile(r"[\w./-]+\.go, \w+(\.\w+)?, v\d+\.\d+\.\d+(; .+)?")


class SourceDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that requirements are taken from, and the release it describes.

    `code` marks source code, which a requirement cites by file, function and tag.
    """

    title: str
    language: str
    origin: str
    kubernetes: str | None = None
    code: bool = False


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One normative statement. `id` never changes; `level` is the lowest that reveals a violation.

    `untestable_reason` says why no case can test it; `releases` says what differs by release. One
    that is about discovery names in `discovers` the `ASPECTS` of a machine that it is about, by any
    of which a violation shows; `everywhere` is whether it is about every machine.
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
        """Whether it is announced for a release that is yet to come."""
        return self.maturity == PLANNED

    @property
    def is_tested(self) -> bool:
        """Whether it has a case: all do but those that none can test, and those to come."""
        return not (self.untestable_reason or self.is_planned)

    def event(self) -> events.ReportedRequirement:
        """The requirement as reports show it."""
        return events.ReportedRequirement(
            self.id, self.area, self.statement, self.document, self.section
        )


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All requirements and the documents that they come from."""

    documents: dict[str, SourceDocument]
    requirements: tuple[Requirement, ...]

    def by_id(self) -> Mapping[str, Requirement]:
        """Requirements by id."""
        return {row.id: row for row in self.requirements}


@cache
def load_registry() -> Registry:
    """The project's registry, which is read once.

    Raises:
        documents.DocumentError: the file is not a registry.
    """
    file = resources.files("numaproof.conformance") / "requirements.yaml"
    name = "conformance/requirements.yaml"
    document = documents.load(file.read_text(encoding="utf-8"), file=name)
    return typed.convert(document, Registry)


def problems(registry: Registry, cases: Iterable[Case]) -> list[str]:
    """Everything wrong with the registry and the cases, one sentence each.

    Ids must not repeat, a requirement must cite documents that exist, and source code by file,
    function and tag, a case must name requirements that exist, and a requirement must have
    either a case or a reason why it has none. What is planned has none, and names the release that
    it is planned for. A case above a requirement's level does not test it for whoever claims no
    more than that level, so there must be another.
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
            found.append(f"requirement {row.id} has neither a case nor a reason why not")
        if row.is_tested and used.get(row.id, 0) > LEVELS.index(row.level):
            found.append(
                f"requirement {row.id} is of level {row.level}, and all its cases are above that"
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
                f"requirement {row.id} is planned, and must name a release after {RELEASES[-1]}"
                f" as its first, not {row.since}"
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
    """One sentence, heading, list item or code sample of a document.

    Those of each document are in a file of ``documents/``. A sentence has the requirements that say
    (a part of) what it says, the reason why none need, or what of it is missing from the registry.

    Attributes:
        lines: where it stands, such as ``41`` or ``41-43``.
        says: what it says, in English.
        rows: the requirements that carry it, in order.
        why: why no requirement carries it.
        missing: what of it no requirement carries yet, as a testable statement.
    """

    lines: str
    says: str
    rows: tuple[str, ...] = ()
    why: str = ""
    missing: str = ""

    @property
    def span(self) -> range:
        """The numbers of its lines."""
        first, _, last = self.lines.partition("-")
        return range(int(first), int(last or first) + 1)


class TracedDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document by its key in the registry, with all its sentences in order."""

    document: str
    sentences: tuple[Sentence, ...]


@cache
def traced_documents() -> tuple[TracedDocument, ...]:
    """The documents whose sentences are traced, by the names of their files.

    Raises:
        documents.DocumentError: a file is wrong.
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
    """Everything in which the sentences and the registry do not agree, one sentence each.

    A sentence must have requirements, a reason or what is missing; its requirements must exist and
    cite its document, and each requirement that cites a traced document must carry one of its
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
                yield f"{place}: it has no requirement, no reason, and nothing is missing"
            for one in sentence.rows:
                if one not in rows:
                    yield f"{place}: there is no requirement {one}"
                elif key not in (rows[one].document, *rows[one].also):
                    yield f"{place}: {one} does not cite the document"
        for row in registry.requirements:
            if key in (row.document, *row.also) and row.id not in carrying:
                yield f"{row.id} cites {key}, and no sentence there has it"
