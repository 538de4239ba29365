"""Cases added to files that somebody has written."""

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


def test_what_is_in_the_file_stays_as_it_is_and_its_defaults_do_not_change_the_case() -> None:
    text = append_case(FILE, NEW, "mine.yaml")
    assert text.startswith(FILE + "\n  - id: static-new\n")
    old, added = read(text)
    assert old == read(FILE)[0]
    assert added == msgspec.structs.replace(NEW, kubernetes=f">= {RELEASES[0]}")


def test_a_list_of_cases_that_other_keys_follow_is_added_to_at_its_end() -> None:
    begun = FILE[FILE.index("cases:") :]
    tail = "# Of the defaults.\ndefaults: {level: placement}\n"
    text = append_case(f"{begun}\n{tail}", NEW, "mine.yaml")
    assert text.startswith(begun + "\n  - id: static-new\n")
    assert text.endswith("\n\n" + tail)
    assert [case.id for case in read(text)] == ["static-old", "static-new"]


@pytest.mark.parametrize("end", ["", "\n\n\n", "  # the end\n"])
def test_the_end_of_the_file_may_be_any(end: str) -> None:
    text = append_case(FILE.rstrip("\n") + end, NEW, "mine.yaml")
    assert text.startswith(FILE.rstrip("\n") + end.rstrip("\n"))
    assert len(read(text)) == 2


def test_lines_end_as_they_end_in_the_file() -> None:
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
def test_a_list_in_brackets_and_what_is_no_table_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(DocumentError, match=rf"mine\.yaml{complaint}"):
        append_case(text, NEW, "mine.yaml")


@pytest.mark.parametrize("end", ["...\n", "    title: |+\n      Old\n"])
def test_a_file_that_would_read_otherwise_is_refused(end: str) -> None:
    text = FILE.replace('    title: "Old"\n', "" if "title" in end else '    title: "Old"\n')
    with pytest.raises(DocumentError, match=r"mine\.yaml: .*add to another file, --out FILE"):
        append_case(text + end, NEW, "mine.yaml")
