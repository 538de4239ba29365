"""Runs the Go test of every named defect with the kubelet's own packages.

    python adapters/kubelet/go_tests.py FOLDER [--select GLOB] [--release RELEASE ...]

The sources of each release are copied from Go's module cache to FOLDER, and the tests join the
kubelet's own tests in their packages. A test must compile, fail in the releases that have the
defect, and pass in later ones. The table is printed as Markdown; the exit code is 1 if a test does
not do so. The default releases are the two newest and, for each defect fixed before them, the last
that has it. A test that has no answer after TIMEOUT counts as failed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from numaproof import fakesys
from numaproof.conformance.cases import loading
from numaproof.conformance.execution.machines import ProfileMachine
from numaproof.conformance.go_tests.checks import NotExpressibleError
from numaproof.conformance.go_tests.generation import GoTest, first_machine, go_test
from numaproof.protocol.releases import RELEASES
from numaproof.reference.deviations.defects import DEFECTS
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numaproof.reference.deviations.deviation import Defect

HERE = Path(__file__).resolve().parent
FINDINGS = HERE.parents[1] / "docs" / "findings"
NEWEST = RELEASES[-2:]
TIMEOUT = 30
"""Seconds for one test; the longest that ends takes less than one."""

FAILURES = ("fails", "panics", "never ends")

_STAGING = re.compile(r"^\t(k8s\.io/\S+) v0\.0\.0$", re.MULTILINE)
_LOCAL = re.compile(r"^\tk8s\.io/\S+ => \./staging/.*\n", re.MULTILINE)
_REPLACED = re.compile(r"^\t(k8s\.io/\S+) => k8s\.io/\S+ (v\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """A defect in a release: its test, or why it has none, and how the test ended."""

    defect: Defect
    release: str
    test: GoTest | None
    ending: str

    @property
    def good(self) -> bool:
        """Whether the test ended as it must; true if the defect has no test."""
        endings = FAILURES if self.release in self.defect.releases else ("passes",)
        return self.test is None or self.ending in endings


def main() -> int:
    """Runs the tests and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--select", default="*", help="only defects whose names match this glob")
    parser.add_argument("--release", action="append", choices=RELEASES)
    options = parser.parse_args()
    if shutil.which("go") is None:
        sys.stdout.write("skipped: the kubelet's tests need Go\n")
        return 0
    defects = [one for one in DEFECTS if fnmatchcase(one.name, options.select)]
    rows = []
    for release in RELEASES:
        chosen = [one for one in defects if release in _releases(one, options.release)]
        if chosen:
            rows += _run(release, chosen, options.folder.resolve() / release)
    sys.stdout.writelines(f"{line}\n" for line in _table(defects, rows))
    return 0 if all(row.good for row in rows) else 1


def _releases(defect: Defect, requested: Sequence[str] | None) -> Sequence[str]:
    """Returns the releases in which to run a defect's test; none before the first that has it."""
    chosen = requested or sorted({*NEWEST, defect.releases[-1]})
    return [one for one in chosen if RELEASES.index(one) >= RELEASES.index(defect.releases[0])]


def _run(release: str, defects: Sequence[Defect], folder: Path) -> list[Row]:
    _copy_sources(release, folder)
    rows: list[Row] = []
    tests: dict[Defect, GoTest] = {}
    for defect, made in _tests(release, defects):
        if isinstance(made, GoTest):
            tests[defect] = made
        else:
            rows.append(Row(defect, release, None, made))
    for package in sorted({one.package for one in tests.values()}):
        here = {defect: one for defect, one in tests.items() if one.package == package}
        endings = _run_package(folder, package, here)
        rows += [Row(defect, release, one, endings[defect]) for defect, one in here.items()]
    return rows


