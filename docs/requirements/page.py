"""Writes docs/requirements.md, and below docs/requirements/ a page for each area and document.

    python docs/requirements/page.py

The prose is in page.txt. Sentences and requirements come from `numaproof.conformance`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution import machines
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.requirements import load_registry, traced_documents
from numaproof.reports.sources import sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.requirements import Requirement, Sentence, TracedDocument
    from numaproof.protocol.events import ReportedDocument
    from numaproof.reports.sources import Source

FOLDER = Path(__file__).parent

_MARKUP = re.compile(r"([\\|<*`\[\]])")


def cell(text: str) -> str:
    """Escapes text for a table cell."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def link(requirement: str, folder: str = "") -> str:
    """Links a requirement's id to its row on its area's page; `folder` contains these pages."""
    area = next(one.area for one in load_registry().requirements if one.id == requirement)
    return f"[{requirement}]({folder}{slug(area)}.md#{requirement.lower()})"


def slug(name: str) -> str:
    """Returns the name of an area's or a document's page."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# Sentences


def counts(documents: Iterable[TracedDocument]) -> str:
    """Returns the table of each document's covered, explained and open sentences."""
    rows = [
        "| document | sentences | covered | partly covered | explained | open |",
        "|---|---|---|---|---|---|",
    ]
    total = [0] * 5
    for document in documents:
        numbers = _numbers(document.sentences)
        total = [one + other for one, other in zip(total, numbers, strict=True)]
        rows.append(_row(f"[{_title(document)}](requirements/{_file(document)})", *numbers))
    return "\n".join([*rows, _row("all", *total)])


def _numbers(sentences: Iterable[Sentence]) -> list[int]:
    """Returns the total, and how many are covered, partly covered, explained and open."""
    kinds = [_kind(sentence) for sentence in sentences]
    return [len(kinds), *map(kinds.count, ("carried", "in part", "explained", "open"))]


def _kind(sentence: Sentence) -> str:
    if sentence.rows:
        return "in part" if sentence.missing else "carried"
    return "open" if sentence.missing else "explained"


def _title(document: TracedDocument) -> str:
    source = load_registry().documents[document.document]
    original = f"{source.original_title}: " if source.original_title else ""
    return f"{original}{source.title} ({source.language})"


def _file(document: TracedDocument) -> str:
    return f"document-{slug(document.document)}.md"


def of_document(document: TracedDocument) -> str:
    """Returns a document's page with a table of its sentences."""
    source = load_registry().documents[document.document]
    about = (
        f"[The document]({source.address}), for Kubernetes {source.kubernetes}. `--select"
        f" document:{document.document}` selects its cases."
    )
    lines = [f"# {_title(document)}", "", f"{about} Lines are those of the text.", ""]
    lines += ["| lines | what it says | requirements, or why none | missing |", "|---|---|---|---|"]
    for sentence in document.sentences:
        carried = ", ".join(map(link, sentence.rows)) or cell(sentence.why)
        lines.append(_row(sentence.lines, cell(sentence.says), carried, cell(sentence.missing)))
    return "\n".join(lines)


# Requirements


def areas() -> Mapping[str, list[Requirement]]:
    """Returns the requirements of each area."""
    found: dict[str, list[Requirement]] = {}
    for requirement in load_registry().requirements:
        found.setdefault(requirement.area, []).append(requirement)
    return found


def area_table() -> str:
    """Returns the table of the areas' pages."""
    rows = ["| area | requirements |", "|---|---|"]
    for area, found in areas().items():
        rows.append(_row(f"[{area}](requirements/{slug(area)}.md)", len(found)))
    return "\n".join(rows)


def ids() -> str:
    """Returns the ids of all requirements; each is an anchor and a link to its row."""
    return "\n\n".join(
        f"{area}: "
        + ", ".join(
            f'<a id="{one.id.lower()}"></a>{link(one.id, "requirements/")}' for one in found
        )
        for area, found in areas().items()
    )


