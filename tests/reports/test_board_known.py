"""The board's file of known failures for each implementation."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.known_failures import entries
from numaproof.conformance.known_failures.entries import KnownFailures
from numaproof.reports.board.context import RunContext
from numaproof.reports.board.digest import run_data
from numaproof.reports.board.site import Board, write_site
from numaproof.reports.board.standing import implementations
from numaproof.reports.board.views import known_failures
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import MakeDivergence, MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.events import AnyEvent

CONTEXT = RunContext((), lambda _: "")


def file_of(events: list[AnyEvent]) -> str:
    (one,) = implementations([run_data(summarize(events), "folder", lambda _: "")])
    return known_failures(one.newest)


def test_a_boards_known_failures_match_every_failure(
    stream: MakeStream, run: MakeRun, tmp_path: Path
) -> None:
    half = {"signature": "admit: cpus differs", "message": "half a core"}
    runs = [
        run("fail", **half),
        run("fail", machine="server", **half),
        run("known failure", case="other", reason="finding: half", signature="admit: half"),
        run(
            "known failure",
            case="other",
            machine="server",
            reason="own rules: ours",
            signature="admit: half",
        ),
        run("crash", case="third", signature="crash: index out of range", message="it ended"),
        run("expected failure", case="fourth", defect="leaks-cpus", signature="state: leak"),
        run(case="fifth"),
    ]
    path = tmp_path / "known-failures.yaml"
    path.write_text(file_of(stream(*runs)))
    known = KnownFailures(entries.read(path))
    bare = [
        msgspec.structs.replace(one, outcome="fail", reason="")
        for one in runs
        if one.outcome not in {"pass", "expected failure"}
    ]
    judged = [known.judge(one) for one in bare]
    assert [(one.outcome, one.reason) for one in judged] == [
        ("known failure", "not explained yet"),
        ("known failure", "not explained yet"),
        ("known failure", "finding: half"),
        ("known failure", "own rules: ours"),
        ("known failure", "not explained yet"),
    ]
    assert list(known.missing(0.0)) == []
    assert "leaks-cpus" not in path.read_text()


def test_a_site_has_known_failures_and_a_command_to_use_them(
    stream: MakeStream, run: MakeRun, tmp_path: Path
) -> None:
    events = stream(run("fail", signature="admit: half"), start={"kubernetes": "1.37; rm -r ."})
    made = implementations([run_data(summarize(events), "folder", lambda _: "")])
    write_site(Board(made, (), CONTEXT, ("",)), tmp_path)
    page = html.unescape((tmp_path / "implementations" / "kubelet.html").read_text())
    assert 'href="../known-failures/kubelet.yaml"' in page
    asked = "--kubernetes '1.37; rm -r .' --level kubelet --known-failures kubelet.yaml"
    assert f'numaproof check --implementation "CMD" {asked}</code>' in page
    (entry,) = entries.read(tmp_path / "known-failures" / "kubelet.yaml")
    assert entry.known_failure.signature == "admit: half"
    assert "numaproof fuzz" not in page
    assert "<code>check</code> fails only if there are new failures:" in page
    # Without known failures, the file is removed.
    good = implementations([run_data(summarize(stream(run())), "folder", lambda _: "")])
    write_site(Board(good, (), CONTEXT, ("",)), tmp_path)
    assert list((tmp_path / "known-failures").iterdir()) == []


def test_findings_of_fuzzing_are_known_for_fuzzing(
    run_start: MakeStarted,
    stream: MakeStream,
    run: MakeRun,
    divergence: MakeDivergence,
    tmp_path: Path,
) -> None:
    def page(*streams: list[AnyEvent]) -> str:
        runs = [run_data(summarize(events), "folder", lambda _: "") for events in streams]
        write_site(Board(implementations(runs), (), CONTEXT, ("",)), tmp_path)
        return html.unescape((tmp_path / "implementations" / "kubelet.html").read_text())

    fuzzed = [run_start(kind="fuzz"), divergence(signature="admit: cpus differs")]
    given = '--implementation "CMD" --kubernetes 1.35 --level kubelet --known-failures kubelet.yaml'
    alone = page(fuzzed)
    assert f"<code>numaproof fuzz {given}</code>" in alone
    assert "numaproof check" not in alone
    assert "<code>fuzz</code> fails only if there are new failures:" in alone
    both = page(fuzzed, stream(run("fail", signature="admit: half")))
    assert f"<code>numaproof check {given}\nnumaproof fuzz {given}</code>" in both
    assert "<code>check</code> and <code>fuzz</code> fail only if there are new failures:" in both