def _copy_sources(release: str, folder: Path) -> None:
    """Copies a release's sources, which then require the staging modules by their versions."""
    if folder.exists():
        return
    modules = HERE / "releases" / f"{release}.mod"
    command = ["go", "list", "-m", "-json", f"-modfile={modules}", "k8s.io/kubernetes"]
    listed = json.loads(_checked(command, HERE))
    unfinished = folder.with_name(f"{release}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    workspace = shutil.ignore_patterns("go.work*", "vendor")
    shutil.copytree(listed["Dir"], unfinished, ignore=workspace)
    _checked(["chmod", "-R", "u+w", "."], unfinished)
    text = _LOCAL.sub("", (unfinished / "go.mod").read_text("utf-8"))
    staging = _STAGING.findall(text)
    # A few staging modules lack the release's own version.
    versions = {name: listed["Version"].replace("v1.", "v0.") for name in staging}
    versions |= {
        name: version
        for name, version in _REPLACED.findall(modules.read_text("utf-8"))
        if name in versions
    }
    replaced = "".join(f"\t{name} => {name} {one}\n" for name, one in versions.items())
    (unfinished / "go.mod").write_text(f"{text}\nreplace (\n{replaced})\n", "utf-8")
    with (unfinished / "go.sum").open("a", encoding="utf-8") as sums:
        sums.write(modules.with_suffix(".sum").read_text("utf-8"))
    unfinished.rename(folder)


def _tests(release: str, defects: Sequence[Defect]) -> Iterator[tuple[Defect, GoTest | str]]:
    """Yields each defect with its test, or the reason why it has none."""
    with scratch_folder() as trees:
        machines = [
            ProfileMachine(fakesys.load_profile(name), trees) for name in fakesys.bundled_profiles()
        ]
        for defect in defects:
            (case,) = loading.read_file(FINDINGS / f"{defect.name}.yaml")
            try:
                yield defect, go_test(case, first_machine(case, machines, release), release)
            except NotExpressibleError as error:
                yield defect, str(error)


def _run_package(folder: Path, package: str, tests: Mapping[Defect, GoTest]) -> dict[Defect, str]:
    """Builds the tests of a package together and runs them one by one, as some end the program."""
    files = [folder / package / f"numaproof_{number}_test.go" for number in range(len(tests))]
    program = folder.with_name(f"{folder.name}-{Path(package).name}.test")
    try:
        for file, test in zip(files, tests.values(), strict=True):
            file.write_text(test.text, "utf-8")
        build = ["go", "test", "-mod=mod", "-c", "-o", str(program), f"./{package}"]
        built = _ended(build, folder)
        if built.returncode:
            sys.stderr.write(built.stderr)
            return dict.fromkeys(tests, "does not compile")
    finally:
        for file in files:
            file.unlink(missing_ok=True)
    return {defect: _ending(program, test, folder / package) for defect, test in tests.items()}


def _ending(program: Path, test: GoTest, folder: Path) -> str:
    chosen = f"-test.run=^{test.function}$"
    command = [str(program), chosen, f"-test.timeout={TIMEOUT}s", "-test.v"]
    ended = _ended(command, folder)
    output = ended.stdout + ended.stderr
    if f"--- PASS: {test.function}" in output and ended.returncode == 0:
        return "passes"
    if "panic: test timed out" in output:
        return "never ends"
    if "panic: " in output:
        return "panics"
    return "fails" if f"--- FAIL: {test.function}" in output else "did not run"


def _ended(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        command, cwd=folder, check=False, capture_output=True, text=True
    )


def _checked(command: list[str], folder: Path) -> str:
    ended = _ended(command, folder)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {ended.returncode}\n{ended.stderr}")
    return ended.stdout


def _table(defects: Sequence[Defect], rows: Sequence[Row]) -> Iterator[str]:
    releases = [one for one in RELEASES if any(row.release == one for row in rows)]
    yield f"| defect | package | {' | '.join(releases)} | |"
    yield f"|{'---|' * (len(releases) + 3)}"
    for defect in defects:
        own = {row.release: row for row in rows if row.defect == defect}
        tests = [row.test for row in own.values() if row.test]
        package = Path(tests[0].package).name if tests else ""
        cells = [own[one].ending if one in own and tests else "" for one in releases]
        wrong = [one for one, row in own.items() if not row.good]
        note = f"wrong in {', '.join(wrong)}" if wrong else ""
        if not tests:
            note = next((row.ending for row in own.values()), "")
        yield f"| {defect.name} | {package} | {' | '.join(cells)} | {note} |"
    shown = {row.defect for row in rows if row.test}
    good = shown - {row.defect for row in rows if not row.good}
    yield ""
    without = len(defects) - len(shown)
    yield f"{len(good)} of {len(defects)} as they must be, {without} without a test"


if __name__ == "__main__":
    sys.exit(main())
