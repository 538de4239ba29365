"""The file of known failures that a board has for each implementation."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import msgspec

from numaproof.conformance.known_failures import entries
from numaproof.conformance.known_failures.entries import KnownFailures
from numaproof.reports.board.digest import run_data
from numaproof.reports.board.site import Board, write_site
from numaproof.reports.board.standing import implementations
from numaproof.reports.board.views import known_failures
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import MakeDivergence, MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.events import AnyEvent


def file_of(events: list[AnyEvent]) -> str:
    (one,) = implementations([run_data(summarize(events), "folder", lambda _: "")])
    return known_failures(one.newest)


def test_a_check_by_the_file_of_a_board_knows_every_failure_by_its_reason(
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


def test_a_site_has_the_file_and_the_command_that_reads_it(
    stream: MakeStream, run: MakeRun, tmp_path: Path
) -> None:
    events = stream(run("fail", signature="admit: half"), start={"kubernetes": "1.37; rm -r ."})
    made = implementations([run_data(summarize(events), "folder", lambda _: "")])
    write_site(Board(made, (), 1), tmp_path)
    page = html.unescape((tmp_path / "implementations" / "kubelet.html").read_text())
    assert 'href="../known-failures/kubelet.yaml"' in page
    asked = "--kubernetes '1.37; rm -r .' --level kubelet --known-failures kubelet.yaml"
    assert f'numaproof check --implementation "CMD" {asked}</code>' in page
    (entry,) = entries.read(tmp_path / "known-failures" / "kubelet.yaml")
    assert entry.known_failure.signature == "admit: half"
    assert "numaproof fuzz" not in page
    assert "<code>check</code> fails only if there are new failures:" in page
    # What is known no more leaves no file behind.
    good = implementations([run_data(summarize(stream(run())), "folder", lambda _: "")])
    write_site(Board(good, (), 1), tmp_path)
    assert list((tmp_path / "known-failures").iterdir()) == []


def test_what_fuzzing_found_is_known_of_fuzzing(
    run_start: MakeStarted,
    stream: MakeStream,
    run: MakeRun,
    divergence: MakeDivergence,
    tmp_path: Path,
) -> None:
    def page(*streams: list[AnyEvent]) -> str:
        runs = [run_data(summarize(events), "folder", lambda _: "") for events in streams]
        write_site(Board(implementations(runs), (), 1), tmp_path)
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
