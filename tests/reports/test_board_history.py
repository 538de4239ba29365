"""Since which version an implementation meets a requirement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.boards import pinner, registry
from numaproof.protocol.events import Origin
from numaproof.reports.board.context import CaseTitle, NamedDefect, RunContext
from numaproof.reports.board.data import Author, encode_board_data
from numaproof.reports.board.digest import run_data
from numaproof.reports.board.history import History, requirement_history
from numaproof.reports.board.reading import RunsRead, read
from numaproof.reports.board.site import board_of, write_site
from numaproof.reports.board.standing import implementations
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import MakeRun, MakeStream
    from numaproof.reports.board.data import RunData

ID = "CPU-STATIC-001"
OUTCOMES = {"✓": "pass", "✗": "fail", "≈": "expected failure", "○": "unsupported"}


def runs(versions: dict[str, str], **more: Any) -> list[RunData]:
    """Runs of versions that have these states for a requirement; `·` means untested."""
    return [
        pinner(
            version,
            findings=(),
            requirements={ID: {OUTCOMES[sign]: 2}} if sign in OUTCOMES else {},
            **more,
        )
        for version, sign in versions.items()
    ]


def history(versions: dict[str, str]) -> History:
    (one,) = implementations(runs(versions))
    row = next(row for row in registry() if row.id == ID)
    (found,) = requirement_history(row, [one]).histories
    return found


@pytest.mark.parametrize(
    ("versions", "verdict", "since", "origin"),
    [
        ({"1.0": "✓"}, "met", "1.0", "the only version tested"),
        ({"1.0": "✓", "1.2": "✓", "1.10": "✓"}, "met", "1.0", "the oldest version tested"),
        ({"1.0": "✗", "1.2": "✓", "1.10": "✓"}, "met", "1.2", "before: not met in 1.0"),
        ({"1.0": "✓", "1.2": "✗", "1.10": "✓"}, "met", "1.10", "before: not met in 1.2"),
        ({"1.0": "≈", "1.2": "✓"}, "met", "1.2", "before: named defects only in 1.0"),
        ({"1.0": "✓", "1.2": "≈"}, "named defects only", "1.2", "before: met in 1.0"),
        # Versions for which it was not tested say nothing.
        ({"1.0": "✗", "1.1": "✓", "1.2": "○", "1.3": "✓"}, "met", "1.1", "before: not met in 1.0"),
        ({"1.0": "·", "1.2": "✓"}, "met", "1.2", "the only version tested"),
    ],
)
def test_a_verdict_holds_since_the_oldest_unbroken_version(
    versions: dict[str, str], verdict: str, since: str, origin: str
) -> None:
    found = history(versions)
    assert found.latest.verdict == verdict
    assert found.since.version == since
    assert found.origin == origin
    assert found.is_current


def test_a_version_without_a_test_does_not_hide_the_last_result() -> None:
    found = history({"1.0": "✓", "1.2": "·"})
    assert not found.is_current
    assert found.latest.version == "1.0"


def site(folder: Path, made: list[RunData], **context: Any) -> dict[str, str]:
    known = RunContext(registry(), "- id: {}".format, **context)
    write_site(board_of(RunsRead(known, made)), folder)
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.html")}


def test_each_requirement_has_a_page_with_its_versions_and_cases(tmp_path: Path) -> None:
    made = runs({"1.0": "✗", "1.2": "✓"}, date="2026-03-01")
    case = CaseTitle("static-whole", "A whole CPU is exclusive", "placement", (ID,))
    page = site(tmp_path, made, cases=(case,))["requirements/cpu-static-001.html"]
    for said in ("<b>1</b> met", "<b>1.2</b>", "before: not met in 1.0", "2026-03-01", case.title):
        assert said in page
    assert 'title="failed: 2 failed; run on 2026-03-01"' in page
    assert 'id="case/static-whole"' in page
    assert "- id: static-whole" in page


def test_unknown_dates_are_called_unknown(tmp_path: Path) -> None:
    dated, *_ = runs({"1.2": "✓"}, date="2026-03-01")
    pages = site(tmp_path, [*runs({"1.0": "✗"}), dated])
    assert "2 runs, 2026-03-01, 1 with unknown dates" in pages["index.html"]
    assert "date unknown" in pages["requirements/cpu-static-001.html"]
    assert "unknown</span></td>" in pages["implementations/pinner.html"]


def test_an_overview_of_unknown_dates_has_no_column_for_them(tmp_path: Path) -> None:
    assert "Run on" not in site(tmp_path / "unknown", runs({"1.0": "✓"}))["index.html"]
    assert "Run on" in site(tmp_path / "known", runs({"1.0": "✓"}, date="2026-03-01"))["index.html"]


def test_complete_runs_come_before_partial_ones(tmp_path: Path) -> None:
    made = [*runs({"1.0": "✓"}, gaps=("A part.",)), *runs({"1.1": "✓"})]
    page = site(tmp_path, made)["requirements/cpu-static-001.html"]
    cell = page.partition('data-label="Kubernetes ')[2].partition("</td>")[0]
    assert cell.index("1.1") < cell.index("1.0") < cell.index("partial run")


def test_named_defects_are_no_unmet_requirements(tmp_path: Path) -> None:
    page = site(tmp_path, runs({"1.0": "≈"}))["requirements/cpu-static-001.html"]
    assert "Why it isn't met" not in page
    assert "Met except for named defects" in page


def test_named_defects_link_to_their_requirements_and_issues(tmp_path: Path) -> None:
    issue = "https://github.com/kubernetes/kubernetes/issues/140495"
    known = NamedDefect("free-core-by-average", "It averages.", "It must not.", ("1.36",), issue)
    case = CaseTitle("half-a-core", "Cores stay whole", "placement", (ID,), known.name)
    pages = site(tmp_path, [pinner()], defects=(known,), cases=(case,))
    assert f'href="{issue}"' in pages["defects.html"]
    assert 'href="requirements/cpu-static-004.html"' in pages["defects.html"]
    assert 'href="requirements/cpu-static-001.html#case/half-a-core"' in pages["defects.html"]
    broken = pages["requirements/cpu-static-004.html"]
    assert 'href="../defects.html#free-core-by-average"' in broken
    assert f'href="{issue}"' in broken


def test_a_repeated_run_replaces_its_equal_and_keeps_the_newest_date() -> None:
    old, new = pinner(date="2026-01-01"), pinner(date="2026-02-01")
    for order in ([old, new], [new, old]):
        (one,) = implementations(order)
        assert one.newest.date == "2026-02-01"
        assert one.newest.requirements[ID] == {"pass": 9}


def test_the_date_comes_from_the_first_event(run: MakeRun, stream: MakeStream) -> None:
    events = stream(run(), start={"origin": Origin("2026-03-01T23:59:59Z")})
    assert run_data(summarize(events), "folder", lambda _: "").date == "2026-03-01"


@pytest.mark.parametrize("date", ["yesterday", "2026-3-1", "<script>"])
def test_board_data_with_other_dates_are_refused(date: str, tmp_path: Path) -> None:
    file = tmp_path / "run.board.json"
    file.write_bytes(encode_board_data([msgspec.structs.replace(pinner(), date=date)]))
    with pytest.raises(ValueError, match="not board data"):
        read([file], RunContext((), lambda _: ""))


def test_allocators_and_discoverers_are_separate(tmp_path: Path) -> None:
    reader = Author("reader", "1", "C", ("hello", "discover"))
    both = Author("both", "1", "C", ("discover", "assign"))
    made = [pinner(author=reader), pinner(author=both), pinner(author=Author("silent", "1", "C"))]
    index = site(tmp_path, made)["index.html"]
    _, allocators, discoverers = index.split("<h2 id=")[:3]
    assert ">both<" in allocators
    assert ">silent<" in allocators
    assert ">reader<" in discoverers
    assert ">reader<" not in allocators
