"""Case files: what is in them, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from builders.tables import Table
from numaproof.conformance.cases import loading, writing
from numaproof.conformance.cases.schema import Expected, MergeStep, StartStep, Step
from numaproof.fakesys import DocumentError

if TYPE_CHECKING:
    from pathlib import Path

    from numaproof.protocol.machine import MachineInfo

WRONG = Table(__file__, "loading.yaml")
CASE = """\
defaults:
  config: {cpuManagerPolicy: static, kubeReserved: {cpu: "1", memory: 1Gi}}
  machines: {smt: 2}
  level: placement
  kubernetes: ">= 1.34"
cases:
- id: one
  title: One
  requirements: [A-001]
  config: {kubeReserved: {cpu: "2"}, cpuManagerPolicy: null}
  steps:
  - start: {}
- id: two
  title: Two
  requirements: [A-001]
  level: admission
  machines: {}
  kubernetes: "1.33"
  steps:
  - admit: {pod: a, containers: {app: {}}}
    expect: {refused: SMTAlignmentError}
"""


def test_cases_take_over_the_defaults_of_their_file_where_they_say_nothing() -> None:
    one, two = loading.parse(CASE, "cases.yaml")
    assert one.level == "placement"
    assert one.machines.smt == 2
    assert one.kubernetes == ">= 1.34"
    assert two.level == "admission"
    assert two.machines.smt is None
    assert two.kubernetes == "1.33"
    # Configurations are merged, and null takes a key away.
    assert one.config == {"kubeReserved": {"cpu": "2", "memory": "1Gi"}}
    assert two.steps[0].verb == "admit"
    assert two.steps[0].expect == Expected(refused="SMTAlignmentError")


def parse_row(row: dict[str, Any]) -> object:
    old, new = row["instead"]
    text = CASE if row["of"] == "plain" else BY_RELEASE
    assert old in text
    try:
        return f"{len(loading.parse(text.replace(old, new), 'cases.yaml'))} cases"
    except DocumentError as error:
        return str(error)


@WRONG
def test_a_wrong_file_is_an_error_with_line_field_and_fix(row: dict[str, Any]) -> None:
    WRONG.check(row, parse_row(row))


BY_RELEASE = CASE.replace(
    "    expect: {refused: SMTAlignmentError}\n",
    """\
    expect:
    - {kubernetes: "< 1.35", refused: SMTAlignmentError}
    - {kubernetes: "1.35", anything: true}
    - {kubernetes: ">= 1.36"}
""",
).replace('kubernetes: "1.33"', 'kubernetes: ">= 1.34"')


def test_a_step_may_expect_something_else_in_each_release() -> None:
    _, case = loading.parse(BY_RELEASE, "cases.yaml")
    assert loading.parse(writing.text(case), "cases.yaml") == (case,)
    (step,) = case.steps
    assert step.on("1.34").expect == Expected(refused="SMTAlignmentError")
    assert step.on("1.35").expect == "anything"
    assert step.on("1.36").expect == Expected()
    with pytest.raises(LookupError, match=r"there is no expectation for Kubernetes 1\.40"):
        msgspec.structs.replace(step, expect=step.expect[:1]).on("1.40")


def test_levels_include_the_ones_before_them() -> None:
    assert loading.applies("admission", "placement")
    assert loading.applies("placement", "placement")
    assert not loading.applies("kubelet", "placement")


# Writing them


def test_a_written_case_is_read_as_the_same_case(tmp_path: Path, info: MachineInfo) -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    steps = (Step(start=StartStep(config={"a": {"b": [1, "ü", {}]}}, removed_pods=("x",))),)
    case = msgspec.structs.replace(case, steps=steps, machine=info)
    file = tmp_path / writing.name_of(case)
    writing.write(case, file)
    assert loading.read_file(file) == (case,)
    assert list(tmp_path.iterdir()) == [file]


def test_the_same_case_has_the_same_text_and_name() -> None:
    one, two = (loading.parse(CASE, "cases.yaml")[0] for _ in range(2))
    assert writing.text(one) == writing.text(two)
    assert writing.name_of(one) == writing.name_of(two)
    other = msgspec.structs.replace(one, title="Other")
    assert writing.name_of(other) != writing.name_of(one)


def test_no_preference_stays_no_preference_in_a_file() -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    merge = MergeStep(nodes=(0,), policy="none", providers=({"gpu": None}, None))
    case = msgspec.structs.replace(case, steps=(Step(merge=merge),))
    (read,) = loading.parse(writing.text(case), "cases.yaml")
    assert read.steps == case.steps


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    step = Step(start=StartStep(config={"a": {"b": "c"}}))
    text = writing.text(msgspec.structs.replace(case, steps=(step, step)))
    assert "&id" not in text
    assert text.count("b: c") == 2


def test_of_a_long_title_the_beginning_is_written() -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    for title in ("containers.app.cpus is 1,5 against 2,6; " * 100, "x" * writing.LONGEST_TITLE):
        written = writing.text(msgspec.structs.replace(case, title=title))
        (read,) = loading.parse(written, "finding.yaml")
        short = f"{title[: writing.LONGEST_TITLE - 1].rstrip()}…"
        assert read.title == (short if len(title) > writing.LONGEST_TITLE else title)
