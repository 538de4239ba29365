"""An answer about a node for a terminal, or as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numaproof.inputs.plurals import plural
from numaproof.reports.answers import HEADS, SIGNS, mark_of, shown
from numaproof.reports.drawing_text import drawn_text
from numaproof.reports.untrusted import visible, whole_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from numaproof.reports.answers import (
        AnswerReport,
        ContainerRow,
        Mark,
        ShapedAnswer,
        Story,
        StoryStep,
    )

_STYLES: dict[Mark, str] = {"good": "green", "fair": "yellow", "bad": "red"}


def parts(answer: AnswerReport, width: int) -> Iterator[RenderableType]:
    """The answer as renderables: a head, the table, a drawing `width` columns wide, and stories."""
    mark = mark_of(answer)
    head = Text(f"{SIGNS[mark]} {answer.title}", style=f"bold {_STYLES[mark]}")
    yield Group(head, Text(" · ".join(f"{name} {value}" for name, value in answer.setting), "dim"))
    if answer.rows:
        yield _table(answer.rows)
    yield drawn_text(answer.machine, answer.owners, answer.shared, stock=answer.stock, width=width)
    for story in answer.stories:
        yield _story(story)
    for shaped in answer.shaped:
        yield _shaped(shaped)


def _table(rows: tuple[ContainerRow, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    keys = shown(rows)
    table.add_column("")
    for key in keys:
        least = max(map(len, HEADS[key].split()))
        table.add_column(HEADS[key], overflow="fold", no_wrap=key == "pod", min_width=least)
    for row in rows:
        mark: Mark = "bad" if row.refusal else "good"
        cells = {key: whole_line(getattr(row, key)) for key in keys}
        if row.refusal:
            # The reason is long and appears in the story.
            cells["container"] = "refused"
        style = "red" if row.refusal else ""
        texts = (Text(cell, style) for cell in cells.values())
        table.add_row(Text(SIGNS[mark], _STYLES[mark]), *texts)
    return table


def _story(story: Story) -> RenderableType:
    mark: Mark = "good" if story.good else "bad"
    name = f"{SIGNS[mark]} {whole_line(story.pod)}"
    lines: list[RenderableType] = [Text(name, style=f"bold {_STYLES[mark]}")]
    if story.said:
        lines.append(_indented(Text(visible(story.said), "italic")))
    lines.append(_indented(Text(story.summary, "bold")))
    if story.steps:
        lines.append(_indented(_steps(story.steps)))
    lines += [_indented(Text(f"Hint: {advice}.", "cyan")) for advice in story.advice]
    return Group(*lines)


def _shaped(shaped: ShapedAnswer) -> RenderableType:
    name = f"{SIGNS['fair']} {whole_line(shaped.subject)}"
    lines: list[RenderableType] = [
        Text(name, style=f"bold {_STYLES['fair']}"),
        _indented(Text(shaped.summary, "bold")),
    ]
    for what, kubelet, documented in shaped.differences:
        lines.append(_indented(Text(f"{what}:")))
        for side, text in (("kubelet", kubelet), ("documented", documented)):
            lines.append(_indented(Text(f"  {side:<10}  {whole_line(text)}")))
    lines += [_indented(Text(str(defect), "cyan")) for defect in shaped.defects]
    return Group(*lines)


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


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))
