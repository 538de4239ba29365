"""Every report of some runs is a page: `pages/RUN/FORMAT`.

`NUMAPROOF_WRITE_PAGES=1` updates the pages. Review the diff.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import msgspec
import pytest

from numaproof.protocol.events import (
    AnsweredByChance,
    CaseFinished,
    ClaimsReview,
    Coverage,
    Progress,
    ReportedCall,
    ReportedFinding,
    ReportedRequirement,
    RunEnded,
)
from numaproof.protocol.messages import Hello, Options, Policies
from numaproof.reports.badge import badge
from numaproof.reports.board.digest import run_data
from numaproof.reports.board.standing import implementations
from numaproof.reports.board.views import known_failures
from numaproof.reports.html import html
from numaproof.reports.junit import junit
from numaproof.reports.markdown import markdown
from numaproof.reports.story import transcript
from numaproof.reports.summary import OUTCOMES, Summary, summarize
from numaproof.reports.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conftest import Compare, MakeDivergence, MakeMachine, MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.events import AnyEvent

EVIL = (
    "</details><script>alert(1)</script> | a*b_c`d ``` @octocat #12 [x](javascript:y)\u202e\x1b[2J"
)
CALLS = [ReportedCall("state", {}, {}) for _ in range(3)]


def different(what: str) -> ReportedFinding:
    """A finding with two sides."""
    return ReportedFinding("reference", "containers.app.cpus", what, "1,9", "1,8")


@dataclass(frozen=True)
class Runs:
    """The runs on the pages, each created by a method of that name."""

    stream: MakeStream
    run_start: MakeStarted
    run: MakeRun
    story: MakeRun
    divergence: MakeDivergence
    machine: MakeMachine

    def all_pass(self) -> list[AnyEvent]:
        """A passed run with unsupported and untested parts and leftovers."""
        runs = (self.run(), self.run(machine="server"), self.run(requirements=("NONE-1",)))
        skipped = self.run("unsupported", case="other", requirements=())
        return self.stream(
            *runs,
            skipped,
            untested_requirements=("STATIC-2",),
            leftover_processes=("12 sleep 999",),
        )

    def failures(self) -> list[AnyEvent]:
        """A wrong answer after actions of the harness, and programs that crashed."""
        start, admit = self.story().steps
        deeds = ("deleted cpu_manager_state", "took CPUs 7 offline")
        admit = msgspec.structs.replace(admit, before=deeds)
        unanswered = ReportedCall("remove", {"pod": "web"}, None, (), {"ok": {"cpus": "1"}})
        return self.stream(
            self.story(steps=(start, admit)),
            self.story(outcome="crash", case="crash", steps=(start, unanswered), stderr="panic"),
            self.run("fault", case="fault", message="boom", stderr="at line 7"),
        )

    def outcomes(self) -> list[AnyEvent]:
        """Every outcome."""
        return self.stream(*(self.run(one, case=one, message="because") for one in OUTCOMES))

    def known_failures_run(self) -> list[AnyEvent]:
        """Known failures, and an entry that no longer matches."""
        found = different("containers.app.cpus")
        known = {
            "reason": "it is being fixed",
            "signature": "admit: cpus differs",
            "finding": found,
        }
        return self.stream(
            *(self.run("known failure", case=one, message=str(found), **known) for one in "ab"),
            self.run("expected failure", case="c", defect="init-leak"),
            self.run("missing known failure", case="d", message="known.yaml:1: remove the entry"),
        )

    def reasons(self) -> list[AnyEvent]:
        """Known failures with several reasons, equal on some machines."""
        runs = [
            (name, machine, {"reason": reason, "signature": f"{name}: differs", "message": reason})
            for name, machine, reason in (
                ("same", "desktop", "finding: takes half a core"),
                ("same", "server", "finding: takes half a core"),
                ("other", "desktop", "own rules: whole cores"),
                ("other", "server", "finding: two owners"),
                ("third", "desktop", "own rules: whole cores"),
                ("ends", "desktop", "crash: index out of range"),
            )
        ]
        known = [self.run("known failure", case=one, machine=at, **why) for one, at, why in runs]
        boom = {"signature": "admit: cpus differs", "message": "boom [known.yaml:2: move the date]"}
        new = [self.run("fail", case="new", machine=at, **boom) for at in ("desktop", "server")]
        return self.stream(*known, *new, self.run("crash", case="last", signature="crash at admit"))

    def discovery(self) -> list[AnyEvent]:
        """Machines discovered wrongly, with the requirements on the wrong fields."""
        every = ("STATIC-1", "STATIC-2", "NONE-1")
        area = ReportedRequirement("D-1", "Discovery", "Cores are read.", "cadvisor", "sysinfo")
        known = {"signature": "discover: caches differ", "requirements": ("D-1", *every)}
        own, sizes = ({"reason": one} for one in ("own rules: ours", "finding: sizes"))
        kept = ("STATIC-1", "NONE-1")
        return self.stream(
            self.run("known failure", unaffected=("STATIC-2", "NONE-1"), **own, **known),
            self.run("known failure", machine="server", unaffected=kept, **own, **known),
            self.run(
                "known failure",
                case="b",
                unaffected=kept[:1],
                undiscovered=kept[1:],
                **sizes,
                **known,
            ),
            self.run(requirements=every, undiscovered=("NONE-1",), case="b", machine="server"),
            start={"requirements": (*self.run_start().requirements, area)},
        )

    def alike(self) -> list[AnyEvent]:
        """One bug in many case runs, and others."""
        runs = (self.story(f"CPUs 0-{n} are lost", machine=f"m{n}") for n in range(16))
        machines = {f"m{n}": self.machine(1, 1, 2, 1) for n in range(16)}
        others = (self.run("fail", case="b", message="else"), self.run("crash", case="last"))
        return self.stream(*runs, *others, start={"machines": machines})

    def fuzzing(self) -> list[AnyEvent]:
        """A finding, a known failure, and coverage."""
        reached = Coverage(
            at=1.0,
            examples=1234,
            counts={"actions": {"admit": 5678, "remove": 90}, "policies": {"CPU <static>": 7}},
            highest={"providers": 12.0, "share": 0.5},
        )
        known = self.divergence(
            outcome="known failure",
            signature="invariant no-cpu-lost",
            title="CPU 3 is lost",
            message="finding: it loses CPUs: CPU 3 is lost",
            reason="finding: it loses CPUs",
            file="findings/fuzz-1.yaml",
        )
        changed = ReportedCall("admit", {}, {"cpus": "2-3"}, (), {"cpus": "0-1"})
        again = self.divergence(title="Again", outcome="nondeterministic", steps=(changed,))
        found = (self.divergence(stderr="panic"), again, known, reached)
        counts = {"pass": 4, "fail": 1, "nondeterministic": 1, "known failure": 6}
        return self.stream(*found, start={"kind": "fuzz", "seed": 42}, outcomes=counts)

    def comparison(self) -> list[AnyEvent]:
        """A difference between two programs, and a random answer."""
        title = "seed 3: admit: containers.app.cpus differs"
        seen = different("containers.app.cpus differs")
        step = ReportedCall(
            "admit",
            {},
            {"containers": {"app": {"cpus": "1,8", "exclusive": "1,8"}}},
            (str(seen),),
            {"containers": {"app": {"cpus": "1,9", "exclusive": "1,9"}}},
            findings=(seen,),
        )
        finding, cpus = different(title), different("cpus")
        chance = AnsweredByChance(1.0, "seed 1", 3, "admit", str(cpus), finding=cpus)
        found = self.divergence(title=title, message=str(finding), finding=finding, steps=(step,))
        return self.stream(found, chance, start={"kind": "diff"}, outcomes={"pass": 1, "fail": 1})

    def incomplete(self) -> list[AnyEvent]:
        """A run that was killed after a failure."""
        return self.stream(self.run("fail", message="wrong"))[:-1]

    def nothing(self) -> list[AnyEvent]:
        """A run without cases."""
        return self.stream()

    def silent(self) -> list[AnyEvent]:
        """A program that did not answer `hello`."""
        return self.stream(self.run("crash", case="hello"), start={"implementation": None})

    def claims(self) -> list[AnyEvent]:
        """The review of the program's claims."""
        review = ClaimsReview(
            assumes_features=True,
            missing_claims={"operation devices": 213, "feature restart": 1},
            declined_runs=12,
            possible=("feature restart", "level placement (no answer differed)"),
            untrue=("claims feature sidecars, but failed all 2 case runs that need it",),
        )
        return self.stream(self.run(), claims=review)

    def hostile(self) -> list[AnyEvent]:
        """External text with markup or terminal sequences."""
        odd = {"title": EVIL, "case": EVIL, "machine": EVIL, "stderr": EVIL, "reproduce": EVIL}
        hello = Hello(1, EVIL, EVIL, EVIL, ("1.35",), "kubelet", (), Policies(), Options())
        hello = msgspec.structs.replace(hello, homepage="javascript:alert(3)")
        start = {"implementation": hello, "command": EVIL}
        return self.stream(self.story(EVIL, **odd), start=start, untested_requirements=(EVIL,))


