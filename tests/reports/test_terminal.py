from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol.events import Progress, ReportedCall, ReportedRequirement, RunEnded
from numaproof.reports.console import is_live
from numaproof.reports.story import Failure, split_requirements
from numaproof.reports.terminal import MAX_FAILURE_LINES, Terminal

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.events import AnyEvent


TERMINAL = {"TERM": "xterm-256color", "COLUMNS": "100"}


class Stream(io.TextIOWrapper):
    """A text stream in memory that can act as a terminal."""

    def __init__(self, *, terminal: bool = False, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        self.terminal = terminal
        super().__init__(self.bytes, encoding=encoding, newline="\n")

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode(self.encoding)


def terminal_text(events: list[AnyEvent], stream: Stream | None = None, **environment: str) -> str:
    stream = stream or Stream()
    with Terminal(stream, environment) as terminal:
        terminal.reports = "out"
        for event in events:
            terminal.show(event)
    return stream.text()


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({**TERMINAL, "CI": "true"}, "CI"),
        ({**TERMINAL, "NO_COLOR": "1"}, "NO_COLOR"),
        ({"TERM": "dumb"}, "a dumb terminal"),
        ({}, "no TERM"),
    ],
)
def test_live_progress_needs_a_capable_terminal(environment: dict[str, str], name: str) -> None:
    assert not is_live(Stream(terminal=True), environment), name
    assert is_live(Stream(terminal=True), TERMINAL)
    assert not is_live(Stream(), TERMINAL)
    assert not is_live(Stream(terminal=True, encoding="ascii"), TERMINAL)


