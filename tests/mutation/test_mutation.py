"""What mutation testing is made of: the sample, what is left out, the checks, the report."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("cosmic_ray", reason="Cosmic Ray is in the environments that test with it")

FOLDER = Path(__file__).parents[2] / "mutation"

MODULE = '''\
"""A module."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    FIRST = 1 + 1

Amount = int | str | None
FLAGS = ONE | TWO

@dataclass(frozen=True)
class Shape:
    sides: int | None = 4

def share(given: int | str, count: int = 2) -> int | None:
    if given == count and not count:
        return (
            given
            + count
        )
    return given // count

class Plan:
    @abstractmethod
    def draw(self) -> str: ...
'''

EXPLAINED = """\
- module: shapes.py
  within: share
  line: return given // count
  becomes: "return given  / count"
  why: >
    Nobody
    looks.
"""

DIFF = """\
--- a/numaproof/reference/shapes.py
+++ b/numaproof/reference/shapes.py
@@ -21 +21 @@
-    return given // count
+    return given / count
"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of the program, which is a folder and no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = [file.stem for file in FOLDER.glob("*.py") if file.stem not in _CHILDREN]
    yield type("Program", (), {name: importlib.import_module(name) for name in names})
    for name in names:
        del sys.modules[name]


_CHILDREN = {"__main__", "checks", "judge"}


@pytest.fixture
def tree(program: Any, tmp_path: Path) -> Any:
    """A tree with one module to mutate."""
    file = tmp_path / "numaproof" / "reference" / "shapes.py"
    file.parent.mkdir(parents=True)
    file.write_text(MODULE)
    return program.tree.SourceTree(tmp_path)


def mutations(program: Any, tree: Any) -> set[tuple[int, str]]:
    population = program.sampling.population(tree, tree.modules())
    return {
        (one.start_pos[0], one.operator_name.removeprefix("core/"))
        for ones in population.places.values()
        for one in ones
    }


def test_types_guards_and_identity_are_not_mutated(program: Any, tree: Any) -> None:
    made = mutations(program, tree)
    assert {row for row, _ in made} == {10, 12, 14, 16, 17, 20, 22}
    assert {name for row, name in made if row in {12, 14, 16}} == {
        "RemoveDecorator",
        "NumberReplacer",
    }
    assert (17, "ReplaceComparisonOperator_Eq_Lt") in made
    assert (17, "ReplaceComparisonOperator_Eq_Is") not in made


def test_every_mutation_that_is_left_out_is_counted_with_its_reason(
    program: Any, tree: Any
) -> None:
    population = program.sampling.population(tree, tree.modules())
    excluded = program.excluded
    assert population.excluded[excluded.GUARDS] == 2
    assert population.excluded[excluded.IDENTITY] == 2
    assert population.excluded[excluded.TYPES] > 20


def test_a_sample_takes_each_place_once_and_the_larger_begins_with_the_smaller(
    program: Any, tree: Any
) -> None:
    population = program.sampling.population(tree, tree.modules())
    everything = population.sample(0, 1000)
    assert len(everything) == len(population.places) < population.mutations
    assert population.sample(0, 5) == everything[:5]
    assert [item.job_id for item in everything[:3]] == ["00001", "00002", "00003"]
    assert population.sample(1, 5) != everything[:5]


def test_the_mutations_are_those_that_cosmic_ray_would_make(program: Any, tree: Any) -> None:
    from cosmic_ray.mutating import mutate_code  # noqa: PLC0415 - skipped without it
    from cosmic_ray.plugins import get_operator  # noqa: PLC0415

    population = program.sampling.population(tree, tree.modules())
    for item in population.sample(0, 1000):
        (mutation,) = item.mutations
        operator = get_operator(mutation.operator_name)()
        after = mutate_code(MODULE, operator, mutation.occurrence)
        before, now = MODULE.splitlines(), after.splitlines()
        rows = [row for row, (a, b) in enumerate(zip(before, now, strict=False), 1) if a != b]
        # A decorator is removed with the blank line above it.
        above = mutation.operator_name == "core/RemoveDecorator"
        assert rows[0] == mutation.start_pos[0] - above


@pytest.mark.parametrize(
    ("line", "lines"),
    [(17, (17, 17)), (20, (18, 21)), (14, (14, 14)), (16, (16, 22)), (99, (99, 99))],
)
def test_a_line_belongs_to_its_innermost_statement(
    program: Any, line: int, lines: tuple[int, int]
) -> None:
    assert program.reach.statement(MODULE, line) == lines


def test_the_checks_that_reach_a_line_are_tried_and_the_narrow_ones_first(
    program: Any, tree: Any
) -> None:
    costs = {"recording 1.36 a": 0.1, "test t::x": 0.1, "case 1.36 wide m": 2.0, "case 1.36 c m": 0}
    lines = {"shapes.py": {17: [0, 1, 2, 3], 18: [2], 22: [1]}}
    reach = program.reach.Reach(costs, lines)

    def planned(row: int) -> list[tuple[float, str]]:
        items = program.sampling.population(tree, tree.modules()).sample(0, 1000)
        (one,) = {
            item.mutations[0].start_pos: item.mutations[0]
            for item in items
            if item.mutations[0].start_pos[0] == row
        }.values()
        plan: list[tuple[float, str]] = reach.plan(tree, one)
        return plan

    assert planned(22) == [(20, "test t::x")]
    assert planned(20) == [(20, "case 1.36 wide m")]
    assert [name for _, name in planned(10)] == [
        "case 1.36 c m",
        "test t::x",
        "recording 1.36 a",
    ]


def test_a_tree_is_another_when_a_file_or_the_checks_are(tree: Any) -> None:
    before = tree.digest("*")
    assert tree.digest("*") == before
    assert tree.digest("case*") != before
    (tree.folder / "numaproof" / "reference" / "shapes.py").write_text("x = 1\n")
    assert tree.digest("*") != before


@pytest.mark.parametrize(
    ("code", "last", "by"),
    [
        (0, "test t::x", "nothing"),
        (1, "FAILED case 1.36 a m", "case 1.36 a m"),
        (-27, "case 1.36 a m", "time-out: case 1.36 a m"),
        (-11, "import", "crash: import"),
    ],
)
def test_how_a_process_ended_says_what_killed_a_mutation(
    program: Any, code: int, last: str, by: str
) -> None:
    verdict = program.processes.outcome(code, last)
    assert verdict == program.processes.CheckResult(killed=code != 0, by=by)


def made(program: Any, tree: Any, outcomes: dict[int, str], explained: str) -> Any:
    """A report on mutations of which those of the given numbers did not end well."""
    results = program.results
    change = results.CodeChange(
        "shapes.py", "share", "return given // count", "return given / count"
    )
    mutants = [
        results.Mutant(
            number,
            change,
            22,
            "core/X",
            results.MutantOutcome(outcomes.get(number, "killed")),
            "",
            DIFF,
        )
        for number in range(1, 21)
    ]
    explanations = results.read_explanations(explained, "survivors.yaml")
    stale = results.stale(explanations, {"shapes.py": MODULE})
    population = program.sampling.population(tree, tree.modules())
    return program.report.MutationReport(0, 20, population, "d" * 64, mutants, explanations, stale)


def test_explained_survivors_are_well_while_nine_in_ten_are_killed(
    program: Any, tree: Any, tmp_path: Path
) -> None:
    report = made(program, tree, {3: "survived", 4: "timed out", 5: "survived"}, EXPLAINED)
    assert report.problems == []
    assert report.summary() == (
        "20 mutations: 17 killed, 1 timed out, 2 survived, 0 no Python; 90.0% killed, "
        "2 of 2 survivors explained"
    )
    report.write(tmp_path / "out")
    page = (tmp_path / "out" / "mutation.md").read_text()
    assert "| `shapes.py` | 20 | 17 | 1 | 2 | 0 |" in page
    assert page.count("Nobody looks.\n\n") == 2
    figures = json.loads((tmp_path / "out" / "mutation.json").read_text())
    assert figures["killed_share"] == 0.9
    assert figures["mutants"][2]["outcome"] == "survived"


def test_too_many_survivors_those_without_reason_and_stale_reasons_are_problems(
    program: Any, tree: Any
) -> None:
    few = made(program, tree, dict.fromkeys((1, 2, 3), "survived"), EXPLAINED)
    assert few.problems == ["85.0% killed, which is less than 90%"]
    invalid = made(program, tree, {1: "survived", 2: "survived", 3: "no Python"}, EXPLAINED)
    assert invalid.problems == ["89.5% killed, which is less than 90%"]
    other = made(program, tree, {1: "survived"}, EXPLAINED.replace("// count", "- count"))
    assert other.problems == [
        "survived without an explanation: shapes.py:22 return given / count",
        "explained, but gone: shapes.py: return given - count",
    ]
    assert "**No explanation yet.**" in other.page()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- module: a.py\n", "entry 1 has not just module, within, line, becomes, why"),
        (
            EXPLAINED.replace("line: return given // count", "line: 3"),
            "entry 1: line is not a text",
        ),
    ],
)
def test_a_wrong_explanation_is_named(program: Any, text: str, problem: str) -> None:
    with pytest.raises(program.results.ExplanationError, match=problem):
        program.results.read_explanations(text, "survivors.yaml")


def test_the_explanations_at_hand_are_of_lines_that_are_there(program: Any) -> None:
    text = (FOLDER / "survivors.yaml").read_text(encoding="utf-8")
    explanations = program.results.read_explanations(text, "survivors.yaml")
    folder = FOLDER.parent / "reference"
    modules = {
        str(file.relative_to(folder)): file.read_text(encoding="utf-8")
        for file in folder.rglob("*.py")
    }
    assert program.results.stale(explanations, modules) == []


@pytest.mark.slow
def test_a_session_resumes_and_another_sample_starts_over(tmp_path: Path) -> None:
    spec = util.find_spec("numaproof")
    assert spec is not None
    places = list(spec.submodule_search_locations or ())
    if not (Path(places[0]) / "reference").is_dir():
        pytest.skip("numaproof is not installed from a wheel here")

    def run(*options: str) -> tuple[str, list[Any]]:
        which = ("--module", "budget.py", "--checks", "test *test_budget.py*", "--jobs", "1")
        place = ("--session", str(tmp_path / "session"), "--out", str(tmp_path / "out"))
        command = [sys.executable, str(FOLDER), *which, *place, *options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode in {0, 1}, ended.stderr
        figures = json.loads((tmp_path / "out" / "mutation.json").read_text())
        return ended.stdout, figures["mutants"]

    said, two = run("--sample", "2")
    assert "[1/2, " in said
    assert "[2/2, " in said
    assert any(one["outcome"] == "killed" for one in two)
    said, three = run("--sample", "3")
    assert "[2/3, " not in said
    assert "[3/3, " in said
    assert three[:2] == two
    said, _ = run("--sample", "1", "--seed", "1")
    assert "starting over" in said
    assert "[1/1, " in said
