"""Writes the website: pages, style sheet, script, badges and case files of findings."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from numaproof.inputs import door
from numaproof.inputs.errors import DocumentError
from numaproof.inputs.plurals import plural
from numaproof.protocol.messages import LEVELS
from numaproof.reports.anchors import anchor
from numaproof.reports.badge import shield
from numaproof.reports.board import views
from numaproof.reports.board.data import KINDS, is_documented, slug, unique_slugs
from numaproof.reports.board.history import VERDICTS, requirement_history
from numaproof.reports.board.standing import NOT_ASKED, STATES, Score, implementations, worst
from numaproof.reports.html import is_web_address
from numaproof.reports.pages import environment, package_file
from numaproof.reports.sources import sources
from numaproof.reports.untrusted_text import escape_json, visible
from numaproof.reports.values import group_values
from numaproof.workdir.output_files import clear_partials, require_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numaproof.protocol.events import ReportedRequirement
    from numaproof.reports.board.context import CaseTitle, RunContext
    from numaproof.reports.board.data import FoundIn, Kind, MachineSize, RunData
    from numaproof.reports.board.json_output import BoardReport, BoardRow
    from numaproof.reports.board.reading import RunsRead
    from numaproof.reports.board.standing import BoardImplementation, Entry, State
    from numaproof.reports.board.views import ShownFinding

_PACKAGE = "numaproof.reports.board"
_MARK = '<meta name="generator" content="numaproof board">'
_OWN = (
    "implementations/*.html",
    "requirements/*.html",
    "badges/*.svg",
    "cases/*.yaml",
    "known-failures/*.yaml",
)
"""The files that belong to single implementations, requirements or findings."""

OWN_MACHINE = "its own machine"
"""The machine name in runs of cases and recordings that include their machine."""

_LABELS: Mapping[State, str] = {"pass": "agrees"}
_DISCOVERY: tuple[State, ...] = tuple(one for one in STATES if one != "expected")


@dataclass(frozen=True)
class Board:
    """The contents of a website."""

    implementations: tuple[BoardImplementation, ...]
    requirements: tuple[ReportedRequirement, ...]
    context: RunContext
    dates: tuple[str, ...]
    """The date of each run, oldest first; empty if it is unknown."""

    @property
    def allocators(self) -> tuple[BoardImplementation, ...]:
        """The implementations that assign resources; some of them also discover machines."""
        return tuple(one for one in self.implementations if not one.is_discoverer)

    @property
    def discoverers(self) -> tuple[BoardImplementation, ...]:
        """The implementations that only discover machines."""
        return tuple(one for one in self.implementations if one.is_discoverer)

    @cached_property
    def requirement_pages(self) -> Mapping[str, str]:
        """The path of each requirement's page, by the requirement's id."""
        slugs = unique_slugs(one.id for one in self.requirements)
        return {name: f"requirements/{slug}.html" for name, slug in slugs.items()}

    @cached_property
    def cases(self) -> Mapping[str, list[CaseTitle]]:
        """The bundled cases that check each requirement."""
        return group_values(
            (cited, case) for case in self.context.cases for cited in case.requirements
        )

    @cached_property
    def cases_by_defect(self) -> Mapping[str, list[CaseTitle]]:
        """The bundled cases that were written for each named defect, or show it in a run."""
        return {
            one.defect.name: [
                case
                for case in self.context.cases
                if case.defect == one.defect.name or case.id in one.case_ids
            ]
            for one in self.defects
        }

    @cached_property
    def defects(self) -> tuple[views.ShownDefect, ...]:
        """The named defects that runs show."""
        return views.shown_defects(self.implementations, self.context.defects)

    @cached_property
    def findings(self) -> tuple[ShownFinding, ...]:
        """The findings of the newest versions, with URLs."""
        return views.shown_findings(self.implementations)

    @property
    def own_findings(self) -> tuple[ShownFinding, ...]:
        """The findings that are not named defects of the kubelet."""
        return tuple(one for one in self.findings if one.finding.kind != "expected")

    @cached_property
    def machines(self) -> Mapping[str, MachineSize | None]:
        """The machines that runs described or discovered, smallest first.

        Machines of unknown size come last.
        """
        found: dict[str, MachineSize | None] = {}
        for run in self._newest_runs:
            for name in (*run.machines, *run.discovery):
                if name != OWN_MACHINE and (name in run.sizes or name in run.discovery):
                    found[name] = run.sizes.get(name) or found.get(name)
        return {
            name: found[name] for name in sorted(found, key=lambda machine: _size(found, machine))
        }

    @cached_property
    def elsewhere(self) -> tuple[str, ...]:
        """The machine names in case runs that are not in the catalogue."""
        named = {name for run in self._newest_runs for name in run.machines}
        return tuple(sorted(named - self.machines.keys()))

    @property
    def documented_requirements(self) -> tuple[ReportedRequirement, ...]:
        """The requirements that come from a document."""
        return tuple(one for one in self.requirements if is_documented(one))

    @property
    def tested_count(self) -> int:
        """The number of documented requirements tested in the newest runs."""
        states = [one.newest.states for one in self.implementations]
        return sum(
            any(found.get(one.id, "untested") not in NOT_ASKED for found in states)
            for one in self.documented_requirements
        )

    @property
    def _newest_runs(self) -> Iterator[RunData]:
        return (run for one in self.implementations for run in one.newest.runs)

    def finding_counts(self, implementation: BoardImplementation) -> dict[Kind, int]:
        """Counts the findings of an implementation by kind."""
        counts = Counter(
            found.finding.kind
            for found in self.own_findings
            if found.implementation is implementation
        )
        return {kind: counts[kind] for kind in KINDS if counts[kind]}

    def worst_finding_on(
        self, implementation: BoardImplementation, machine: str
    ) -> ShownFinding | None:
        """Returns the worst finding about discovery on a machine, if any."""
        shown = (
            found
            for found in self.own_findings
            if found.entry is implementation.newest
            and any(machine in case.machines for case in found.finding.cases if case.discovers)
        )
        return next(shown, None)

    def agreement(self, implementation: BoardImplementation) -> str:
        """Returns the fraction of tested machines on which discovery is correct, as text."""
        asked = [
            state
            for state in implementation.newest.discovery_states.values()
            if state != "unsupported"
        ]
        return f"{asked.count('pass')}/{len(asked)}" if asked else ""

    def on_machine(self, implementation: BoardImplementation, machine: str) -> tuple[Score, State]:
        """Returns the case runs on a machine, and their worst state."""
        tally = implementation.newest.machines.get(machine, {})
        states = group_values((worst({outcome: 1}, ()), count) for outcome, count in tally.items())
        return Score({state: sum(counts) for state, counts in states.items()}), worst(tally, ())

    def plain(self) -> BoardReport:
        """Returns the results of each implementation as JSON values."""
        return {"implementations": [self._plain(one) for one in self.implementations]}

    def _plain(self, implementation: BoardImplementation) -> BoardRow:
        newest = implementation.newest
        met = newest.requirement_score
        return {
            "name": implementation.name,
            "version": newest.author.version,
            "language": newest.author.language,
            "kubernetes": newest.kubernetes,
            "level": newest.level,
            "complete": not newest.gaps,
            "date": newest.date,
            "case_runs": dict(newest.score.counts),
            "requirements": {
                "met": met.good,
                "as_kubelet": met.as_kubelet,
                "asked": met.asked_count,
            },
            "findings": self.finding_counts(implementation),
            "releases": [entry.kubernetes for entry in implementation.current],
            "page": f"implementations/{implementation.slug}.html",
            "badge": f"badges/{implementation.slug}.svg",
        }


def _size(sizes: Mapping[str, MachineSize | None], name: str) -> tuple[bool, int, str]:
    size = sizes[name]
    return size is None or not size.cpus, size.cpus if size else 0, name


def board_of(reading: RunsRead) -> Board:
    """Builds the board from the runs that were read."""
    undocumented = frozenset(one.id for one in reading.requirements if not is_documented(one))
    made = implementations(reading.runs, undocumented)
    dates = tuple(sorted(run.date for run in reading.runs))
    return Board(made, reading.requirements, reading.context, dates)


def write_site(board: Board, folder: Path) -> None:
    """Writes the site to a folder, replacing any earlier site.

    Obsolete pages are removed last, so a full disk never leaves fewer pages than before or a folder
    that the next run would refuse.

    Raises:
        DocumentError: the folder contains something else.
        OSError: a file cannot be written.
    """
    _require_own(folder)
    pages = {folder / name: text for name, text in _files(board)}
    for path in pages:
        require_writable(path)
    for path, text in pages.items():
        write_file(path, visible(text))
    for pattern in _OWN:
        for path in {*folder.glob(pattern)} - pages.keys():
            with suppress(OSError):
                path.unlink()


def _require_own(folder: Path) -> None:
    """Checks that a folder is empty or contains an earlier site, and removes partial files."""
    index = folder / "index.html"
    if not folder.is_dir():
        return
    clear_partials(folder)
    for pattern in _OWN:
        clear_partials((folder / pattern).parent)
    if any(folder.iterdir()) and not (index.is_file() and _MARK in _read_head(index)):
        fix = "name another folder, or empty this one"
        raise DocumentError(
            str(folder), 0, "", "the folder contains files that are not part of a board", fix
        )


def _read_head(path: Path) -> str:
    with door.open_regular(path) as file:
        return file.read(4096).decode(errors="replace")


def _files(board: Board) -> Iterator[tuple[str, str]]:
    shared = views.areas(board.requirements)
    # Comes first because it marks the folder as a board, even if the disk fills up later.
    yield "index.html", _page("index.html", board)
    yield "board.css", package_file("board.css", _PACKAGE)
    yield "board.js", package_file("board.js", _PACKAGE)
    yield "sorting.js", package_file("sorting.js", _PACKAGE)
    yield "copying.js", package_file("copying.js")
    cells = {
        "findings": views.cell_data(board.findings),
        "versions": views.version_data(board.implementations),
    }
    cell_text = json.dumps(cells, ensure_ascii=True, separators=(",", ":"))
    yield (
        "matrix.html",
        _page(
            "matrix.html",
            board,
            areas=shared,
            documents=_document_titles(board),
            cells=Markup(escape_json(cell_text).replace("<", "\\u003c")),  # noqa: S704  # JSON
        ),
    )
    told = board.own_findings
    yield (
        "findings.html",
        _page(
            "findings.html",
            board,
            findings=told,
            kinds=[kind for kind in KINDS if any(one.finding.kind == kind for one in told)],
            requirements={one.id: one for one in board.requirements},
        ),
    )
    yield "defects.html", _page("defects.html", board)
    yield "machines.html", _machines_page(board)
    for requirement in board.requirements:
        yield board.requirement_pages[requirement.id], _requirement_page(board, requirement)
    for found in told:
        if found.file:
            yield found.file, found.finding.text
    for one in board.implementations:
        yield f"badges/{one.slug}.svg", _badge(one.newest)
        by_file = {}
        if text := views.known_failures(one.newest):
            yield f"known-failures/{one.slug}.yaml", text
            by_file = views.commands(one.newest, f"{one.slug}.yaml")
        page = _implementation_page(board, one, areas=shared, by_file=by_file)
        yield f"implementations/{one.slug}.html", page


def _document_titles(board: Board) -> dict[str, str]:
    """Returns the cited documents' titles and languages, by key."""
    titles = {}
    for key in dict.fromkeys(one.document for one in board.documented_requirements):
        document = board.context.documents.get(key)
        title = (document.original_title or document.title) if document else key
        foreign = document is not None and document.lang != "en"
        titles[key] = f"{title} ({document.language})" if document and foreign else title
    return titles