def test_a_message_equal_to_the_title_is_not_repeated(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    said = "two containers have CPU 1"
    lines = terminal_text(
        stream(divergence(title=said, message=said), start={"kind": "fuzz"})
    ).split("\n")
    assert [line for line in lines if said in line] == [f"✗ FAIL  {said}"] * 2


def test_commands_and_paths_are_never_truncated(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    file = "out/findings/" + "a-long-name-" * 12 + "end.yaml"
    command = f"numaproof replay {file} --kubernetes 1.35 --reference"
    events = stream(divergence(file=file, reproduce=command), start={"kind": "fuzz"})
    live = terminal_text(events, Stream(terminal=True), **TERMINAL)
    for text in (terminal_text(events), re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", live)):
        lines = [line.strip() for line in text.split("\n")]
        assert f"case file: {file}" in lines
        assert f"reproduce: {command}" in lines


def test_plain_output_of_a_large_run_is_short(stream: MakeStream, run: MakeRun) -> None:
    runs = [run(at=number / 100, case=f"case-{number}") for number in range(6000)]
    text = terminal_text(stream(*runs))
    assert 8 <= text.count(" done, 0 failed") <= 20
    assert len(text.split("\n")) < 40


def test_plain_progress_works_without_a_total(
    run_start: MakeStarted,
) -> None:
    events = [run_start(kind="fuzz"), *(Progress(float(n), n * 10) for n in range(35))]
    text = terminal_text(events)
    assert re.findall(r"([\d.]+) s  (\d+) done", text) == [
        ("10.0", "100"),
        ("20.0", "200"),
        ("30.0", "300"),
    ]
    assert "Incomplete run:" in text
    assert "340 examples (340 pass)" in text


def test_thousands_of_failures_are_counted_and_not_listed(stream: MakeStream, run: MakeRun) -> None:
    text = terminal_text(stream(*(run("crash", case=f"case-{number}") for number in range(500))))
    assert text.count("† CRASH") == MAX_FAILURE_LINES + 10
    assert "Further failures are only counted" in text
    assert "490 failures with 490 more causes in the reports" in text


def test_an_empty_run_shows_nothing() -> None:
    assert terminal_text([]) == ""


def test_a_fuzz_run_starts_with_its_seed_and_budget(run_start: MakeStarted) -> None:
    timed = terminal_text([run_start(kind="fuzz", seed=42)])
    assert "level kubelet, seed 42, until time is up\n" in timed
    counted = terminal_text([run_start(kind="fuzz", seed=42, total=1000)])
    assert "level kubelet, seed 42, 1,000 examples\n" in counted


def test_an_interrupted_fuzz_run_shows_its_duration(run_start: MakeStarted) -> None:
    end = RunEnded(0.0, False, {"pass": 50}, message="interrupted")
    text = terminal_text([run_start(kind="fuzz"), Progress(3.0, 25), Progress(7.5, 50), end])
    assert "50 examples (50 pass) in 7.5 s" in text


def test_lines_are_only_wrapped_on_a_terminal(
    stream: MakeStream, story: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    title = "The first of many words of a title, " * 5
    assert title.strip() in terminal_text(stream(story(title=title)))


def test_many_differences_in_a_step_are_truncated(stream: MakeStream, story: MakeRun) -> None:
    step = story().steps[1]
    wide = type(step)("state", {}, {}, (), {f"key{number}": number for number in range(20)})
    assert "14 more differences in the reports" in terminal_text(stream(story(steps=(wide,))))


def test_ascii_replaces_signs_that_cannot_be_encoded(stream: MakeStream, story: MakeRun) -> None:
    text = terminal_text(stream(story()), Stream(encoding="ascii"))
    assert "x FAIL  static.exclusive" in text
    assert "` Node 0 . 1 GiB" in text


def test_a_terminal_gets_a_bar_colours_and_the_same_summary(
    stream: MakeStream, story: MakeRun, run: MakeRun
) -> None:
    runs = [run(case=f"case-{number}") for number in range(50)]
    text = terminal_text(stream(*runs, story()), Stream(terminal=True), **TERMINAL)
    assert "\x1b[" in text
    assert "51/51" in text
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text)
    assert "✗ FAIL  static.exclusive on desktop" in plain
    assert "Failed: 1 of 51 case runs, 1 cause (50 pass, 1 fail)" in plain
    assert "└ Node 0 · 1 GiB" in plain


def test_an_aborted_run_leaves_the_terminal_clean(stream: MakeStream, run: MakeRun) -> None:
    target = Stream(terminal=True)

    def show_and_interrupt() -> None:
        with Terminal(target, TERMINAL) as terminal:
            for event in stream(run())[:-1]:
                terminal.show(event)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show_and_interrupt()
    text = target.text()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again
    assert "Incomplete run" in text


def test_markup_in_names_is_not_interpreted(stream: MakeStream, run: MakeRun) -> None:
    text = terminal_text(
        stream(run("fail", message="[bold]x[/bold] :smile:")), Stream(terminal=True), **TERMINAL
    )
    assert "[bold]x[/bold] :smile:" in text


def test_the_default_is_standard_output(
    stream: MakeStream,
    run: MakeRun,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", "1")
    with Terminal() as terminal:
        for event in stream(run()):
            terminal.show(event)
    assert capsys.readouterr().out.endswith("in 2.0 s\n")


def test_the_violated_requirement_alone_is_stated() -> None:
    rows = tuple(ReportedRequirement(f"R-{n}", "area", f"rule {n}", "", "") for n in range(5))
    empty: dict[str, Any] = dict.fromkeys(("steps", "pictures"), ())
    text = dict.fromkeys(("name", "title", "machine", "area", "message", "stderr"), "")
    failed = Failure(outcome="fail", requirements=rows, machine_info=None, **empty, **text)
    main, others = split_requirements(replace(failed, violated_ids=("R-3",)))
    assert [one.id for one in main] == ["R-3"]
    assert others == "The case also tests R-0, R-1, R-2, R-4."
    main, others = split_requirements(failed)
    assert [one.id for one in main] == ["R-0", "R-1", "R-2"]
    assert others == "The case also tests R-3, R-4."


def test_a_transcript_reports_a_failure_once(stream: MakeStream, run: MakeRun) -> None:
    problem = "CPU 0 is reserved"
    calls = (ReportedCall("start", {}, {}), ReportedCall("admit", {}, {}, problems=(problem,)))
    failed = run("fail", message=problem, steps=calls, requirements=("STATIC-1",))
    shown = Stream()
    with Terminal(shown, {}, calls=True) as terminal:
        for event in stream(failed, run("pass")):
            terminal.show(event)
    text = shown.text()
    assert text.count(problem) == 1
    assert "STATIC-1" in text
    assert "Failed: 1 of 2 case runs, 1 cause" in text
