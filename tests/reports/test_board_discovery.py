"""On a board, what was discovered wrongly counts for the requirements that are about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numaproof.reports.board.digest import run_data
from numaproof.reports.board.standing import implementations
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from conftest import MakeRun, MakeStream

ALL = ("STATIC-1", "STATIC-2", "NONE-1")


def test_a_wrong_machine_breaks_what_is_about_its_wrong_fields_alone(
    stream: MakeStream, run: MakeRun
) -> None:
    wrong = run(
        "known failure",
        requirements=ALL,
        kept=("STATIC-1",),
        unseen=("NONE-1",),
        reason="finding: sizes",
        signature="discover: caches differ",
    )
    summary = summarize(stream(wrong, run("pass", requirements=ALL, unseen=("NONE-1",))))
    assert {name: dict(tally.counts) for name, tally in summary.by_requirement.items()} == {
        "STATIC-1": {"pass": 2},
        "STATIC-2": {"pass": 1, "known failure": 1},
        "NONE-1": {"unsupported": 2},
    }
    made = run_data(summary, "folder", lambda _: "")
    (finding,) = made.findings
    assert finding.requirements == ("STATIC-2",)
    (one,) = implementations([made])
    assert one.newest.states == {
        "STATIC-1": "pass",
        "STATIC-2": "finding",
        "NONE-1": "unsupported",
    }


def test_a_case_that_breaks_one_thing_here_and_another_there_says_so(
    stream: MakeStream, run: MakeRun
) -> None:
    known = {"reason": "own rules: ours", "signature": "discover: differs", "requirements": ALL}
    here = run("known failure", kept=("STATIC-2", "NONE-1"), **known)
    there = run("known failure", machine="server", kept=("STATIC-1", "NONE-1"), **known)
    (finding,) = run_data(summarize(stream(here, there)), "folder", lambda _: "").findings
    assert [(one.machines, one.requirements) for one in finding.cases] == [
        (("desktop",), ("STATIC-1",)),
        (("server",), ("STATIC-2",)),
    ]
