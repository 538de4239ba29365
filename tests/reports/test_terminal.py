from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from numaproof.protocol.events import Progress, ReportedCall, RunEnded
from numaproof.reports.terminal import MOST_FAILURE_LINES, Terminal, is_live

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStarted, MakeStream
    from numaproof.protocol.events import AnyEvent, Outcome


TERMINAL = {"TERM": "xterm-256color", "COLUMNS": "100"}


class Stream(io.TextIOWrapper):
    """A text stream in memory that may pass for a terminal."""

    def __init__(self, *, terminal: bool = False, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        self.terminal = terminal
        super().__init__(self.bytes, encoding=encoding, newline="\n")

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode(self.encoding)


def shown(events: list[AnyEvent], stream: Stream | None = None, **environment: str) -> str:
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
def test_live_lines_are_for_terminals_that_want_them(
    environment: dict[str, str], name: str
) -> None:
    assert not is_live(Stream(terminal=True), environment), name
    assert is_live(Stream(terminal=True), TERMINAL)
    assert not is_live(Stream(), TERMINAL)
    assert not is_live(Stream(terminal=True, encoding="ascii"), TERMINAL)


def test_a_passed_run_ends_with_its_summary(stream: MakeStream, run: MakeRun) -> None:
    text = shown(stream(run(), run(requirements=("NONE-1",))))
    assert "static policy" in text
    assert "none policy" in text
    assert text.endswith("Passed: 2 case runs (2 pass) in 2.0 s\nReports: out\n")


def test_a_failure_is_shown_when_it_comes_and_again_at_the_end(
    stream: MakeStream, story: MakeRun
) -> None:
    text = shown(stream(story()))
    lines = text.split("\n")
    assert lines[1] == "✗ FAIL  static.exclusive on desktop  CPU 0 is reserved"
    for part in (
        "STATIC-1  CPUs are exclusive. Policies, Static",
        'expected "1-2"',
        'got      "0-1"',
        "└ Node 0 · 1 GiB",
        "0!",
        "reproduce: numaproof check --select static.exclusive --machine desktop",
    ):
        assert part in text


@pytest.mark.parametrize("outcome", ["crash", "time-out", "protocol error"])
def test_the_call_in_which_a_program_broke_is_shown(
    stream: MakeStream, story: MakeRun, outcome: Outcome
) -> None:
    steps = (
        story().steps[0],
        ReportedCall("remove", {"pod": "web"}, None, (), {"ok": {"cpus": "1"}}),
    )
    text = shown(stream(story(outcome=outcome, steps=steps)))
    assert re.search(r'step 2, remove {"pod": "web"}\n +answer +\(none', text)
    assert "step 1" not in text
    assert "(absent)" not in text


def test_a_fault_s_trace_is_called_a_trace(stream: MakeStream, run: MakeRun) -> None:
    text = shown(stream(run("fault", stderr="at line 7")))
    assert "  Trace:\n  at line 7" in text
    assert "Standard error:\n  panic" in shown(stream(run("crash", stderr="panic")))


def test_a_message_that_is_the_title_is_said_once_in_each_place(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    said = "two containers have CPU 1"
    lines = shown(stream(divergence(title=said, message=said), start={"kind": "fuzz"})).split("\n")
    assert [line for line in lines if said in line] == [f"✗ FAIL  {said}"] * 2


def test_commands_and_paths_are_shown_whole_however_long(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    file = "out/findings/" + "a-long-name-" * 12 + "end.yaml"
    command = f"numaproof replay {file} --kubernetes 1.35 --reference"
    events = stream(divergence(file=file, reproduce=command), start={"kind": "fuzz"})
    live = shown(events, Stream(terminal=True), **TERMINAL)
    for text in (shown(events), re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", live)):
        lines = [line.strip() for line in text.split("\n")]
        assert f"case file: {file}" in lines
        assert f"reproduce: {command}" in lines


def test_plain_output_has_no_control_characters(stream: MakeStream, story: MakeRun) -> None:
    text = shown(stream(story("\x1b[2Jgone\r\x07\u202e", stderr="\x1b]0;title\x07")))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "⟨U+001B⟩[2Jgone" in text


def test_plain_output_of_a_large_run_is_short(stream: MakeStream, run: MakeRun) -> None:
    runs = [run(at=number / 100, case=f"case-{number}") for number in range(6000)]
    text = shown(stream(*runs))
    assert 8 <= text.count(" done, 0 failed") <= 20
    assert len(text.split("\n")) < 40


def test_plain_output_says_now_and_then_how_far_it_is_without_a_total(started: MakeStarted) -> None:
    events = [started(kind="fuzz"), *(Progress(float(n), n * 10) for n in range(35))]
    text = shown(events)
    assert re.findall(r"([\d.]+) s  (\d+) done", text) == [
        ("10.0", "100"),
        ("20.0", "200"),
        ("30.0", "300"),
    ]
    assert "Incomplete run:" in text
    assert "340 examples (340 pass)" in text


def test_thousands_of_failures_are_counted_and_not_listed(stream: MakeStream, run: MakeRun) -> None:
    text = shown(stream(*(run("crash", case=f"case-{number}") for number in range(500))))
    assert text.count("† CRASH") == MOST_FAILURE_LINES + 10
    assert "Further failures are only counted" in text
    assert "490 failures with 490 more causes in the reports" in text


def test_one_bug_on_many_machines_is_reported_once(stream: MakeStream, run: MakeRun) -> None:
    runs = [
        run("fail", machine=f"m{number}", message=f"CPUs 0-{number} are lost")
        for number in range(46)
    ]
    text = shown(stream(*runs, run("fail", message="something else"), run("crash", case="last")))
    assert text.count("✗ FAIL  static.exclusive on m0") == 2
    assert "static.exclusive on m1" not in text
    names = ", ".join(f"m{number}" for number in range(1, 13))
    assert f"and on 45 more machines: {names} …" in " ".join(text.split())
    assert "Failed: 48 of 48 case runs, 3 causes (47 fail, 1 crash)" in text


def test_distinct_cases_come_before_a_case_s_other_failures(
    stream: MakeStream, run: MakeRun
) -> None:
    same = [run("fail", message=f"cause {letter}") for letter in "abcdefghijklm"]
    text = shown(stream(*same, run("crash", case="last", message="gone")))
    told = text[text.index("last on desktop  gone") :]
    assert "† CRASH  last on desktop" in told.split("cause b")[0]
    assert "4 failures with 4 more causes in the reports" in text


def test_an_incomplete_run_is_shown_as_one(stream: MakeStream, run: MakeRun) -> None:
    text = shown(stream(run())[:-1])
    assert "Incomplete run: The stream of events has no end" in text
    assert "Incomplete: 1 case run" in text


def test_nothing_tested_is_said(stream: MakeStream) -> None:
    assert "Nothing was tested" in shown(stream())


def test_nothing_is_shown_of_nothing() -> None:
    assert shown([]) == ""


def test_expected_failures_untested_requirements_and_divergences_are_reported(
    stream: MakeStream, run: MakeRun, divergence: MakeDivergence
) -> None:
    text = shown(stream(run("expected failure", defect="init-leak"), untested=("NONE-1",)))
    assert "≈ expected failure init-leak: 1" in text
    assert "1 requirement untested; the registry says why." in text
    fuzz = shown(stream(divergence(stderr="panic"), start={"kind": "fuzz"}, outcomes={"fail": 1}))
    assert "✗ FAIL  Two containers share CPU 1  CPU 1 is exclusive twice" in fuzz
    assert "case file: failure-1.yaml" in fuzz
    assert "panic" in fuzz


def test_a_fuzz_run_begins_with_its_seed_and_its_budget(started: MakeStarted) -> None:
    timed = shown([started(kind="fuzz", seed=42)])
    assert "level kubelet, seed 42, until time is up\n" in timed
    counted = shown([started(kind="fuzz", seed=42, total=1000)])
    assert "level kubelet, seed 42, 1,000 examples\n" in counted


def test_an_interrupted_fuzz_run_says_how_long_it_took(started: MakeStarted) -> None:
    end = RunEnded(0.0, False, {"pass": 50}, message="interrupted")
    text = shown([started(kind="fuzz"), Progress(3.0, 25), Progress(7.5, 50), end])
    assert "50 examples (50 pass) in 7.5 s" in text


def test_nothing_is_claimed_for_a_program_that_did_not_greet(
    stream: MakeStream, run: MakeRun
) -> None:
    text = shown(stream(run("crash"), start={"implementation": None}))
    assert (
        "a program that did not answer hello, Kubernetes unknown, level unknown, 1 case run" in text
    )


def test_nothing_but_a_terminal_folds_lines(
    stream: MakeStream, story: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    title = "The first of many words of a title, " * 5
    assert title.strip() in shown(stream(story(title=title)))


def test_many_differences_of_a_step_are_cut(stream: MakeStream, story: MakeRun) -> None:
    step = story().steps[1]
    wide = type(step)("state", {}, {}, (), {f"key{number}": number for number in range(20)})
    assert "14 more differences in the reports" in shown(stream(story(steps=(wide,))))


def test_a_stream_that_cannot_encode_the_signs_gets_ascii(
    stream: MakeStream, story: MakeRun
) -> None:
    text = shown(stream(story()), Stream(encoding="ascii"))
    assert "x FAIL  static.exclusive" in text
    assert "` Node 0 . 1 GiB" in text


def test_a_terminal_gets_a_bar_colours_and_the_same_summary(
    stream: MakeStream, story: MakeRun, run: MakeRun
) -> None:
    runs = [run(case=f"case-{number}") for number in range(50)]
    text = shown(stream(*runs, story()), Stream(terminal=True), **TERMINAL)
    assert "\x1b[" in text
    assert "51/51" in text
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text)
    assert "✗ FAIL  static.exclusive on desktop" in plain
    assert "Failed: 1 of 51 case runs, 1 cause (50 pass, 1 fail)" in plain
    assert "└ Node 0 · 1 GiB" in plain


def test_a_terminal_is_left_clean_when_the_run_breaks_off(stream: MakeStream, run: MakeRun) -> None:
    target = Stream(terminal=True)

    def broken() -> None:
        with Terminal(target, TERMINAL) as terminal:
            for event in stream(run())[:-1]:
                terminal.show(event)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    text = target.text()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again
    assert "Incomplete run" in text


def test_markup_in_names_is_not_read_as_markup(stream: MakeStream, run: MakeRun) -> None:
    text = shown(
        stream(run("fail", message="[bold]x[/bold] :smile:")), Stream(terminal=True), **TERMINAL
    )
    assert "[bold]x[/bold] :smile:" in text


def test_standard_output_and_its_environment_are_the_default(
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
