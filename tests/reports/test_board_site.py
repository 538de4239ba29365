"""The board's text and the signs its pages share, without a browser."""

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
from numaproof.reports.board.context import RunContext
from numaproof.reports.board.data import Author, BoardFinding, FoundIn, MachineSize
from numaproof.reports.board.reading import RunsRead
from numaproof.reports.board.site import OWN_MACHINE, Board, board_of, write_site
from numaproof.reports.board.standing import Score
from numaproof.reports.board.views import MEANINGS, SIGNS

if TYPE_CHECKING:
    from numaproof.reports.board.data import RunData

ADAPTERS = Path(__file__).parents[2] / "adapters"
SIZE = MachineSize(cpus=8, nodes=2, sockets=1)


def board(*runs: RunData) -> Board:
    return board_of(RunsRead(RunContext(registry(), lambda _: ""), list(runs)))


def pages(site_board: Board, folder: Path) -> dict[str, str]:
    write_site(site_board, folder)
    return {path.name: path.read_text() for path in folder.rglob("*.html")}


def test_every_outcome_has_a_unique_sign() -> None:
    assert len(set(SIGNS.values())) == len(SIGNS)
    assert SIGNS.keys() == MEANINGS.keys()


def test_the_documentation_lists_the_signs() -> None:
    text = (ADAPTERS.parent / "docs" / "board.md").read_text()
    told = dict(re.findall(r"^\| (\S) \| ([a-z ]+) \|", text, re.MULTILINE))
    assert told == {sign: state for state, sign in SIGNS.items()}


def test_machines_are_those_described_or_discovered_in_runs(tmp_path: Path) -> None:
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
    # Machines of unknown size come last.
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


def test_undocumented_requirements_are_not_counted(tmp_path: Path) -> None:
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
    # It has a row with its result.
    assert 'id="RECORDED/pinner" class="s0"' in shown["matrix.html"]
    assert shown["matrix.html"].count('data-document=""') == 2


@pytest.mark.parametrize(
    ("outcomes", "colour"),
    [
        ({"pass": 3, "known failure": 1}, "#9a6200"),
        ({"pass": 3, "known failure": 1, "crash": 1}, "#b3232e"),
    ],
)
def test_a_badge_is_red_if_the_exit_code_is_1(outcomes: Any, colour: str, tmp_path: Path) -> None:
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


def test_no_machine_has_a_name_used_by_the_harness() -> None:
    assert GivenMachine.__dataclass_fields__["name"].default == OWN_MACHINE


def test_pages_say_if_no_case_was_run(tmp_path: Path) -> None:
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


def test_a_failed_write_keeps_the_earlier_site(tmp_path: Path) -> None:
    write_site(board(pinner()), tmp_path)
    last = max(tmp_path.rglob("*.html"))
    last.unlink()
    os.mkfifo(last)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(OSError, match="is a FIFO") as error:
        write_site(board(pinner()), tmp_path)
    assert error.value.filename == str(last)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_counts_of_findings_link_to_them(tmp_path: Path) -> None:
    where = (FoundIn("c", "known failure", ("m",), ("CPU-STATIC-001",)),)
    found = BoardFinding("own rules", "known failure", "t", {"s": 1}, cases=where)
    made = board(pinner(author=Author("a b", "1", "Go"), findings=(found,)))
    index = pages(made, tmp_path)["index.html"]
    assert 'href="findings.html?implementation=a-b&amp;kind=own%20rules"' in index
    assert 'href="matrix.html?implementation=a-b"' in index


def test_findings_of_fuzzing_only_count_scenarios(tmp_path: Path) -> None:
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


def test_reasons_of_known_failures_cite_no_files() -> None:
    """A site shows the reasons, but not the files next to them."""
    citing = re.compile(r"\.yaml|\.md|findings?/|README")
    for path in ADAPTERS.glob("*/known-failures.yaml"):
        for one in yaml.safe_load(path.read_text())["known_failures"]:
            assert not citing.search(one["reason"]), f"{path.parent.name}: {one['reason']}"
