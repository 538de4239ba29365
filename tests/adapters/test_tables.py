"""The page with the results of other implementations."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "adapters" / "tables.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tables", module)
    spec.loader.exec_module(module)
    return module


def case(outcome: str, reason: str = "", name: str = "discovery-every-machine") -> dict[str, Any]:
    return {"event": "case finished", "case": name, "outcome": outcome, "reason": reason}


def reports(folder: Path, command: str, *events: dict[str, Any]) -> None:
    (folder / command).mkdir(parents=True)
    started = {
        "event": "campaign started",
        "implementation": {"version": "1.2"},
        "level": "admission",
    }
    lines = "".join(f"{json.dumps(event)}\n" for event in (started, *events))
    (folder / command / "events.jsonl").write_text(lines)


def test_machines_are_counted_by_outcome(tables: Any, tmp_path: Path) -> None:
    known = [
        case("known failure", reason)
        for reason in ("finding: a size is wrong", "crash: no end", "own rules: x", "no beginning")
    ]
    reports(
        tmp_path / "one", "check", case("pass"), *known, case("unsupported"), case("pass", name="b")
    )
    page = tables.main([str(tmp_path)])
    assert "| [one](../adapters/one/README.md) 1.2 | 1 | 2 | 1 | 1 |" in page.splitlines()


def test_allocators_are_listed_with_answers_and_examples(tables: Any, tmp_path: Path) -> None:
    one = tmp_path / "one"
    reports(one, "check", case("pass", name="a"), case("known failure", "finding: x", name="b"))
    reports(
        one,
        "fuzz",
        {"event": "campaign ended", "outcomes": {"pass": 5, "known failure": 3, "fail": 1}},
    )
    (one / "assign").mkdir()
    (one / "assign" / "assignments.yaml").write_text("counts: {same: 1200, wrong: 3}\n")
    lines = tables.main([str(tmp_path)]).splitlines()
    assert (
        "| [one](../adapters/one/README.md) 1.2 | admission | 1 | 0 | 1 | 0 | 9 | 3 | 0 | 1 |"
        in lines
    )
    assert "| one | 1,200 | 0 | 3 | 0 |" in lines


def test_the_page_lists_all_findings(tables: Any) -> None:
    page = (ROOT / "docs" / "others-results.md").read_text(encoding="utf-8")
    rows = [line for line in tables.smallest(ROOT / "adapters") if ".yaml" in line]
    assert sum(row.count(".yaml") for row in rows) > 10
    assert any("/own-rules/" in line for line in rows)
    assert [row for row in rows if row not in page.splitlines()] == []
