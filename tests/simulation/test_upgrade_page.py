"""docs/upgrades.md matches its script."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from numaproof.protocol.releases import RELEASES
from numaproof.reference.implementation import Reference

if TYPE_CHECKING:
    from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = (DOCS / "upgrades.md").read_text("utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the page, as a module."""
    spec = importlib.util.spec_from_file_location("page", DOCS / "upgrades" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module.
    sys.modules["page"] = module
    spec.loader.exec_module(module)
    return module


def test_gates_and_options_match_the_reference(script: Any) -> None:
    assert script.gates() in WRITTEN
    assert script.options() in WRITTEN


@pytest.mark.parametrize("title", ["A full node"])
def test_node_upgrades_match_the_reference(script: Any, title: str) -> None:
    (node,) = (one for one in script.nodes() if one.title == title)
    assert script.of_node(node, script.node_upgrades(node, Reference())) in WRITTEN


@pytest.mark.parametrize("name", ["openshift", "strict-reservation", "intel-numa"])
def test_published_configurations_have_the_output_of_the_command(script: Any, name: str) -> None:
    show = script.example if name == script.SHOWN else script.summary
    assert show(name, *script.EXAMPLES[name], ()) in WRITTEN


@pytest.mark.slow
def test_the_whole_page_matches_its_script(script: Any) -> None:
    assert script.page() == WRITTEN


def test_steps_are_grouped_by_ranges_of_releases(script: Any) -> None:
    first, second, third, *_, last = RELEASES
    assert script.steps_text([(first, second)]) == f"{first} to {second}"
    steps = [(one, after) for one in (first, second) for after in (*RELEASES[:3], last)]
    both = f"{first}, {second} to {first}-{third}, {last}"
    assert script.steps_text(steps) == both