def _requirement_page(board: Board, requirement: ReportedRequirement) -> str:
    return _page(
        "requirement.html",
        board,
        root="../",
        requirement=requirement,
        history=requirement_history(requirement, board.implementations),
        defects=[one for one in board.defects if requirement.id in one.requirements],
    )


def _machines_page(board: Board) -> str:
    every = board.implementations
    discoverers = [one for one in every if board.agreement(one)]
    return _page(
        "machines.html",
        board,
        discoverers=discoverers,
        allocators=[one for one in every if one.newest.machines != one.newest.discovery],
        discovered={name for one in discoverers for name in one.newest.discovery},
        labels=_LABELS,
        own_machine=OWN_MACHINE,
        discovery_states=_DISCOVERY,
    )


def _implementation_page(board: Board, implementation: BoardImplementation, **more: Any) -> str:
    states = implementation.newest.states
    met = {"pass", "expected", "unsupported", "untested"}
    rows = [row for row in board.requirements if states.get(row.id, "untested") not in met]
    return _page(
        "implementation.html",
        board,
        root="../",
        one=implementation,
        newest=implementation.newest,
        badge=_badge_text(implementation.newest),
        changes=views.changes(implementation),
        findings=[found for found in board.findings if found.implementation is implementation],
        detailed_ids={row.id for row in rows},
        not_met=sorted(rows, key=lambda row: STATES.index(states[row.id])),
        **more,
    )


