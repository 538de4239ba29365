from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from numaproof.reports.junit import junit
from numaproof.reports.summary import summarize

if TYPE_CHECKING:
    from conftest import MakeDivergence, MakeRun, MakeStream
    from numaproof.protocol.events import AnyEvent, Outcome


def parsed(events: list[AnyEvent]) -> ET.Element:
    return ET.XML(junit(summarize(events)))


def test_each_area_is_a_suite_and_each_case_on_a_machine_a_test_case(
    stream: MakeStream, run: MakeRun
) -> None:
    root = parsed(stream(run(), run(machine="server"), run(requirements=("NONE-1",))))
    assert [suite.get("name") for suite in root] == [
        "numaproof.static policy",
        "numaproof.none policy",
    ]
    names = [(one.get("classname"), one.get("name")) for one in root.iter("testcase")]
    assert names[:2] == [
        ("numaproof.static policy", "static.exclusive [desktop]"),
        ("numaproof.static policy", "static.exclusive [server]"),
    ]
    assert root[0].get("time") == "0.500"


@pytest.mark.parametrize(
    ("outcome", "tag"),
    [
        ("fail", "failure"),
        ("missing expected failure", "failure"),
        ("fault", "error"),
        ("crash", "error"),
        ("time-out", "error"),
        ("protocol error", "error"),
        ("not run", "error"),
        ("unsupported", "skipped"),
        ("expected failure", "skipped"),
    ],
)
def test_each_outcome_has_its_element(
    stream: MakeStream, run: MakeRun, outcome: Outcome, tag: str
) -> None:
    root = parsed(stream(run(), run(outcome, case="other", message="because")))
    (found,) = root.findall(f"testsuite/testcase/{tag}")
    assert "because" in found.get("message", "")
    assert outcome in found.get("message", "")
    kind = {"failure": "failures", "error": "errors", "skipped": "skipped"}[tag]
    assert (root.get("tests"), root.get(kind)) == ("2", "1")
    assert root[0].get(kind) == "1"


def test_a_passed_case_has_no_children(stream: MakeStream, run: MakeRun) -> None:
    (case,) = parsed(stream(run())).iter("testcase")
    assert list(case) == []


def test_an_expected_failure_names_its_defect(stream: MakeStream, run: MakeRun) -> None:
    root = parsed(stream(run("expected failure", defect="init-leak"), run()))
    (skipped,) = root.iter("skipped")
    assert skipped.get("message") == "expected failure: init-leak"


def test_a_failure_has_requirement_difference_and_how_to_reproduce_it(
    stream: MakeStream, story: MakeRun
) -> None:
    (failure,) = parsed(stream(story())).iter("failure")
    text = failure.text or ""
    assert text.startswith(
        "CPU 0 is reserved\nWhole CPUs are exclusive\nRequirement STATIC-1: CPUs"
    )
    assert 'ok.cpus\n    expected "1-2"\n    got      "0-1"' in text
    assert "Reproduce: numaproof check --select static.exclusive" in text


def test_the_answer_is_shown_where_nothing_was_expected(stream: MakeStream, story: MakeRun) -> None:
    step = story().steps[1]
    bare = type(step)(step.operation, step.args, step.answer, step.problems)
    (failure,) = parsed(stream(story(steps=(bare,)))).iter("failure")
    assert 'answer {"ok": {"cpus": "0-1"' in (failure.text or "")


def test_the_end_of_standard_error_is_kept(stream: MakeStream, run: MakeRun) -> None:
    root = parsed(stream(run("crash", stderr="x" * 9000 + "panic: \x1b[31mend")))
    text = root.findtext(".//system-err") or ""
    assert text.endswith("panic: ⟨U+001B⟩[31mend")
    assert len(text) < 8200


