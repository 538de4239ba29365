"""Writes docs/others-results.md: how the runs of the adapters ended, and what was found.

    python adapters/tables.py DIR > docs/others-results.md

DIR is a folder that others.py wrote. A machine agrees if what is discovered of it is what cAdvisor
discovers; it falls under the kind of the known failure otherwise.
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
"""The case that discovers each bundled machine once."""

KINDS = ("own rules", "finding", "crash")
ANSWERS = ("same", "other", "wrong", "crash")
HEADING = """# Results of other implementations

[Other implementations, behind adapters](others.md) explains how they are tested. To update this
page, run `adapters/others.py --out DIR`, then `python adapters/tables.py DIR`.
"""


@dataclass(frozen=True)
class Adapter:
    """What is known of one adapter's run.

    Attributes:
        name: that of its folder.
        version: what it says of itself.
        level: at which its answers are judged.
        machines: how many machines agree, or do not and why.
        cases: how many case runs have which outcome.
        answers: how many assignments have which answer; empty if it assigns nothing.
        examples: how many examples of fuzzing have which outcome; empty if nothing was fuzzed.
    """

    name: str
    version: str
    level: str
    machines: Counter[str]
    cases: Counter[str]
    answers: dict[str, int]
    examples: dict[str, int]


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a run; none where there is no such file."""
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def kind(event: dict[str, Any]) -> str:
    """What became of a case run, in the words of the tables."""
    if event["outcome"] != "known failure":
        return str(event["outcome"])
    said, _ = kind_of(event["reason"])
    return said if said in KINDS else KINDS[0]


def read(folder: Path) -> Adapter:
    """What the reports of an adapter say."""
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
    """A row of a table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def table(heading: Sequence[str], rows: Iterable[str]) -> Iterator[str]:
    """A table with a heading, and the line after it."""
    yield row(*heading)
    yield f"|{'---|' * len(heading)}"
    yield from rows
    yield ""


def link(adapter: Adapter) -> str:
    """Its name and version, with a link to its page."""
    return f"[{adapter.name}](../adapters/{adapter.name}/README.md) {adapter.version}"


def discoverers(adapters: Sequence[Adapter]) -> Iterator[str]:
    """Who discovers which share of the machines as cAdvisor does."""
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
    """Who allocates, and what became of the cases, of every assignment and of fuzzing."""
    allocating = [one for one in adapters if one.examples or one.answers]
    yield "## Allocation\n\nCase runs by outcome, and examples of fuzzing with seed 1.\n"
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
    """The cells of an adapter's fuzzing; all other examples passed."""
    passed, *named = (adapter.examples.get(name, 0) for name in ("pass", *NAMED))
    total = sum(adapter.examples.values())
    for number in (total, *named, total - passed - sum(named)):
        yield f"{number:,}"


NAMED = ("known failure", "unsupported")
"""Outcomes of examples that have a column of their own."""

FOUND = {
    "findings": "## Findings\n\nMinimal cases, for `numaproof replay`.\n",
    "own-rules": "\n## Own rules\n\nThe same for kubelet rules that others need not follow.\n",
}
"""The folders of an adapter that have its smallest cases, each with its heading."""


def smallest(adapters: Path) -> Iterator[str]:
    """The smallest case of each finding, and of each rule of its own."""
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
    """The page of the reports in a folder."""
    found = [read(one) for one in sorted(Path(words[0]).iterdir()) if (one / "check").is_dir()]
    lines = [HEADING, *discoverers(found), *allocators(found), *smallest(HERE)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
