"""Case files: valid content and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

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


def test_cases_inherit_the_defaults_of_their_file() -> None:
    one, two = loading.parse(CASE, "cases.yaml")
    assert one.level == "placement"
    assert one.machines.smt == 2
    assert one.kubernetes == ">= 1.34"
    assert two.level == "admission"
    assert two.machines.smt is None
    assert two.kubernetes == "1.33"
    # Configurations are merged, and null removes a key.
    assert one.config == {"kubeReserved": {"cpu": "2", "memory": "1Gi"}}
    assert two.steps[0].verb == "admit"
    assert two.steps[0].expect == Expected(refused="SMTAlignmentError")


def test_a_file_can_set_the_machine_of_its_cases() -> None:
    text = CASE.replace("machines: {smt: 2}", "machine: {num_cores: 3}")
    one, two = loading.parse(text, "cases.yaml")
    assert one.machine is not None
    assert one.machine.num_cores == 3
    # Conditions on bundled machines replace the default.
    assert two.machine is None


def parse_row(row: dict[str, Any]) -> object:
    old, new = row["instead"]
    text = CASE if row["of"] == "plain" else BY_RELEASE
    assert old in text
    try:
        return f"{len(loading.parse(text.replace(old, new), 'cases.yaml'))} cases"
    except DocumentError as error:
        return str(error)


@WRONG
def test_an_error_names_line_field_and_fix(row: dict[str, Any]) -> None:
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


def test_expectations_can_differ_by_release() -> None:
    _, case = loading.parse(BY_RELEASE, "cases.yaml")
    assert loading.parse(writing.text(case), "cases.yaml") == (case,)
    (step,) = case.steps
    assert step.on("1.34").expect == Expected(refused="SMTAlignmentError")
    assert step.on("1.35").expect == "anything"
    assert step.on("1.36").expect == Expected()
    with pytest.raises(LookupError, match=r"there is no expectation for Kubernetes 1\.40"):
        msgspec.structs.replace(step, expect=step.expect[:1]).on("1.40")


def test_a_level_includes_the_looser_ones() -> None:
    assert loading.applies("admission", "placement")
    assert loading.applies("placement", "placement")
    assert not loading.applies("kubelet", "placement")


# Writing cases


def test_a_written_case_round_trips(tmp_path: Path, info: MachineInfo) -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    steps = (Step(start=StartStep(config={"a": {"b": [1, "ü", {}]}}, removed_pods=("x",))),)
    case = msgspec.structs.replace(case, steps=steps, machine=info)
    file = tmp_path / writing.name_of(case)
    writing.write(case, file)
    assert loading.read_file(file) == (case,)
    assert list(tmp_path.iterdir()) == [file]


def test_equal_cases_have_equal_text_and_names() -> None:
    one, two = (loading.parse(CASE, "cases.yaml")[0] for _ in range(2))
    assert writing.text(one) == writing.text(two)
    assert writing.name_of(one) == writing.name_of(two)
    other = msgspec.structs.replace(one, title="Other")
    assert writing.name_of(other) != writing.name_of(one)


def test_no_preference_round_trips() -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    merge = MergeStep(nodes=(0,), policy="none", providers=({"gpu": None}, None))
    case = msgspec.structs.replace(case, steps=(Step(merge=merge),))
    (read,) = loading.parse(writing.text(case), "cases.yaml")
    assert read.steps == case.steps


def test_repeated_values_are_written_without_aliases() -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    step = Step(start=StartStep(config={"a": {"b": "c"}}))
    text = writing.text(msgspec.structs.replace(case, steps=(step, step)))
    assert "&id" not in text
    assert text.count("b: c") == 2


def test_a_long_title_is_truncated() -> None:
    (case, _) = loading.parse(CASE, "cases.yaml")
    for title in ("containers.app.cpus is 1,5 against 2,6; " * 100, "x" * writing.LONGEST_TITLE):
        written = writing.text(msgspec.structs.replace(case, title=title))
        (read,) = loading.parse(written, "finding.yaml")
        short = f"{title[: writing.LONGEST_TITLE - 1].rstrip()}…"
        assert read.title == (short if len(title) > writing.LONGEST_TITLE else title)


def test_both_yaml_emitters_write_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    some = loading.bundled_cases()[::20]
    by_library = [writing.item(case) for case in some]
    pure = type("Pure", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    pure.yaml_representers = writing._Dumper.yaml_representers
    monkeypatch.setattr(writing, "_Dumper", pure)
    assert [writing.item(case) for case in some] == by_library
