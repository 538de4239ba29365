"""Each requirement is named in the docstring of its rule, and only existing ones are named."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof import reference
from numaproof.conformance.requirements import load_registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REFERENCE = Path(reference.__file__).parent

ID = re.compile(r"\b[A-Z]+(?:-[A-Z]+)*-\d{3}\b")
PARAGRAPH = re.compile(rf"\n\nRequirements: ({ID.pattern}(?:,\s{ID.pattern})*)\.\Z")
"""The last paragraph of a docstring, the only place for requirement ids."""

UNNAMED = {
    "CPU-EXAMPLE-001": "an example of CPU-POOL-002",
    "CPU-EXAMPLE-002": "an example of CPU-POOL-003",
    "CPU-EXAMPLE-003": "an example of CPU-POOL-003",
    "CPU-EXAMPLE-004": "an example of CPU-STATIC-001 and CPU-STATIC-002",
    "CPU-EXAMPLE-005": "an example of CPU-POOL-004",
    "CPU-OPT-PAIR-005": "follows from the rules of all options together",
    "CPU-OPT-PAIR-006": "follows from the rules of all options and policies together",
    "CPU-OPT-STRICT-007": "no rule looks at the limits of a pod that is not Guaranteed",
    "TOPO-EXAMPLE-001": "an example of CPU-HINT-002 and TOPO-POLICY-011",
    "TOPO-EXAMPLE-002": "an example of CPU-HINT-002 and TOPO-POLICY-011",
    "TOPO-EXAMPLE-003": "an example of TOPO-MERGE-003 and TOPO-MERGE-011",
    "TOPO-EXAMPLE-004": "an example of CPU-HINT-003 and TOPO-MERGE-001",
    "TOPO-EXAMPLE-005": "an example of DEV-HINT-002, one resource at a time",
    "TOPO-EXAMPLE-006": "an example of CPU-HINT-004",
    "TOPO-EXAMPLE-007": "follows from TOPO-POLICY-003, without a scheduler",
    "TOPO-EXAMPLE-008": "an example of CPU-STATIC-001 and MEM-STATIC-001",
}
"""Requirements with cases but without a rule, and the reasons."""


@cache
def requirement_groups() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    """Returns the ids in each module's docstrings, one group for each docstring."""
    return {
        path.relative_to(REFERENCE).as_posix(): tuple(
            tuple(ID.findall(match[1]))
            for text in docstrings(path)
            if (match := PARAGRAPH.search(text))
        )
        for path in sorted(REFERENCE.rglob("*.py"))
    }


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def rules() -> dict[str, str]:
    """Returns a module that names each requirement, by id."""
    return {
        one: module
        for module, groups in requirement_groups().items()
        for ids in groups
        for one in ids
    }


def test_every_requirement_named_in_the_reference_exists() -> None:
    known = load_registry().by_id()
    assert {one: module for one, module in rules().items() if one not in known} == {}


def test_tested_requirements_are_named_by_a_rule_or_explained() -> None:
    tested = {row.id for row in load_registry().requirements if row.is_tested}
    assert sorted(tested - rules().keys() - UNNAMED.keys()) == []


def test_only_tested_requirements_without_a_rule_have_reasons() -> None:
    tested = {row.id for row in load_registry().requirements if row.is_tested}
    assert sorted(UNNAMED.keys() & rules().keys()) == []
    assert sorted(UNNAMED.keys() - tested) == []


def test_reasons_refer_to_requirements_that_a_rule_names() -> None:
    assert {one for reason in UNNAMED.values() for one in ID.findall(reason)} <= rules().keys()


def test_ids_are_sorted_in_a_docstrings_last_paragraph_only() -> None:
    for module, groups in requirement_groups().items():
        found = ID.findall((REFERENCE / module).read_text(encoding="utf-8"))
        assert sorted(found) == sorted(one for ids in groups for one in ids), module
        for ids in groups:
            assert list(ids) == sorted(set(ids)), module