def terminal(events: Sequence[AnyEvent]) -> str:
    """Returns the output to a pipe."""
    stream = io.StringIO()
    with Terminal(stream, {}) as one:
        one.reports = "out"
        for event in events:
            one.show(event)
    return stream.getvalue()


class _Words(HTMLParser):
    """Extracts the words of a page without style, script and drawings, one element per line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._inside = ""
        self._drawing = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self._drawing |= tag == "svg"
        shown = [f"{name}={value}" for name, value in attrs if name in {"href", "title", "open"}]
        self.lines += [f"<{tag} {' '.join(shown)}>"] if shown else []

    def handle_endtag(self, tag: str) -> None:
        self._drawing &= tag != "svg"

    def handle_data(self, data: str) -> None:
        if self._inside not in {"script", "style"} and not self._drawing and data.strip():
            self.lines.append(" ".join(data.split()))


def words(summary: Summary) -> str:
    """Returns the page's words, links and titles."""
    parser = _Words()
    parser.feed(html(summary))
    return "\n".join(parser.lines) + "\n"


def board(events: Sequence[AnyEvent]) -> str:
    """Returns a board's data about a run, and its file of known failures."""
    data = run_data(summarize(events), "folder", lambda name: f"the case of {name}\n")
    (one,) = implementations([data])
    shown = msgspec.to_builtins((data, one.newest.states, one.newest.requirement_score))
    return f"{json.dumps(shown, indent=1, ensure_ascii=False)}\n{known_failures(one.newest)}"


