"""Deviations are separate from the rules, and each is a single override with metadata."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from numaproof import reference
from numaproof.protocol.releases import RELEASES
from numaproof.reference.cpu.assignment import Assignment
from numaproof.reference.deviations import releases
from numaproof.reference.deviations.defects import DEFECTS, OVERRIDES
from numaproof.reference.deviations.deviation import Defect, defect_of, deviation_of
from numaproof.reference.topology.distances import Distances

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = ("cpu", "memory", "topology", "devices", "pods", "capacity")
MODULES = [
    path
    for folder in RULES
    for path in sorted((Path(reference.__file__).parent / folder).rglob("*.py"))
]


def names_in(module: Path) -> Iterator[str]:
    """Returns all names in a module's code: imports, identifiers, strings in expressions."""
    tree = ast.parse(module.read_text())
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(origin), names=names):
                yield from (f"{origin}.{one.name}" for one in names)
            case ast.Import(names=names):
                yield from (one.name for one in names)
            case ast.Name(id=name):
                yield name
            case ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                yield text
            case _:
                pass


@pytest.mark.parametrize(
    "module", MODULES, ids=lambda module: f"{module.parent.name}.{module.stem}"
)
def test_no_rule_mentions_a_release_or_deviation(module: Path) -> None:
    forbidden = {"deviations", "Release"} | {defect.name for defect in DEFECTS}
    forbidden |= {one.__name__ for one in OVERRIDES}
    for name in names_in(module):
        assert not forbidden & {name, *name.split(".")}, name
        assert not re.search(r"\b1\.[0-9]{2}\b", name), name
    text = module.read_text()
    assert "defect" not in text.lower()
    assert not [defect.name for defect in DEFECTS if defect.name in text]


def test_every_defect_with_an_answer_has_one_override() -> None:
    made = Counter(one for one in map(deviation_of, OVERRIDES) if isinstance(one, Defect))
    assert made == Counter(defect for defect in DEFECTS if defect.answers)


@pytest.mark.parametrize("override", OVERRIDES, ids=lambda override: override.__name__)
def test_every_override_is_in_its_releases_and_changes_a_rule(
    override: type,
) -> None:
    own = {name for name in vars(override) if not name.startswith("__")} - {"deviation"}
    for version in RELEASES:
        has = override in releases.release(version).deviations
        assert has == (version in deviation_of(override).releases)
    inherited = {name for base in override.__mro__[1:] for name in vars(base)}
    assert own & inherited


def test_every_defect_names_known_releases_and_a_sentence() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS)
    for defect in DEFECTS:
        assert set(defect.releases) <= set(RELEASES)
        assert defect.sentence.endswith(".")


def test_defects_without_an_answer_are_panics_and_hangs() -> None:
    ends_badly = ("panic", "division by zero", "never ends", "takes minutes")
    for defect in DEFECTS:
        assert defect.answers != any(words in defect.what for words in ends_badly), defect.name


@pytest.mark.parametrize("version", RELEASES)
def test_the_documented_reference_has_no_defects(version: str) -> None:
    documented = releases.release(version, follows_docs=True)
    assert not [one for one in documented.deviations if defect_of(one)]
    assert documented.rule(Distances) is Distances
    assert documented.rule(Assignment) is Assignment