def _of_area(
    area: str, requirements: Iterable[Requirement], cases: Mapping[str, list[Case]]
) -> str:
    lines = [f"# {area}", "", "[What the columns mean](../requirements.md#areas).", ""]
    lines += ["| id | statement | level | source | cases | machines | reference | kubelets |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for one in requirements:
        named = f'<a id="{one.id.lower()}"></a>{one.id}'
        cited = "; also ".join(map(_linked, sources(one.event(), _documents())))
        shown = _coverage(one, cases.get(one.id, []))
        ended = [outcome(one, kubelets=which) for which in (False, True)]
        lines.append(_row(named, cell(one.statement), one.level, cited, *shown, *ended))
    return "\n".join(lines)


@cache
def _documents() -> Mapping[str, ReportedDocument]:
    """Returns the documents by key; the protocol's address is its page."""
    found = load_registry().reported_documents()
    return found | {
        "protocol": msgspec.structs.replace(found["protocol"], address="../protocol.md")
    }


def _linked(source: Source) -> str:
    """Returns a document's link, and links to the places in it."""
    language = f" ({source.language})" if source.language else ""
    places = "".join(_web_link(one.text, one.address) for one in source.places)
    return f"{_web_link(source.title, source.address)}{language}{places and f': {places}'}"


def _web_link(text: str, address: str) -> str:
    return f"[{cell(text)}]({address})" if address else _MARKUP.sub(r"\\\1", text)


def _coverage(requirement: Requirement, cases: list[Case]) -> tuple[object, object]:
    """Returns how many cases and machines test a requirement, or why none does."""
    if requirement.is_planned:
        return f"none: planned for {requirement.since}", ""
    if requirement.untestable_reason:
        return f"none: {cell(requirement.untestable_reason)}", ""
    return len(cases), len(frozenset[str]().union(*map(_machines, cases)))


def _cases() -> dict[str, list[Case]]:
    """Returns the cases that cite each requirement."""
    found: dict[str, list[Case]] = {}
    for case in loading.bundled_cases():
        for requirement in case.requirements:
            found.setdefault(requirement, []).append(case)
    return found


@cache
def _catalogue() -> tuple[ProfileMachine, ...]:
    """Returns the bundled machines, used only for their properties."""
    names = fakesys.bundled_profiles()
    return tuple(ProfileMachine(fakesys.load_profile(name), Path("/nonexistent")) for name in names)


def _machines(case: Case) -> frozenset[str]:
    """Returns the bundled machines that a case runs on, and the case's own machine if any."""
    if case.machine is not None:
        return frozenset({f"of {case.id}"})
    return frozenset(one.name for one in machines.select(_catalogue(), case))


# Results of whole checks


@cache
def outcomes() -> tuple[dict[str, Any], ...]:
    """Returns the results in outcomes.yaml in order of release."""
    return tuple(yaml.safe_load((FOLDER / "outcomes.yaml").read_text(encoding="utf-8")))


def outcome(requirement: Requirement, *, kubelets: bool) -> str:
    """Returns a requirement's result on the reference, or on the kubelets of all releases."""
    if not requirement.is_tested:
        return ""
    ended: dict[str, list[str]] = {}
    for one in outcomes():
        if (one["of"] == "kubelet") is kubelets and requirement.id not in one["unplayed"]:
            ended.setdefault(_outcome(requirement.id, one), []).append(one["kubernetes"])
    if len(ended) == 1:
        return next(iter(ended))
    return "; ".join(f"{releases(where)}: {how}" for how, where in ended.items())


def _outcome(requirement: str, row: dict[str, Any]) -> str:
    if requirement in row["fails"]:
        return "fails"
    defects = row["deviates"].get(requirement)
    if not defects:
        return "pass"
    return ", ".join(f"[{name}](../findings.md#{name})" for name in defects)


def releases(names: list[str]) -> str:
    """Formats releases, with consecutive ones as a range."""
    first, last = names[0], names[-1]
    together = int(last.split(".")[1]) - int(first.split(".")[1]) == len(names) - 1
    return f"{first} to {last}" if together and len(names) > 1 else ", ".join(names)


def measurement_table() -> str:
    """Returns the table of the checks behind the results, with case runs by outcome."""
    rows = ["| implementation | Kubernetes | requirements checked | with a named defect | failed |"]
    rows.append("|---|---|---|---|---|")
    rows += [
        _row(
            f"{one['of']} {one['version']}",
            one["kubernetes"],
            one["played"],
            len(one["deviates"]),
            len(one["fails"]),
        )
        for one in outcomes()
    ]
    return "\n".join(rows)


# Pages


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


_WRITTEN = "<!-- Written by docs/requirements/page.py: change that. -->\n\n"


def pages() -> dict[str, str]:
    """Returns all pages by their names below docs/."""
    traced = traced_documents()
    text = Template((FOLDER / "page.txt").read_text(encoding="utf-8"))
    whole = text.substitute(
        counts=counts(traced), areas=area_table(), measured=measurement_table(), ids=ids()
    )
    cases = _cases()
    return {
        "requirements.md": whole,
        **{
            f"requirements/{slug(area)}.md": f"{_WRITTEN}{_of_area(area, found, cases)}\n"
            for area, found in areas().items()
        },
        **{f"requirements/{_file(one)}": f"{_WRITTEN}{of_document(one)}\n" for one in traced},
    }


def main() -> None:
    """Writes the pages."""
    for name, text in pages().items():
        (FOLDER.parent / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
