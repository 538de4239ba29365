"""Adding cases to existing files."""

from __future__ import annotations

import msgspec
import pytest

from numaproof.conformance.cases import loading
from numaproof.conformance.cases.schema import Case, Expected, StartStep, Step
from numaproof.conformance.promotion import append_case
from numaproof.fakesys import DocumentError
from numaproof.protocol.machine import MachineInfo
from numaproof.protocol.releases import RELEASES

NEW = Case(
    id="static-new",
    title="Ü: a sentence, with a colon",
    requirements=("CPU-STATIC-001",),
    level="admission",
    machine=MachineInfo(num_cores=1),
    steps=(
        Step(
            start=StartStep(config={"cpuManagerPolicy": "static"}), expect=Expected(refused="cpu")
        ),
        Step(remove="a"),
        Step(start=StartStep(), expect="anything"),
    ),
)

FILE = """\
# A head that stays.
defaults:  # these too
  level: kubelet
  kubernetes: ">= 1.34"
  config: {kubeReserved: {cpu: "1"}}
cases:
  - id: static-old   # odd   spaces
    title: "Old"
    requirements: [CPU-STATIC-001]

    steps:
      - start: {}
"""


def read(text: str) -> tuple[Case, ...]:
    return loading.parse(text, "mine.yaml")


def test_appending_keeps_the_file_and_ignores_its_defaults() -> None:
    text = append_case(FILE, NEW, "mine.yaml")
    assert text.startswith(FILE + "\n  - id: static-new\n")
    old, added = read(text)
    assert old == read(FILE)[0]
    assert added == msgspec.structs.replace(NEW, kubernetes=f">= {RELEASES[0]}")


def test_a_case_is_added_before_the_keys_that_follow() -> None:
    begun = FILE[FILE.index("cases:") :]
    tail = "# Of the defaults.\ndefaults: {level: placement}\n"
    text = append_case(f"{begun}\n{tail}", NEW, "mine.yaml")
    assert text.startswith(begun + "\n  - id: static-new\n")
    assert text.endswith("\n\n" + tail)
    assert [case.id for case in read(text)] == ["static-old", "static-new"]


@pytest.mark.parametrize("end", ["", "\n\n\n", "  # the end\n"])
def test_the_file_may_end_in_any_way(end: str) -> None:
    text = append_case(FILE.rstrip("\n") + end, NEW, "mine.yaml")
    assert text.startswith(FILE.rstrip("\n") + end.rstrip("\n"))
    assert len(read(text)) == 2


def test_line_endings_of_the_file_are_kept() -> None:
    text = append_case(FILE.replace("\n", "\r\n"), NEW, "mine.yaml")
    assert text.count("\n") == text.count("\r\n")
    assert len(read(text)) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        *(
            (f"{before}[{inside}]{after}", r":1: cases: .* list in brackets")
            for before, inside, after in (
                ("cases: ", "", "\n"),
                ("{cases: ", "{id: a, title: A, requirements: [], steps: [{start: {}}]}", "}\n"),
                ("cases: ", "{id: a, title: A, requirements: [], steps: [{start: {}}]}", "\n"),
            )
        ),
        *((text, "") for text in ("# nothing\n", "cases: 1\n", "case: []\n")),
    ],
)
def test_flow_lists_and_non_mappings_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(DocumentError, match=rf"mine\.yaml{complaint}"):
        append_case(text, NEW, "mine.yaml")


@pytest.mark.parametrize("end", ["...\n", "    title: |+\n      Old\n"])
def test_a_file_that_would_change_meaning_is_refused(end: str) -> None:
    text = FILE.replace('    title: "Old"\n', "" if "title" in end else '    title: "Old"\n')
    with pytest.raises(
        DocumentError, match=r"mine\.yaml: .*add it to another file with --out FILE"
    ):
        append_case(text + end, NEW, "mine.yaml")
