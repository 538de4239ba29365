"""Renders an answer about a node as text, HTML or SVG: a table, a drawing and the reasons.

The page loads and runs nothing: its content security policy allows only its own styles, identified
by hash. Jinja escapes every value, and hidden characters are made visible.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numaproof.inputs.plurals import plural
from numaproof.reports.anchors import anchor
from numaproof.reports.drawing_svg import WIDEST, draw_svg, drawing_file
from numaproof.reports.drawing_text import drawn_text
from numaproof.reports.layout import (
    NOTHING,
    Stock,
    cpus_of,
    numbering,
    ownership,
    same_nodes,
)
from numaproof.reports.pages import environment, package_file
from numaproof.reports.untrusted_text import visible, whole_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from markupsafe import Markup
    from rich.console import RenderableType

    from numaproof.protocol.events import Owner
    from numaproof.protocol.machine import MachineInfo

Mark = Literal["good", "fair", "bad"]

SIGNS: dict[Mark, str] = {"good": "✓", "fair": "~", "bad": "✗"}


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """An admitted container or, with `refusal`, a refused pod.

    `is_aligned` is false if some of the container's resources are outside its affinity.
    """

    pod: str
    container: str = ""
    cpus: str = ""
    memory: str = ""
    devices: str = ""
    alignment: str = ""
    refusal: str = ""
    is_aligned: bool = True


HEADS = {
    "pod": "pod",
    "container": "container",
    "cpus": "exclusive CPUs",
    "memory": "memory",
    "devices": "devices",
    "alignment": "aligned to",
}
"""The column heads of the table of containers."""


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate, its mark, and the reason for the mark."""

    mark: Mark
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class StoryStep:
    """A step of an explanation; `more` counts the items not shown."""

    text: str
    items: tuple[Item, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """Explains why one pod or several identical pods were refused or admitted.

    `message` is the kubelet's message, `summary` is numaproof's. `room` is about the pods that
    would have to go. `fixes` are changes that are needed, `advice` is what may help.
    """

    pod: str
    good: bool
    message: str
    summary: str
    steps: tuple[StoryStep, ...]
    advice: tuple[str, ...]
    room: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownDefect:
    """A named defect of the kubelet, and the URLs of its description and its issue."""

    name: str
    what: str
    page: str
    issue: str

    def __str__(self) -> str:
        """Returns the first sentence of the description, with the URLs."""
        where = " · ".join(filter(None, (self.page, self.issue)))
        return f"{self.name}: {self.what.partition('. ')[0].removesuffix('.')} ({where})"


@dataclass(frozen=True, slots=True)
class ShapedAnswer:
    """An answer affected by defects of the kubelet.

    Attributes:
        subject: the pod, container or part of the node that the answer is about.
        summary: how the defects affect the answer.
        differences: triples: what differs, the kubelet's answer and the documented answer.
        defects: the defects.
    """

    subject: str
    summary: str
    differences: tuple[tuple[str, str, str], ...]
    defects: tuple[ShownDefect, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """A titled list of short texts."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Lines about one subject; leading spaces are kept."""

    title: str
    mark: Mark
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of a grid; `mark` is None if it is neither good nor bad."""

    mark: Mark | None
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table with a title; each row has a cell for each of the `heads`."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[GridRow, ...]


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """The whole answer; `setting` describes the node as name-value pairs.

    `remarks` are about the table of containers, `limits` about what the answer leaves out.
    `sections` are about the node; `what_ifs` are the answers after further steps. `grids` replace
    the table of containers if there are too many. The text has no drawing if `is_drawn` is false.
    `inputs` describes what was read. `is_assumed` means that the answer rests on an assumption
    about the node's state.
    """

    title: str
    good: bool
    setting: tuple[tuple[str, str], ...]
    rows: tuple[ContainerRow, ...]
    stories: tuple[Story, ...]
    machine: MachineInfo
    owners: tuple[Owner, ...] = ()
    shared: str = ""
    stock: Stock = NOTHING
    shaped_answers: tuple[ShapedAnswer, ...] = ()
    remarks: tuple[Remark, ...] = ()
    limits: tuple[Remark, ...] = ()
    sections: tuple[Section, ...] = ()
    what_ifs: tuple[AnswerReport, ...] = ()
    grids: tuple[Grid, ...] = ()
    is_drawn: bool = True
    inputs: tuple[str, ...] = ()
    is_assumed: bool = False


def mark_of(answer: AnswerReport) -> Mark:
    """Returns the mark of an answer: fair if it is good but assumed or not as documented."""
    if not answer.good:
        return "bad"
    return "fair" if answer.shaped_answers or answer.is_assumed else "good"


def visible_columns(rows: tuple[ContainerRow, ...]) -> list[str]:
    """Returns the pod and container columns, and all others that are not empty."""
    return [
        key for key in HEADS if key in {"pod", "container"} or any(getattr(r, key) for r in rows)
    ]


# As text

_STYLES: dict[Mark, str] = {"good": "green", "fair": "yellow", "bad": "red"}


def _numbers(answer: AnswerReport) -> Mapping[str, int]:
    """Numbers the containers of an answer and of its what-ifs."""
    return numbering(one.owners for one in (answer, *answer.what_ifs))


def parts(answer: AnswerReport, width: int) -> Iterator[RenderableType]:
    """Yields the answer: a heading, a drawing `width` columns wide, the table, and explanations."""
    numbers = _numbers(answer)
    before = None
    for one in (answer, *answer.what_ifs):
        yield from _parts(one, width, numbers, before)
        before = one if one.is_drawn else before


def _has_changed(answer: AnswerReport, before: AnswerReport | None) -> bool:
    """Whether a drawing differs from the one before."""
    return before is None or (answer.owners, answer.shared, answer.stock) != (
        before.owners,
        before.shared,
        before.stock,
    )


def _same_nodes(
    answer: AnswerReport, before: AnswerReport | None, numbers: Mapping[str, int]
) -> frozenset[int]:
    """Returns the NUMA nodes that look as before."""
    if before is None:
        return frozenset()
    cpus = cpus_of(answer.machine)
    old, new = (
        (ownership(cpus, one.owners, one.shared, numbers), one.stock) for one in (before, answer)
    )
    return same_nodes(answer.machine, old, new)


def _parts(
    answer: AnswerReport, width: int, numbers: Mapping[str, int], before: AnswerReport | None
) -> Iterator[RenderableType]:
    head = heading(mark_of(answer), answer.title)
    setting = " · ".join(setting_texts(answer))
    yield Group(head, Text(setting, "dim")) if setting else head
    if answer.is_drawn and _has_changed(answer, before):
        yield drawn_text(
            answer.machine,
            answer.owners,
            answer.shared,
            stock=answer.stock,
            numbers=numbers,
            same_nodes=_same_nodes(answer, before, numbers),
            width=width,
        )
    if answer.rows:
        yield _table(answer.rows)
    yield from map(grid_text, answer.grids)
    yield from map(_remark, answer.remarks)
    for section in answer.sections:
        yield text_of(section)
    for story in answer.stories:
        yield story_text(story)
    for shaped in answer.shaped_answers:
        yield _block("fair", shaped.subject, _shaped_answer_lines(shaped))
    yield from map(_remark, answer.limits)


def _remark(remark: Remark) -> Group:
    lines = (Padding(Text(whole_line(line)), (0, 0, 0, 2)) for line in remark.lines)
    return Group(Text(remark.title, "bold"), *lines)


def _table(rows: tuple[ContainerRow, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    keys = visible_columns(rows)
    table.add_column("")
    for key in keys:
        least = max(map(len, HEADS[key].split()))
        table.add_column(HEADS[key], overflow="fold", no_wrap=key == "pod", min_width=least)
    for row in rows:
        mark: Mark = "bad" if row.refusal else "good" if row.is_aligned else "fair"
        cells = {key: whole_line(getattr(row, key)) for key in keys}
        if row.refusal:
            # The reason is long and part of the explanation.
            cells["container"] = "refused"
        style = "red" if row.refusal else ""
        texts = (Text(cell, style) for cell in cells.values())
        table.add_row(Text(SIGNS[mark], _STYLES[mark]), *texts)
    return table


def heading(mark: Mark, title: str) -> Text:
    """Returns a heading with a mark as text."""
    return Text(f"{SIGNS[mark]} {whole_line(title)}", style=f"bold {_STYLES[mark]}")


def text_of(section: Section) -> Group:
    """Returns a section as text."""
    return _block(section.mark, section.title, map(_section_line, section.lines))


def story_text(story: Story) -> Group:
    """Returns a story as text."""
    return _block("good" if story.good else "bad", story.pod, _story(story))


def grid_text(grid: Grid) -> Group:
    """Returns a grid as text."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for head in grid.heads:
        table.add_column(head, overflow="fold", min_width=max(map(len, head.split())))
    for row in grid.rows:
        sign = Text(SIGNS[row.mark], _STYLES[row.mark]) if row.mark else Text("")
        table.add_row(sign, *(Text(whole_line(cell)) for cell in row.cells))
    return Group(Text(grid.title, "bold"), table)


def _block(mark: Mark, name: str, parts: Iterable[RenderableType]) -> Group:
    return Group(heading(mark, name), *(Padding(part, (0, 0, 0, 2)) for part in parts))


def _story(story: Story) -> Iterator[RenderableType]:
    if story.message:
        yield Text(visible(story.message), "italic")
    yield Text(story.summary, "" if story.fixes else "bold")
    yield from (Text(f"Fix: {fix}", "bold") for fix in story.fixes)
    if story.steps:
        yield _steps(story.steps)
    yield from map(_section_line, story.room)
    yield from (Text(f"Hint: {advice}.", "cyan") for advice in story.advice)


def _section_line(line: str) -> RenderableType:
    text = line.lstrip()
    return Padding(Text(whole_line(text)), (0, 0, 0, len(line) - len(text)))


def _shaped_answer_lines(answer: ShapedAnswer) -> Iterator[Text]:
    yield Text(answer.summary, "bold")
    for what, kubelet, documented in answer.differences:
        yield Text(f"{what}:")
        yield Text(f"  {'kubelet':<10}  {whole_line(kubelet)}")
        yield Text(f"  {'documented':<10}  {whole_line(documented)}")
    yield from (Text(str(defect), "cyan") for defect in answer.defects)


def _steps(steps: tuple[StoryStep, ...]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for number, step in enumerate(steps, 1):
        items = Table.grid(padding=(0, 2, 0, 0))
        for item in step.items:
            cells = (f"{SIGNS[item.mark]} {item.subject}", item.text)
            items.add_row(*(Text(cell, _STYLES[item.mark]) for cell in cells))
        if step.more:
            items.add_row(
                Text("…", "dim"), Text(f"{plural(step.more, 'more set')} of nodes", "dim")
            )
        text: RenderableType = Text(step.text)
        grid.add_row(f"{number}.", Group(text, items) if step.items else text)
    return grid


# As a page

_NARROW = 340
"""Maximum width of a drawing on a narrow screen, in CSS pixels."""

_LONGEST_LIST = 20
"""Maximum number of rows or lines that a page shows without a click."""

_NAMED = 3
"""How many refusals the head of a page names."""

_WORDS: Mapping[Mark, str] = {"good": "preferred", "fair": "possible", "bad": "impossible"}


def html(answer: AnswerReport) -> str:
    """Renders the answer as an HTML page."""
    template = environment().get_template("answer.html.j2")
    return template.render(
        answer=answer,
        verdict=mark_of(answer),
        style=package_file("answer.css"),
        id_of=lambda kind, *names: anchor(kind, *filter(None, names)),
        signs=SIGNS,
        words=_WORDS,
        heads=HEADS,
        has_changed=_has_changed,
        shown_in=lambda report: visible_columns(report.rows),
        drawing_of=partial(_drawing, numbers=_numbers(answer)),
        named=_NAMED,
        narrow=_NARROW,
        longest=_LONGEST_LIST,
    )


def svg(answer: AnswerReport) -> str:
    """Renders only the drawing of the node after the last step, as an SVG file."""
    last = (answer, *answer.what_ifs)[-1]
    machine = dict(answer.setting).get("machine")
    title = " · ".join(filter(None, (machine, last.title)))
    setting = tuple(one for one in setting_texts(answer) if one != f"machine {machine}")
    return drawing_file(_drawing(last, numbers=_numbers(answer), title=title, setting=setting))


def setting_texts(answer: AnswerReport) -> Iterator[str]:
    """Yields what describes the node: its machine, release and policies."""
    return (f"{name} {value}" for name, value in answer.setting)


def _drawing(
    answer: AnswerReport,
    *,
    numbers: Mapping[str, int],
    title: str = "",
    setting: Sequence[str] = (),
    widest: int = WIDEST,
) -> Markup:
    return draw_svg(
        answer.machine,
        answer.owners,
        answer.shared,
        stock=answer.stock,
        numbers=numbers,
        title=title,
        setting=setting,
        widest=widest,
    )


WRITERS: Mapping[str, Callable[[AnswerReport], str]] = {".html": html, ".svg": svg}
"""The writer for each file extension."""
