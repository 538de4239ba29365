"""Writes docs/others-results.md: the results of the adapters' runs, and the findings.

    python adapters/tables.py DIR > docs/others-results.md

DIR is the output folder of others.py. A machine agrees if its discovery gives the same result as
cAdvisor's. If it doesn't, it is counted under the kind of its known failure.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from numaproof.reports.board.data import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HERE = Path(__file__).parent
DISCOVERY = "discovery-every-machine"
"""The case that discovers each bundled machine."""

KINDS = ("own rules", "finding", "crash")
ANSWERS = ("same", "other", "wrong", "crash")
HEADING = """# Results of other implementations

[Other implementations, behind adapters](others.md) explains how they are tested. To update this
page, run `adapters/others.py --out DIR`, then `python adapters/tables.py DIR`.
"""


@dataclass(frozen=True)
class Adapter:
    """The results of an adapter's run.

    Attributes:
        name: the name of its folder.
        version: the version that it reports.
        level: the level at which its answers are compared.
        machines: how many machines agree, and how many don't, by reason.
        cases: the number of case runs by outcome.
        answers: the number of assignments by kind of answer; empty if it assigns nothing.
        examples: the number of fuzzing examples by outcome; empty if it wasn't fuzzed.
    """

    name: str
    version: str
    level: str
    machines: Counter[str]
    cases: Counter[str]
    answers: dict[str, int]
    examples: dict[str, int]


def events(path: Path) -> Iterator[dict[str, Any]]:
    """Returns the events of a run, or none if the file doesn't exist."""
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def kind(event: dict[str, Any]) -> str:
    """Returns the tables' name for the outcome of a case run."""
    if event["outcome"] != "known failure":
        return str(event["outcome"])
    said, _ = kind_of(event["reason"])
    return said if said in KINDS else KINDS[0]


def read(folder: Path) -> Adapter:
    """Reads an adapter's reports."""
    version = level = ""
    machines: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for event in events(folder / "check" / "events.jsonl"):
        if event["event"] == "campaign started":
            version, level = event["implementation"]["version"], event["level"]
        elif event["event"] == "case finished":
            cases[kind(event)] += 1
            machines[kind(event)] += event["case"] == DISCOVERY
    counts = folder / "assign" / "assignments.yaml"
    answers = yaml.safe_load(counts.read_text(encoding="utf-8")) if counts.exists() else {}
    examples: dict[str, int] = {}
    for event in events(folder / "fuzz" / "events.jsonl"):
        if event["event"] == "campaign ended":
            examples = event["outcomes"]
    return Adapter(
        folder.name, version, level, machines, cases, answers.get("counts", {}), examples
    )


def row(*cells: object) -> str:
    """Formats a table row."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def table(heading: Sequence[str], rows: Iterable[str]) -> Iterator[str]:
    """Formats a table with a heading and a separator line below it."""
    yield row(*heading)
    yield f"|{'---|' * len(heading)}"
    yield from rows
    yield ""


def link(adapter: Adapter) -> str:
    """Returns the adapter's name and version with a link to its page."""
    return f"[{adapter.name}](../adapters/{adapter.name}/README.md) {adapter.version}"


def discoverers(adapters: Sequence[Adapter]) -> Iterator[str]:
    """Returns the table of implementations that discover machines."""
    yield "## Discovery\n\nBundled machines by outcome.\n"
    columns = ("pass", *KINDS)
    yield from table(
        ("implementation", "agrees", *KINDS),
        (
            row(link(one), *counts)
            for one in adapters
            if any(counts := [one.machines[column] for column in columns])
        ),
    )


def allocators(adapters: Sequence[Adapter]) -> Iterator[str]:
    """Returns the table of implementations that allocate."""
    allocating = [one for one in adapters if one.examples or one.answers]
    yield "## Allocation\n\nCase runs by outcome, and fuzzing examples with seed 1.\n"
    yield from table(
        (
            "implementation",
            "level",
            "pass",
            *KINDS,
            "examples",
            "known failure",
            "not claimed",
            "other",
        ),
        (
            row(
                link(one),
                one.level,
                *(one.cases[column] for column in ("pass", *KINDS)),
                *fuzzing_cells(one),
            )
            for one in allocating
        ),
    )
    yield "[Every assignment](others.md#every-assignment) on small machines.\n"
    yield from table(
        ("implementation", *ANSWERS),
        (
            row(one.name, *(f"{one.answers.get(answer, 0):,}" for answer in ANSWERS))
            for one in allocating
            if one.answers
        ),
    )


def fuzzing_cells(adapter: Adapter) -> Iterator[str]:
    """Returns an adapter's cells about fuzzing. Examples that are in no column passed."""
    passed, *named = (adapter.examples.get(name, 0) for name in ("pass", *NAMED))
    total = sum(adapter.examples.values())
    for number in (total, *named, total - passed - sum(named)):
        yield f"{number:,}"


NAMED = ("known failure", "unsupported")
"""Outcomes of examples that have a column."""

FOUND = {
    "findings": "## Findings\n\nMinimal cases, for `numaproof replay`.\n",
    "own-rules": "\n## Own rules\n\nMinimal cases for kubelet rules"
    " that other implementations needn't follow.\n",
}
"""The folders of an adapter with its smallest cases, and their headings."""


def smallest(adapters: Path) -> Iterator[str]:
    """Lists the smallest case of each finding and of each own rule."""
    for folder, heading in FOUND.items():
        yield heading
        cases: dict[str, list[str]] = {}
        for path in sorted(adapters.glob(f"*/{folder}/*.yaml")):
            name = path.parents[1].name
            cases.setdefault(name, []).extend(
                f"[{case['title']}](../adapters/{name}/{folder}/{path.name})"
                for case in yaml.safe_load(path.read_text(encoding="utf-8"))["cases"]
            )
        yield from (f"- {name}: {'; '.join(links)}" for name, links in cases.items())


def main(words: Sequence[str]) -> str:
    """Returns the page for a folder of reports."""
    found = [read(one) for one in sorted(Path(words[0]).iterdir()) if (one / "check").is_dir()]
    lines = [HEADING, *discoverers(found), *allocators(found), *smallest(HERE)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
