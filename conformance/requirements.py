"""The registry of documented requirements, and the check that every one has its cases."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from numaproof.fakesys import documents
from numaproof.protocol import events
from numaproof.protocol.messages import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.conformance.cases.schema import Case


class SourceDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that requirements are taken from, and the release it describes."""

    title: str
    language: str
    origin: str
    kubernetes: str | None = None


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One normative statement. `id` never changes; `level` is the lowest that can see it broken.

    `untested` is the reason why no case can check it; `releases` what differs by release.
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
    untested: str | None = None
    releases: dict[str, Any] = msgspec.field(default_factory=dict)

    def event(self) -> events.Requirement:
        """The requirement as reports show it."""
        return events.Requirement(self.id, self.area, self.statement, self.document, self.section)


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All requirements and the documents that they come from."""

    documents: dict[str, SourceDocument]
    requirements: tuple[Requirement, ...]

    def by_id(self) -> Mapping[str, Requirement]:
        """Requirements by id."""
        return {row.id: row for row in self.requirements}


def load_registry() -> Registry:
    """The project's registry.

    Raises:
        documents.DocumentError: the file is not a registry.
    """
    file = resources.files("numaproof.conformance") / "requirements.yaml"
    name = "conformance/requirements.yaml"
    document = documents.load(file.read_text(encoding="utf-8"), file=name)
    return documents.convert(document, Registry)


def problems(registry: Registry, cases: Iterable[Case]) -> list[str]:
    """What is wrong between the registry and the cases, a sentence each; none when all is well.

    Ids must not repeat, a case must name requirements that exist, a requirement must have a
    case or a reason why it has none, and never both.
    """
    found = []
    rows = registry.by_id()
    ids = [row.id for row in registry.requirements]
    found += [f"requirement {one} stands twice" for one in sorted(_repeated(ids))]
    found += [
        f"requirement {row.id} names the unknown document {key}"
        for row in registry.requirements
        for key in (row.document, *row.also)
        if key not in registry.documents
    ]
    used: set[str] = set()
    names: list[str] = []
    for case in cases:
        names += [case.id, *case.aliases]
        used.update(case.requirements)
        if not case.requirements:
            found.append(f"case {case.id} names no requirement")
        found += [
            f"case {case.id} names the unknown requirement {one}"
            for one in case.requirements
            if one not in rows
        ]
    found += [f"case id {one} stands twice" for one in sorted(_repeated(names))]
    for row in registry.requirements:
        if row.untested and row.id in used:
            found.append(f"requirement {row.id} is marked untested and has a case")
        if not row.untested and row.id not in used:
            found.append(f"requirement {row.id} has no case and no reason why not")
    return found


def _repeated(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
