"""The inputs of the kubelet's coverage: Go's profile, the source and the reasons."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "adapters" / "kubelet" / "reach"

PROFILE = """\
mode: atomic
k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/a.go:5.2,6.10 2 7
k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/a.go:6.10,8.3 1 0
k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/a.go:12.1,12.9 1 0
k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/manager.go:1.1,2.2 4 1
k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/endpoint.go:1.1,2.2 9 0
numaproof/adapters/kubelet/main.go:1.1,2.2 3 1
"""

SOURCE = """\
package cpumanager

import "errors"

func (m *manager) Start() error {
	if err := m.write(); err != nil {
		return err
	}
	return nil
}

func NewFake() Manager { return nil }
"""

REASONS = """\
- why: >
    It is
    for tests.
  where:
    "*/a.go": [NewFake, "manager.*: m\\\\.gone"]
"""


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Loads the modules of the program, which is a folder without a package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("statements", "reasons", "report", "overview", "building")
    found = {name: importlib.import_module(name) for name in names}
    spec = importlib.util.spec_from_file_location("reach_program", FOLDER / "__main__.py")
    assert spec
    assert spec.loader
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    yield type("Reach", (), {**found, "program": program})
    for name in names:
        del sys.modules[name]


def report(reach: Any, reasons: str, effort: str = "") -> Any:
    blocks = reach.statements.read_profile(PROFILE)
    source = reach.statements.GoSource(SOURCE.splitlines())
    sources = {block.file: source for block in blocks}
    read = reach.reasons.read_reasons(reasons)
    return reach.report.ReachReport("1.36", "v1.36.3", blocks, sources, read, effort)


def test_only_files_of_the_managers_are_counted(reach: Any) -> None:
    blocks = reach.statements.read_profile(PROFILE)
    assert [(block.file, block.first, block.last, block.statements) for block in blocks] == [
        ("cpumanager/a.go", 5, 6, 2),
        ("cpumanager/a.go", 6, 8, 1),
        ("cpumanager/a.go", 12, 12, 1),
        ("devicemanager/manager.go", 1, 2, 4),
    ]
    assert [block.is_reached for block in blocks] == [True, False, False, True]


def test_blocks_on_the_same_line_are_distinguished(reach: Any) -> None:
    line = "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/a.go:5.2,6.10 2 7\n"
    other = line.replace("5.2,6.10", "5.11,6.10")
    assert reach.statements.reached_blocks(PROFILE + other) == {
        "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/a.go:5.2,6.10",
        "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/a.go:5.11,6.10",
        "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/manager.go:1.1,2.2",
    }


def test_unreached_statements_are_open_or_have_a_reason(reach: Any) -> None:
    made = report(reach, REASONS)
    (reason,) = made.reasons
    assert reason.why == "It is for tests."
    assert list(made.unreached_lines(reason)) == [("cpumanager/a.go", "NewFake", "12")]
    assert list(made.unreached_lines(None)) == [("cpumanager/a.go", "manager.Start", "6-8")]


def test_a_reason_can_match_source_lines(reach: Any) -> None:
    made = report(reach, REASONS.replace("gone", "write"))
    assert not list(made.unreached_lines(None))


def test_a_package_passes_at_its_goal_or_with_nothing_open(reach: Any) -> None:
    cpu = next(one for one in report(reach, REASONS).packages() if one.name == "cpumanager")
    assert (cpu.statements, cpu.reached_count, cpu.explained_count, cpu.open) == (4, 2, 1, 1)
    assert not cpu.good
    assert cpu.row() == ("cpumanager", "4", "50.0 %", "1", "1", "66.7 %")
    explained = report(reach, REASONS.replace("gone", "write")).packages()
    assert next(one for one in explained if one.name == "cpumanager").good


def test_packages_without_statements_are_omitted(reach: Any) -> None:
    assert [one.name for one in report(reach, "[]").packages()] == ["cpumanager", "devicemanager"]


def test_the_page_lists_counts_and_every_unreached_line(reach: Any) -> None:
    page = report(reach, REASONS).page()
    assert "| cpumanager | 4 | 50.0 % | 1 | 1 | 66.7 % |" in page
    assert "## It is for tests.\n\n| file | function | lines |" in page
    assert "| cpumanager/a.go | manager.Start | 6-8 |" in page.partition("## Open")[2]
    assert "cpumanager/a.go manager.Start: 6-8" in report(reach, REASONS).text()


def test_tables_of_all_releases_come_from_their_pages(reach: Any) -> None:
    overview = reach.overview
    pages = {
        "1.9": report(reach, REASONS, "\nfrom 1,234 case runs on 3 machines").page(),
        "1.36": report(reach, "[]").page(),
    }
    document = f"# Mine\n{overview.BEGIN}\nold\n{overview.END}\nmore\n"
    made = overview.with_tables(document, pages)
    assert made.startswith(f"# Mine\n{overview.BEGIN}\n\nShare of all statements that are reached ")
    assert made.endswith(f"\n{overview.END}\nmore\n")
    assert "old" not in made
    assert "| package | 1.9 | 1.36 |" in made
    assert "| cpumanager | 50.0% (66.7%) | 50.0% (50.0%) |" in made
    assert "| case runs | 1,234 | - |" in made
    assert overview.with_tables(made, pages) == made


def test_a_report_is_written_as_a_page_and_into_the_tables(reach: Any, tmp_path: Path) -> None:
    (tmp_path / "coverage").mkdir()
    overview = tmp_path / "coverage.md"
    overview.write_text(f"{reach.overview.BEGIN}\n{reach.overview.END}\n")
    made = report(reach, REASONS, ":\n9 case runs on 1 machine")
    reach.program.write(made, tmp_path)
    assert (tmp_path / "coverage" / "1.36.md").read_text() == made.page()
    assert "| case runs | 9 |" in overview.read_text()


def test_the_effort_is_read_from_the_events_of_the_run(reach: Any, tmp_path: Path) -> None:
    began = '{"machines": {"a": {}, "b": {}}}'
    ended = '{"outcomes": {"pass": 1200, "expected failure": 34}}'
    (tmp_path / "events.jsonl").write_text(f"{began}\n{{}}\n{ended}\n")
    told = reach.program.effort(tmp_path)
    assert told.startswith(
        "\nfrom 1,234 case runs on 2 machines (1,200 pass, 34 expected failure),"
    )


def test_a_document_without_markers_is_refused(reach: Any) -> None:
    with pytest.raises(ValueError, match="around the tables"):
        reach.overview.with_tables("# Mine\n", {})


def test_the_projects_own_reasons_can_be_read(reach: Any) -> None:
    reasons = reach.reasons.read_reasons((FOLDER / "unreached.yaml").read_text())
    assert all(reason.why.endswith(".") and reason.where for reason in reasons)
