"""Builds and checks the adapters of other implementations.

    python adapters/others.py --out DIR [NAME ...]

An adapter is a folder with a build.sh, which builds the program into a folder, or prints what it
needs and exits with code 77. Each adapter is checked as far as its claims allow: with the cases,
by fuzzing if nodes or calls can be generated, and with every assignment on small machines
(assignments.py). Reports go to DIR/NAME. A file run.yaml in the adapter's folder adds options to
parts of its run: `check: --timeout 60s`. The exit code is 1 if anything failed that isn't listed
in the adapter's known-failures.yaml or assignments.yaml. Skipped adapters don't count as failures.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HERE = Path(__file__).parent
APART = ("common", "kubelet")
"""Folders that aren't checked: shared code, and the kubelet (see `tox run -e kubelet`)."""

SKIPPED = 77
STEPS_OF_AN_EXAMPLE = 9
"""The minimum number of examples for allocators."""
FUZZED = frozenset({"start", "merge", "assign"})
KNOWN = "known-failures.yaml"
OPTIONS = "run.yaml"
GREETING = {"id": 0, "op": "hello", "args": {"protocol": [1, 1], "harness": "numaproof"}}


@dataclass(frozen=True)
class PartResult:
    """How part of an adapter's run ended."""

    what: str
    good: bool
    message: str


def adapters() -> list[str]:
    """Returns the names of all adapters except the kubelet's."""
    return sorted(
        one.parent.name for one in HERE.glob("*/build.sh") if one.parent.name not in APART
    )


def build(name: str, out: Path) -> str | None:
    """Builds an adapter; returns why it was skipped, or None.

    Raises:
        subprocess.CalledProcessError: the build failed.
    """
    command = [str(HERE / name / "build.sh"), str(out)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if ended.returncode == SKIPPED:
        return ended.stderr.strip().removeprefix("skipped: ") or "no reason given"
    sys.stderr.write(ended.stderr)
    ended.check_returncode()
    return None


def hello(program: Path) -> dict[str, Any]:
    """Returns an adapter's claims."""
    ended = subprocess.run(  # noqa: S603 - what was built
        [str(program)],
        input=json.dumps(GREETING) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    claims: dict[str, Any] = json.loads(ended.stdout)["ok"]
    return claims


def commands(
    name: str, program: Path, claims: dict[str, Any], out: Path, steps: int
) -> Iterator[tuple[str, list[str]]]:
    """Returns the commands for an adapter, by the names of their report folders."""
    folder = HERE / name
    options = yaml.safe_load((folder / OPTIONS).read_text()) if (folder / OPTIONS).exists() else {}
    more = {part: shlex.split(words) for part, words in options.items()}
    known = ["--known-failures", str(folder / KNOWN)] if (folder / KNOWN).exists() else []
    numaproof = [sys.executable, "-m", "numaproof"]
    asked = ["--implementation", shlex.quote(str(program))]
    operations = frozenset(claims["operations"])
    check = [*asked, *known, *more.get("check", ())]
    yield "check", [*numaproof, "check", *check, "--out", str(out / "check")]
    if operations & FUZZED:
        examples = ["--examples", str(-(-steps // STEPS_OF_AN_EXAMPLE)), "--seed", "1"]
        fuzz = [*asked, *known, *examples, *more.get("fuzz", ())]
        yield "fuzz", [*numaproof, "fuzz", *fuzz, "--out", str(out / "fuzz")]
    if "assign" in operations:
        expected = folder / "assignments.yaml"
        named = ["--expected", str(expected)] if expected.exists() else []
        script = [sys.executable, str(HERE / "assignments.py")]
        yield "assign", [*script, *asked, *named, "--out", str(out / "assign")]


def run(name: str, out: Path, steps: int) -> Iterator[PartResult]:
    """Builds and checks one adapter."""
    try:
        reason = build(name, out / "program")
        if reason:
            yield PartResult("skipped", good=True, message=reason)
            return
        program = out / "program" / "run"
        claims = hello(program)
    except (subprocess.CalledProcessError, OSError, ValueError, KeyError) as error:
        yield PartResult("build", good=False, message=str(error))
        return
    for what, command in commands(name, program, claims, out, steps):
        ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        (out / f"{what}.log").write_text(ended.stdout + ended.stderr, encoding="utf-8")
        yield PartResult(
            what, good=ended.returncode == 0, message=verdict(ended.stdout + ended.stderr)
        )


def verdict(output: str) -> str:
    """Returns the line of a run's output that summarizes it."""
    words = ("Passed", "Failed", "Nothing", "Incomplete")
    lines = output.strip().splitlines() or ["it printed nothing"]
    return next((one for one in reversed(lines) if one.startswith(words)), lines[-1])


def show(line: str) -> None:
    """Prints a line immediately, because the next one may take minutes."""
    print(line, flush=True)  # noqa: T201 - its output


def main(words: Sequence[str] | None = None, report_line: Callable[[str], object] = show) -> int:
    """Checks the given adapters, or all of them, and prints a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="adapters to run (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path("others"), help="folder for the reports (default: others)"
    )
    parser.add_argument(
        "--steps", type=int, default=10_000, help="number of fuzzing steps (default: 10000)"
    )
    asked = parser.parse_args(words)
    unknown = sorted({*asked.names} - {*adapters()})
    if unknown:
        parser.error(f"no adapter {', '.join(unknown)}; the adapters are {', '.join(adapters())}")
    failed = False
    for name in asked.names or adapters():
        out = asked.out.resolve() / name
        out.mkdir(parents=True, exist_ok=True)
        for ended in run(name, out, asked.steps):
            failed |= not ended.good
            word = "skipped" if ended.what == "skipped" else "agrees" if ended.good else "differs"
            part = "" if ended.what == "skipped" else f" {ended.what}:"
            report_line(f"{name}: {word}{part} {ended.message}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
