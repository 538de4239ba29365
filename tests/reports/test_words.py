"""Small functions of the reports with calls and results: `words.yaml`.

Hidden characters are written as JSON escapes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from builders.tables import Table
from numaproof.reports.board.data import MachineSize, kind_of
from numaproof.reports.board.standing import Score, version_key, worst
from numaproof.reports.board.views import bars, size_text, tally_text
from numaproof.reports.html import is_web_address
from numaproof.reports.markdown import escape
from numaproof.reports.story import both_ends
from numaproof.reports.untrusted_text import one_line, shorten, visible
from numaproof.reports.values import diff_lines, differences, pretty, without_machine

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = Table(__file__, "words.yaml", compact=True)


def _trace_log(head: str, end: str) -> str:
    """A long log with a trace, shortened to its ends."""
    log = [*("chatter" for _ in range(30)), head, *("frame" for _ in range(40)), end]
    return both_ends("\n".join(log), 6)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "hidden characters": lambda text: visible(json.loads(f'"{text}"')),
    "one line": one_line,
    "long text": shorten,
    "the ends of a log": both_ends,
    "the ends of a log with a trace": _trace_log,
    "a value laid out": pretty,
    "differences": lambda *sides: [msgspec.to_builtins(one) for one in differences(*sides)],
    "lines that differ": diff_lines,
    "arguments without their machine": without_machine,
    "a cell of a Markdown table": escape,
    "a web address": lambda text: is_web_address(json.loads(f'"{text}"')),
    "the start of a reason": kind_of,
    "versions as people count them": lambda names: sorted(names, key=version_key),
    "the worst of a tally": worst,
    "a score": lambda counts: Score(counts).percent,
    "a bar": bars,
    "the size of a machine": lambda *size: size_text(MachineSize(*size) if size else None),
    "a tally in words": tally_text,
}


@WORDS
def test_functions_return_the_expected_text(row: dict[str, Any]) -> None:
    function = FUNCTIONS[row["what"]]
    WORDS.check(row, [{"of": one["of"], "is": function(*one["of"])} for one in row["says"]])