def test_what_failed_is_a_property_and_changes_neither_name_nor_class(
    stream: MakeStream, run: MakeRun
) -> None:
    good = parsed(stream(run()))
    violated = run("fail", violated=("NONE-1", "STATIC-2"), signature="invariant none")
    bad = parsed(stream(violated))
    assert _identities(good) == _identities(bad)
    properties = [
        (one.get("name"), one.get("value")) for one in bad.iterfind(".//testcase/properties/*")
    ]
    assert properties == [
        ("requirements", "NONE-1, STATIC-2, STATIC-1"),
        ("requirement areas", "none policy, static policy"),
        ("signature", "invariant none"),
    ]


def test_an_entry_that_matches_nothing_is_a_test_of_its_own(
    stream: MakeStream, run: MakeRun
) -> None:
    missing = run("missing known failure", signature="fault at admit")
    bad = parsed(stream(run(), missing))
    assert _identities(bad) == [
        *_identities(parsed(stream(run()))),
        ("numaproof.known failures", "static.exclusive [desktop]: fault at admit"),
    ]


def test_no_two_tests_of_a_run_have_one_name(stream: MakeStream, run: MakeRun) -> None:
    names = [name for _, name in _identities(parsed(stream(run(), run(), run(case="x"))))]
    assert names == ["static.exclusive [desktop]", "static.exclusive [desktop] (2)", "x [desktop]"]


def test_a_finding_is_named_by_its_signature(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    fuzz = {"kind": "fuzz", "total": 10}
    found = divergence(signature="invariant exclusive-to-one")
    root = parsed(stream(found, start=fuzz, outcomes={"pass": 9, "fail": 1}))
    assert _identities(root) == [
        ("numaproof.fuzz", "examples"),
        ("numaproof.fuzz", "invariant exclusive-to-one"),
    ]


def _identities(root: ET.Element) -> list[tuple[str, str]]:
    return [(one.get("classname", ""), one.get("name", "")) for one in root.iter("testcase")]


def test_characters_that_xml_forbids_are_gone(stream: MakeStream, story: MakeRun) -> None:
    written = junit(summarize(stream(story("a\x00b\x0bc\ud800\ufffe<]]>&"))))
    (failure,) = ET.XML(written).iter("failure")
    assert "a⟨U+0000⟩b⟨U+000B⟩c⟨U+D800⟩⟨U+FFFE⟩<]]>&" in (failure.text or "")


def test_an_incomplete_run_has_an_error_of_its_own(stream: MakeStream, run: MakeRun) -> None:
    root = parsed(stream(run())[:-1])
    (error,) = root.iter("error")
    assert error.get("type") == "incomplete"
    assert root.get("errors") == "1"


def test_zero_cases_are_an_error(stream: MakeStream) -> None:
    (error,) = parsed(stream()).iter("error")
    assert error.get("type") == "nothing tested"


def test_a_stream_without_beginning_is_written_all_the_same() -> None:
    assert parsed([]).get("errors") == "1"


def test_properties_name_what_was_tested(stream: MakeStream, run: MakeRun) -> None:
    root = parsed(stream(run(), start={"seed": 7}))
    properties = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert properties["kubernetes"] == "1.35"
    assert properties["seed"] == "7"


def test_fuzzing_is_a_suite_of_its_divergences(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    fuzz = {"kind": "fuzz", "total": 10}
    good = parsed(stream(start=fuzz, outcomes={"pass": 10}))
    assert [one.get("name") for one in good.iter("testcase")] == ["examples"]
    bad = parsed(stream(divergence(stderr="log"), start=fuzz, outcomes={"pass": 9, "fail": 1}))
    (failure,) = bad.iter("failure")
    assert "failure-1.yaml" in (failure.text or "")
    assert bad.findtext(".//system-err") == "log"


def test_an_expected_divergence_is_no_failure(
    stream: MakeStream, divergence: MakeDivergence
) -> None:
    fuzz = {"kind": "fuzz", "total": 1}
    root = parsed(stream(divergence(outcome="expected failure"), start=fuzz, outcomes={"pass": 1}))
    assert root.get("failures") == root.get("errors") == "0"
