"""The documents, sentence by sentence, and the requirements that carry each sentence.

The data is in ``documents/``, one file for each document. A sentence has the requirements that say
(a part of) what it says, the reason why none need, or what of it is missing from the registry.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from numaproof.inputs import documents, fitting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numaproof.conformance.requirements import Registry


class Sentence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sentence, heading, list item or code sample of a document.

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
        fitting.convert(
            documents.load(file.read_text(encoding="utf-8"), file=f"documents/{file.name}"),
            TracedDocument,
        )
        for file in files
    )


def problems(traced: Iterable[TracedDocument], registry: Registry) -> Iterator[str]:
    """Everything in which the sentences and the registry do not agree, one sentence each.

    A sentence must have requirements, a reason or what is missing; its requirements must exist and
    cite its document, and each requirement that cites a traced document must carry one of its
    sentences.
    """
    rows = registry.by_id()
    for document in traced:
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