FORMATS: dict[str, Callable[[Sequence[AnyEvent]], str]] = {
    "terminal.txt": terminal,
    "report.md": lambda events: markdown(summarize(events)),
    "junit.xml": lambda events: junit(summarize(events)).decode(),
    "badge.svg": lambda events: badge(summarize(events)) + "\n",
    "board.txt": board,
    "page.txt": lambda events: words(summarize(events)),
    "summary.json": lambda events: json.dumps(summarize(events).plain(), indent=1) + "\n",
}
NAMES = [name for name in vars(Runs) if not name.startswith("_") and callable(getattr(Runs, name))]


@pytest.fixture
def runs(
    stream: MakeStream,
    run_start: MakeStarted,
    run: MakeRun,
    story: MakeRun,
    divergence: MakeDivergence,
    make_machine: MakeMachine,
) -> Runs:
    return Runs(stream, run_start, run, story, divergence, make_machine)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_report_of_a_run_matches_its_page(
    runs: Runs, compare: Compare, name: str, kind: str
) -> None:
    compare(f"{name}/{kind}", FORMATS[kind](getattr(runs, name)()))


def test_a_replayed_run_matches_its_page(runs: Runs, compare: Compare) -> None:
    failed = [one for one in runs.failures() if isinstance(one, CaseFinished)]
    shown = "\n".join(line for one in failed for line in transcript(one))
    compare("failed/transcript.txt", shown + "\n")


def test_verdicts_match_their_page(runs: Runs, compare: Compare) -> None:
    run, stream, fuzz = runs.run, runs.stream, {"kind": "fuzz", "total": 100}
    lost = stream(run(), run(case="lost"))
    del lost[1]
    verdicts = {
        "all unsupported": stream(run("unsupported")),
        "no events": [],
        "no end": stream(run())[:-1],
        "cut short": stream(run(), complete=False),
        "cut short for a reason": stream(run(), complete=False, message="Interrupted."),
        "lines lost": lost,
        "fewer than announced": stream(run(), start={"total": 5}),
        "fuzzing": stream(start=fuzz, outcomes={"pass": 100}),
        "fuzzing that found": stream(
            runs.divergence(), start=fuzz, outcomes={"pass": 99, "fail": 1}
        ),
        "fuzzing that counted wrongly": stream(
            runs.divergence(), start=fuzz, outcomes={"pass": 100}
        ),
        "fuzzing cut short": [*stream(runs.divergence(), start=fuzz)[:-1], Progress(3.0, 40)],
        "fuzzing of nothing": stream(start={"kind": "fuzz"}),
        "an outcome of another version": [
            runs.run_start(kind="fuzz"),
            RunEnded(1.0, True, {"pass": 3, "new kind": 1}),
        ],
    }
    for outcome in OUTCOMES:
        verdicts[f"a pass and {outcome}"] = stream(run(), run(outcome, case="other"))
    lines = []
    for name, events in verdicts.items():
        found = summarize(events)
        lines += [f"{name}: {found.verdict} ({found.exit_code}), {dict(found.tally.counts)}"]
        lines += [f"  {gap}" for gap in found.gaps]
    compare("verdicts.txt", "\n".join(lines) + "\n")
