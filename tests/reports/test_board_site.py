"""What a board's pages say, and the words and signs that they share; no browser is needed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from builders.boards import pinner, registry
from numaproof.conformance.execution.machines import GivenMachine
from numaproof.protocol.events import ReportedRequirement
from numaproof.reports.board.data import Author, BoardFinding, FoundIn, MachineSize
from numaproof.reports.board.reading import RunContext, RunsRead
from numaproof.reports.board.site import OWN_MACHINE, Board, board_of, write_site
from numaproof.reports.board.standing import Score, implementations
from numaproof.reports.board.views import MEANINGS, SIGNS

if TYPE_CHECKING:
    from numaproof.reports.board.data import RunData

ADAPTERS = Path(__file__).parents[2] / "adapters"
SIZE = MachineSize(cpus=8, nodes=2, sockets=1)


def board(*runs: RunData) -> Board:
    return Board(implementations(runs), registry(), len(runs))


def pages(site_board: Board, folder: Path) -> dict[str, str]:
    write_site(site_board, folder)
    return {path.name: path.read_text() for path in folder.rglob("*.html")}


def test_no_two_states_have_the_same_sign() -> None:
    assert len(set(SIGNS.values())) == len(SIGNS)
    assert SIGNS.keys() == MEANINGS.keys()


def test_the_documents_table_has_the_signs() -> None:
    text = (ADAPTERS.parent / "docs" / "board.md").read_text()
    told = dict(re.findall(r"^\| (\S) \| ([a-z ]+) \|", text, re.MULTILINE))
    assert told == {sign: state for state, sign in SIGNS.items()}


def test_machines_are_what_runs_describe_or_discover(tmp_path: Path) -> None:
    tally: Any = {"pass": 1}
    names = ("laptop", "cannot-be-discovered", OWN_MACHINE, "a recording")
    made = board(
        pinner(
            findings=(),
            requirements={"CPU-STATIC-001": tally, "CPU-STATIC-002": {"unsupported": 3}},
            machines=dict.fromkeys(names, tally),
            discovery={"laptop": tally, "cannot-be-discovered": tally},
            sizes={"laptop": SIZE, OWN_MACHINE: MachineSize(9, 9, 1)},
        )
    )
    # What has no size stands behind what has one.
    assert list(made.machines.items()) == [("laptop", SIZE), ("cannot-be-discovered", None)]
    assert made.elsewhere == ("a recording", OWN_MACHINE)
    shown = pages(made, tmp_path)
    said = f"{len(registry()):,} documented requirements (1 tested) on 2 machines"
    assert said in shown["index.html"]
    parts = re.split("<table|Other machines", shown["machines.html"])
    _, first, second, other = parts
    for table in (first, second):
        assert "laptop" in table
        assert OWN_MACHINE not in table
    assert OWN_MACHINE in other
    assert "a recording" in other


def test_what_no_document_has_is_in_no_count_of_requirements(tmp_path: Path) -> None:
    tally: Any = {"pass": 1}
    recorded = ReportedRequirement("RECORDED", "recordings", "As recorded.", "fixtures", "")
    bare = ReportedRequirement("OURS", "ours", "As we like it.", "", "")
    asked: Any = {"CPU-STATIC-001": tally, "RECORDED": {"fail": 1}, "OURS": tally}
    run = pinner(findings=(), requirements=asked)
    known = RunContext((*registry(), bare), lambda _: "")
    reading = RunsRead(known, [run])
    reading.add([recorded])
    made = board_of(reading)
    (one,) = made.implementations
    assert one.newest.requirement_score == Score({"pass": 1})
    assert made.plain()["implementations"][0]["requirements"]["asked"] == 1
    shown = pages(made, tmp_path)
    said = f"{len(registry()):,} documented requirements (1 tested)"
    assert said in shown["index.html"]
    assert "1 of 1 requirement<" in (tmp_path / "badges" / "pinner.svg").read_text()
    # It has its row, and what became of it.
    assert 'id="RECORDED/pinner" class="s0"' in shown["matrix.html"]


@pytest.mark.parametrize(
    ("outcomes", "colour"),
    [
        ({"pass": 3, "known failure": 1}, "#9a6200"),
        ({"pass": 3, "known failure": 1, "crash": 1}, "#b3232e"),
    ],
)
def test_a_badge_is_red_where_the_exit_code_is_and_not_for_a_known_crash(
    outcomes: Any, colour: str, tmp_path: Path
) -> None:
    where = FoundIn("a-case", "known failure", ("laptop-4c8t",), ("CPU-STATIC-001",))
    known = BoardFinding(
        kind="crash",
        outcome="known failure",
        title="It crashes",
        signatures={"crash at admit": 1},
        reason="Crash: it ends",
        cases=(where,),
    )
    asked: Any = {"CPU-STATIC-001": {"known failure": 1}, "CPU-STATIC-002": {"pass": 3}}
    run = pinner(findings=(known,), requirements=asked, outcomes=outcomes)
    pages(board_of(RunsRead(RunContext(registry(), lambda _: ""), [run])), tmp_path)
    assert colour in (tmp_path / "badges" / "pinner.svg").read_text()


def test_the_name_of_no_machine_is_the_harness_s() -> None:
    assert GivenMachine.__dataclass_fields__["name"].default == OWN_MACHINE


def test_where_no_case_was_run_the_pages_say_so(tmp_path: Path) -> None:
    none: Any = {"findings": (), "requirements": {}, "machines": {}}
    author = Author("all else", "1", "C", ("discover",), discovers=("nodes", "cores"))
    shown = pages(
        board(
            pinner(kind="fuzz", **none),
            pinner(author=author, outcomes={"unsupported": 3}, gaps=("A part.",), **none),
        ),
        tmp_path,
    )
    for name in ("index.html", "pinner.html"):
        assert "No cases were run." in shown[name]
    for name in ("index.html", "all-else.html"):
        assert "No claimed cases were run." in shown[name]
    assert not [name for name, text in shown.items() if "of 0 case runs" in text]
    assert "Machine fields it discovers: nodes, cores." in shown["all-else.html"]
    said = "Parts of their newest runs are missing, so their figures may be too high."
    assert said in shown["index.html"]


def test_a_page_that_cannot_be_written_leaves_the_earlier_site_alone(tmp_path: Path) -> None:
    write_site(board(pinner()), tmp_path)
    last = max(tmp_path.rglob("*.html"))
    last.unlink()
    os.mkfifo(last)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(OSError, match="is a FIFO") as error:
        write_site(board(pinner()), tmp_path)
    assert error.value.filename == str(last)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_counts_of_findings_lead_to_them(tmp_path: Path) -> None:
    where = (FoundIn("c", "known failure", ("m",), ("CPU-STATIC-001",)),)
    found = BoardFinding("own rules", "known failure", "t", {"s": 1}, cases=where)
    made = board(pinner(author=Author("a b", "1", "Go"), findings=(found,)))
    index = pages(made, tmp_path)["index.html"]
    assert 'href="findings.html?implementation=a-b&amp;kind=own%20rules"' in index
    assert 'href="matrix.html?implementation=a-b"' in index


def test_what_fuzzing_found_has_no_count_but_of_scenarios(tmp_path: Path) -> None:
    found = BoardFinding("finding", "known failure", "t", {"cpus differ": 77}, reason="two owners")
    outcomes: Any = {"pass": 47, "known failure": 353, "unsupported": 1}
    none: Any = {"requirements": {}, "machines": {}}
    shown = pages(
        board(
            pinner(kind="fuzz", findings=(found,), outcomes=outcomes, **none),
            pinner(author=Author("other", "1", "C"), kind="diff", findings=(found,), **none),
        ),
        tmp_path,
    )
    for name in ("findings.html", "pinner.html"):
        assert "1.36 · found by fuzzing</span>" in shown[name]
        assert "77" not in shown[name]
    assert "1.36 · found by comparison</span>" in shown["other.html"]
    said = "Fuzzing: 353 known failures, 47 passed, 1 unsupported</p>"
    assert said in shown["pinner.html"]
    assert "Comparison: " in shown["other.html"]


def test_reasons_of_known_failures_stand_alone() -> None:
    """A site shows them, and has none of the files beside them."""
    citing = re.compile(r"\.yaml|\.md|findings?/|README")
    for path in ADAPTERS.glob("*/known-failures.yaml"):
        for one in yaml.safe_load(path.read_text())["known_failures"]:
            assert not citing.search(one["reason"]), f"{path.parent.name}: {one['reason']}"
