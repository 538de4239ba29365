"""Cases that read well and cannot be played: every error names the file and the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

Command = Callable[..., Any]

HEAD = """cases:
- id: own
  title: Own
  requirements: [CPU-STATIC-001]
"""
STEPS = "  steps:\n  - state: {}\n"
MERGE = """  steps:
  - state: {}
  - merge: {nodes: [0], policy: none, providers: [{cpu: [{numa: ['1'], preferred: true}]}]}
"""
ADMIT = """  steps:
  - admit: {pod: a, spec: {containers: [{name: b, resources: {limits: 4}}]}}
"""
ON = ("--machine", "laptop-4c8t")


@pytest.mark.parametrize(
    ("written", "line", "said"),
    [
        ("  steps: []\n", 5, "a case needs a step"),
        ("  steps:\n" + "  - state: {}\n" * 1001, 5, "1,001 steps, more than 1,000"),
        (f"  kubernetes: '?'\n{STEPS}", 5, "is not a release"),
        (f"  machines: {{where: 'cpus >'}}\n{STEPS}", 2, "case own: machines: 'cpus >'"),
        (f"  machines: {{cpus: '> x'}}\n{STEPS}", 2, "'x' is not known here"),
        ("  steps:\n  - start: {kubernetes: NaN}\n", 6, "'NaN' is not a release such as"),
        (f"  let: {{a: '1 +'}}\n{STEPS}", 2, "case own: '1 +'"),
        (f"  let: {{a: 'all < 1'}}\n{STEPS}", 2, "case own: 'all < 1'"),
        (f"  devices: {{a/b: '${{1 / 0}}'}}\n{STEPS}", 2, "case own: "),
        (
            MERGE,
            7,
            "case own, step 2: Expected a NUMA set",
        ),
        (
            ADMIT,
            6,
            "spec.containers[0].resources.limits must be a mapping",
        ),
        ("  steps:\n  - admit: {pod: a, spec: {containers: 4}}\n", 6, "must be a list"),
        ("  steps:\n  - admit: {pod: a, spec: {containers: [4]}}\n", 6, "mapping with a name"),
    ],
)
@pytest.mark.parametrize("way", ["replay", "check", "show"])
def test_what_is_wrong_with_a_case_is_said_with_file_and_line(
    command: Command, tmp_path: Path, way: str, written: str, line: int, said: str
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(HEAD + written)
    given: dict[str, tuple[str | Path, ...]] = {
        "replay": ("replay", file),
        "check": ("check", "--cases", file, "--select", "own"),
        "show": ("case", "show", "own", "--cases", file),
    }
    ended = command(*given[way], *ON)
    assert ended.code == 2
    assert f"{file}:{line}: " in ended.err
    assert said in ended.err
