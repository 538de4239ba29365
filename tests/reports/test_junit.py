from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from numaproof.reports.junit import junit
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStream
    from numaproof.protocol.events import AnyEvent


def parse_report(events: list[AnyEvent]) -> ET.Element:
    return ET.XML(junit(summarize(events)))


def test_the_answer_is_shown_if_nothing_was_expected(stream: MakeStream, story: MakeRun) -> None:
    step = story().steps[1]
    bare = type(step)(step.operation, step.args, step.answer, step.problems)
    (failure,) = parse_report(stream(story(steps=(bare,)))).iter("failure")
    assert 'answer {"ok": {"cpus": "0-1"' in (failure.text or "")


def test_the_end_of_standard_error_is_kept(stream: MakeStream, run: MakeRun) -> None:
    root = parse_report(stream(run("crash", stderr="x" * 9000 + "panic: \x1b[31mend")))
    text = root.findtext(".//system-err") or ""
    assert text.endswith("panic: ⟨U+001B⟩[31mend")
    assert len(text) < 8200


def test_the_failure_is_a_property_not_part_of_the_name(stream: MakeStream, run: MakeRun) -> None:
    good = parse_report(stream(run()))
    violated = run("fail", violated_requirements=("NONE-1", "STATIC-2"), signature="invariant none")
    bad = parse_report(stream(violated))
    assert _identities(good) == _identities(bad)
    properties = [
        (one.get("name"), one.get("value")) for one in bad.iterfind(".//testcase/properties/*")
    ]
    assert properties == [
        ("requirements", "NONE-1, STATIC-2, STATIC-1"),
        ("requirement areas", "none policy, static policy"),
        ("signature", "invariant none"),
    ]


def test_an_unmatched_entry_is_a_separate_test(stream: MakeStream, run: MakeRun) -> None:
    missing = run("missing known failure", signature="fault at admit")
    bad = parse_report(stream(run(), missing))
    assert _identities(bad) == [
        *_identities(parse_report(stream(run()))),
        ("numaproof.known failures", "static.exclusive [desktop]: fault at admit"),
    ]


def test_test_names_are_unique_within_a_run(stream: MakeStream, run: MakeRun) -> None:
    names = [name for _, name in _identities(parse_report(stream(run(), run(), run(case="x"))))]
    assert names == ["static.exclusive [desktop]", "static.exclusive [desktop] (2)", "x [desktop]"]


def test_a_finding_is_named_by_its_signature(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    fuzz = {"kind": "fuzz", "total": 10}
    found = divergence(signature="invariant exclusive-to-one")
    root = parse_report(stream(found, start=fuzz, outcomes={"pass": 9, "fail": 1}))
    assert _identities(root) == [
        ("numaproof.fuzz", "examples"),
        ("numaproof.fuzz", "invariant exclusive-to-one"),
    ]


def _identities(root: ET.Element) -> list[tuple[str, str]]:
    return [(one.get("classname", ""), one.get("name", "")) for one in root.iter("testcase")]


def test_characters_forbidden_in_xml_are_removed(stream: MakeStream, story: MakeRun) -> None:
    written = junit(summarize(stream(story("a\x00b\x0bc\ud800\ufffe<]]>&"))))
    (failure,) = ET.XML(written).iter("failure")
    assert "a⟨U+0000⟩b⟨U+000B⟩c⟨U+D800⟩⟨U+FFFE⟩<]]>&" in (failure.text or "")


def test_events_without_a_start_can_be_rendered() -> None:
    assert parse_report([]).get("errors") == "1"
