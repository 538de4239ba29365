"""Renders JUnit XML for GitHub, GitLab and Jenkins.

Each requirement area is a test suite, and each case run is a test case. CI systems identify a test
by ``classname`` and ``name`` and drop duplicates, so both depend only on the case and the machine
and are unique. Properties list what failed. Wrong answers are a ``failure``; a broken program or a
case that did not run is an ``error``; unsupported cases, expected failures and known failures are
``skipped`` with a reason. A run that is incomplete or tested nothing has an additional error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from numaproof.protocol.events import GOOD, CaseFinished, headline, sentence_of
from numaproof.reports.groups import causes
from numaproof.reports.story import Failure, both_ends, failure_of, plain_story
from numaproof.reports.untrusted_text import one_line, shorten, visible
from numaproof.reports.values import group_values
from numaproof.reports.wording import (
    baseline_text,
    is_wrong_answer,
    left_side,
    release_and_level,
    surroundings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numaproof.protocol.events import DivergenceFound
    from numaproof.reports.summary import Summary

_LONGEST = 20_000
_LOG = 100


def junit(summary: Summary) -> bytes:
    """Renders the run as a JUnit XML document in UTF-8."""
    root = ET.Element("testsuites", name="numaproof")
    by_area = group_values((summary.area(run), run) for run in summary.runs)
    for area in summary.areas:
        _suite(root, area, [_case(summary, run, area) for run in by_area[area]], summary)
    if summary.fuzz:
        _suite(root, summary.kind, _fuzz_cases(summary), summary)
    if problems := _run_errors(summary):
        _suite(root, "run", problems, summary)
    _number_duplicates(root)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{summary.seconds:.3f}")
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _suite(root: ET.Element, name: str, cases: Iterable[ET.Element], summary: Summary) -> None:
    suite = ET.SubElement(root, "testsuite", name=f"numaproof.{visible(name)}")
    properties = ET.SubElement(suite, "properties")
    for key, value in _properties(summary):
        ET.SubElement(properties, "property", name=key, value=one_line(value, 500))
    suite.extend(cases)
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name_, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name_, str(len(suite.findall(f"testcase/{tag}"))))
    seconds = sum(float(case.get("time", "0")) for case in suite.iter("testcase"))
    suite.set("time", f"{seconds:.3f}")


def _properties(summary: Summary) -> list[tuple[str, str]]:
    started = summary.start
    if started is None:
        return []
    who = started.implementation
    kubernetes, level = release_and_level(started)
    return [
        ("numaproof", started.numaproof),
        ("kubernetes", kubernetes),
        ("level", level),
        ("implementation", f"{who.name} {who.version}" if who else "unknown"),
        *([("left", left_side(started))] if started.left else []),
        *((name.lower(), value) for name, value in surroundings(summary)),
        *([("seed", str(started.seed))] if started.seed is not None else []),
        *([("causes", str(found))] if (found := len(causes(summary))) else []),
    ]


def _case(summary: Summary, run: CaseFinished, area: str) -> ET.Element:
    name = f"{run.case} [{run.machine}]"
    entry = run.outcome == "missing known failure"
    case = _element(area, f"{name}: {run.signature}" if entry else name, run.seconds)
    if run.baseline_divergence:
        _add_property(case, "side", baseline_text(run.baseline_divergence))
    _add_outcome(case, summary, run)
    return case


def _add_outcome(case: ET.Element, summary: Summary, event: CaseFinished | DivergenceFound) -> None:
    kind: str = event.outcome
    if isinstance(event, CaseFinished) and kind == "expected failure":
        kind = f"expected failure: {event.defect or 'unnamed defect'}"
    if event.outcome in {"unsupported", "expected failure", "known failure"}:
        ET.SubElement(case, "skipped", message=_message(kind, event))
    elif event.outcome not in GOOD:
        failure = failure_of(summary, event)
        _add_violated(case, failure)
        _add_failure(case, failure)
    if event.stderr:
        ET.SubElement(case, "system-err").text = both_ends(event.stderr, _LOG)


def _fuzz_cases(summary: Summary) -> list[ET.Element]:
    cases = []
    if total := summary.tally.total:
        played = _element(summary.kind, "examples", summary.seconds)
        _add_property(played, "examples", str(total))
        if total == summary.tally.of("unsupported"):
            ET.SubElement(played, "skipped", message="unsupported")
        cases.append(played)
    for divergence in summary.divergences:
        # Titles contain values that differ between runs.
        case = _element(summary.kind, divergence.signature or divergence.title, 0)
        _add_outcome(case, summary, divergence)
        cases.append(case)
    return cases


def _add_failure(case: ET.Element, failure: Failure) -> None:
    if failure.signature:
        _add_property(case, "signature", failure.signature)
    tag = "failure" if is_wrong_answer(failure.outcome) else "error"
    message = _message(failure.outcome, failure)
    found = ET.SubElement(case, tag, message=message, type=failure.outcome)
    found.text = shorten(plain_story(failure), _LONGEST)


def _run_errors(summary: Summary) -> list[ET.Element]:
    if gaps := " ".join(summary.gaps):
        name, kind = "the run is complete", "incomplete"
        message = one_line(f"incomplete: {gaps}", 300)
        text = f"The run is incomplete. {visible(gaps)}"
    elif summary.verdict == "nothing tested":
        name, kind = "something was tested", "nothing tested"
        message = text = "Nothing was tested: no case ran, or none is supported."
    else:
        return []
    case = _element("run", name, 0)
    ET.SubElement(case, "error", message=message, type=kind).text = text
    return [case]


def _add_violated(case: ET.Element, failure: Failure) -> None:
    """Adds the violated requirements and their areas, which can differ from the case's area."""
    requirements = failure.requirements
    for name, values in (
        ("requirements", [one.id for one in requirements]),
        ("requirement areas", [one.area for one in requirements]),
    ):
        if values:
            _add_property(case, name, ", ".join(dict.fromkeys(values)))


def _add_property(case: ET.Element, name: str, value: str) -> None:
    properties = case.find("properties")
    if properties is None:
        properties = ET.SubElement(case, "properties")
    ET.SubElement(properties, "property", name=name, value=one_line(value, 500))


def _number_duplicates(root: ET.Element) -> None:
    """Numbers test cases that have the same name; CI systems would keep only one of them."""
    used: set[tuple[str | None, str]] = set()
    for case in root.iter("testcase"):
        given = name = case.get("name", "")
        number = 1
        while (case.get("classname"), name) in used:
            number += 1
            name = f"{given} ({number})"
        used.add((case.get("classname"), name))
        case.set("name", name)


def _element(area: str, name: str, seconds: float) -> ET.Element:
    return ET.Element(
        "testcase",
        classname=f"numaproof.{visible(area)}",
        name=one_line(name, 300),
        time=f"{seconds:.3f}",
    )


def _message(kind: str, about: CaseFinished | DivergenceFound | Failure) -> str:
    text = headline(sentence_of(about.message, about.finding))
    return one_line(f"{kind}: {text}" if text else kind, 300)
