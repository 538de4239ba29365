"""Measures how much of the kubelet's managers the suite covers, in statements per package.

Builds the adapter with Go's coverage instrumentation, runs `numaproof check`, the calls in
`calls.yaml` and `numaproof fuzz` against it, and reports every statement that was not reached.
`unreached.yaml` lists statements that no call of the protocol can reach, with reasons. All other
unreached statements are open. The exit code is 0 if every package reaches its goal or has no open
statements.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import building
from overview import with_tables
from reasons import read_reasons
from report import ReachReport
from statements import GoSource, read_profile

HERE = Path(__file__).resolve().parent


def run(release: str, out: Path, machines: list[str], examples: int, seed: int) -> None:
    """Builds the instrumented adapter and runs the suite on it; writes only below `out`."""
    shutil.rmtree(out, ignore_errors=True)
    counters = out / "counters"
    counters.mkdir(parents=True)
    program = out / "kubelet"
    building.build(release, program)
    target = ("--implementation", f"{program} -v=-1", "--kubernetes", release, "--timeout", "15s")
    environment = {**os.environ, "GOCOVERDIR": str(counters)}
    chosen = [word for name in machines for word in ("--machine", name)]
    _play(["-m", "numaproof", "check", *target, *chosen, "--out", str(out / "check")], environment)
    _play([str(HERE / "calls.py"), f"{program} -v=-1"], environment)
    if examples:
        budget = ("--examples", str(examples), "--seed", str(seed))
        _play(
            ["-m", "numaproof", "fuzz", *target, *budget, "--out", str(out / "fuzz")], environment
        )


def measure(release: str, out: Path) -> ReachReport:
    """Returns the coverage of a run from the counters below `out`."""
    blocks = read_profile(building.profile(out / "counters"))
    folder, version = building.module(release)
    sources = {
        file: GoSource((folder / "pkg/kubelet/cm" / file).read_text(encoding="utf-8").splitlines())
        for file in {block.file for block in blocks}
    }
    reasons = read_reasons((HERE / "unreached.yaml").read_text(encoding="utf-8"))
    return ReachReport(release, version, blocks, sources, reasons, effort(out / "check"))


def effort(check: Path) -> str:
    """Summarizes how much of the suite ran and how it ended, from the run's events."""
    first, *_, last = (check / "events.jsonl").read_text(encoding="utf-8").splitlines()
    machines = len(json.loads(first)["machines"])
    outcomes: dict[str, int] = json.loads(last)["outcomes"]
    ends = sorted(outcomes.items(), key=lambda item: -item[1])
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in ends)
    return (
        f"\nfrom {sum(outcomes.values()):,} case runs on {machines} machines ({told}), the calls in"
        " `calls.yaml`, and fuzzing"
    )


def write(report: ReachReport, docs: Path) -> None:
    """Writes the release's page and the tables of all releases that have one."""
    folder = docs / "coverage"
    (folder / f"{report.release}.md").write_text(report.page(), encoding="utf-8")
    pages = {file.stem: file.read_text(encoding="utf-8") for file in folder.glob("*.md")}
    overview = docs / "coverage.md"
    text = with_tables(overview.read_text(encoding="utf-8"), pages)
    overview.write_text(text, encoding="utf-8")


def _play(arguments: list[str], environment: dict[str, str]) -> None:
    """Runs Python. Failures of the suite appear in its own report, not in this one."""
    command = [sys.executable, *arguments]
    ended = subprocess.run(command, env=environment, check=False)  # noqa: S603 - our own command
    if ended.returncode not in {0, 1}:
        sys.exit(ended.returncode)


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--release", default=os.environ.get("NUMAPROOF_KUBELET") or building.newest()
    )
    parser.add_argument("--out", type=Path, default=Path("numaproof-coverage"))
    parser.add_argument(
        "--again", action="store_true", help="only read the counters already in OUT"
    )
    parser.add_argument(
        "--machine", action="append", default=[], help="use only this machine (repeatable)"
    )
    parser.add_argument(
        "--examples", type=int, default=300, help="number of fuzzing examples (default: 300)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed for fuzzing (default: 1)")
    parser.add_argument(
        "--pages", type=Path, help="write coverage/RELEASE.md and coverage.md to this folder"
    )
    options = parser.parse_args()
    if shutil.which("go") is None:
        sys.stdout.write(building.NO_GO)
        return 0
    out = options.out.resolve()
    if not options.again:
        run(options.release, out, options.machine, options.examples, options.seed)
    report = measure(options.release, out)
    sys.stdout.write(report.text())
    if options.pages:
        write(report, options.pages)
    return 0 if all(package.good for package in report.packages()) else 1


if __name__ == "__main__":
    sys.exit(main())