def _page(name: str, board: Board, root: str = "", **more: Any) -> str:
    template = _ENVIRONMENT.get_template(f"{name}.j2")
    return template.render(
        board=board, root=root, here=name, states=STATES, cited=board.context.documents, **more
    )


def _badge_text(entry: Entry) -> str:
    met = entry.requirement_score
    said = (
        f"{met.good:,} of {plural(met.asked_count, 'requirement')}"
        if met.asked_count
        else "nothing tested"
    )
    if met.as_kubelet:
        # There is no space for the word "requirements".
        said = f"{met.good:,} of {met.asked_count:,} met, {plural(met.as_kubelet, 'named defect')}"
    return f"incomplete: {said}" if entry.gaps else said


def _badge(entry: Entry) -> str:
    colour = "#1a7a43" if entry.requirement_score.is_all and not entry.gaps else "#9a6200"
    if entry.has_failed:
        colour = "#b3232e"
    return shield(f"kubernetes {entry.kubernetes}", _badge_text(entry), colour)


def _cases(places: Iterable[FoundIn]) -> int:
    return len({one.case for one in places})


def _machines(places: Iterable[FoundIn]) -> int:
    return len({name for one in places for name in one.machines})


_ENVIRONMENT = environment(_PACKAGE)
_ENVIRONMENT.filters |= {
    "bars": views.bars,
    "cases": _cases,
    "counted": views.count_text,
    "good_first": views.good_first,
    "machines": _machines,
    "met": views.met_text,
    "named": lambda state: views.NAMES.get(state, state),
    "number": STATES.index,
    "dated": views.dates_text,
    "documented": is_documented,
    "size": views.size_text,
    "slug": slug,
    "sources": sources,
    "tally": views.tally_text,
    "web_address": is_web_address,
}
_ENVIRONMENT.globals |= {
    "anchor": anchor,
    "signs": views.SIGNS,
    "meanings": views.MEANINGS,
    "verdicts": VERDICTS,
    "levels": LEVELS,
}
