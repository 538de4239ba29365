"""Builds the adapter with Go's coverage instrumentation and reads its counters."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from statements import MANAGERS

ADAPTER = Path(__file__).resolve().parent.parent

_INSTRUMENTED = (
    "numaproof/adapters/kubelet",
    *(f"{MANAGERS}{name}/..." for name in ("cpumanager", "memorymanager", "topologymanager")),
    f"{MANAGERS}devicemanager",
)

NO_GO = "skipped: building the kubelet adapter needs Go\n"


def newest() -> str:
    """Returns the newest release that the adapter supports."""
    found = (ADAPTER / "releases").glob("*.mod")
    return max((file.stem for file in found), key=lambda name: [int(n) for n in name.split(".")])


def build(release: str, program: Path) -> None:
    """Builds the adapter for a release; measures coverage of its own code and the managers'.

    The counters are atomic, because only atomic ones can be cleared while the program runs.
    """
    flags = ("-cover", "-covermode=atomic", f"-coverpkg={','.join(_INSTRUMENTED)}")
    run([str(ADAPTER / "build.sh"), release, str(program), *flags])


def profile(counters: Path) -> str:
    """Returns the merged counters of a folder as a Go text profile."""
    return run([_covdata(), "textfmt", f"-i={counters}", "-o=/dev/stdout"])


def module(release: str) -> tuple[Path, str]:
    """Returns the source folder of a release and its version."""
    listed = run(
        ["go", "list", "-m", "-json", f"-modfile=releases/{release}.mod", "k8s.io/kubernetes"]
    )
    found: dict[str, Any] = json.loads(listed)
    return Path(found["Dir"]), found["Version"]


def run(command: list[str]) -> str:
    """Returns the output of a command; exits with the command's error if it fails."""
    ended = subprocess.run(  # noqa: S603 - our own command
        command, cwd=ADAPTER, check=False, capture_output=True, text=True
    )
    if ended.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {ended.returncode}\n{ended.stderr}")
    return ended.stdout


@cache
def _covdata() -> str:
    return run(["go", "tool", "-n", "covdata"]).strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Builds the adapter with counters.")
    parser.add_argument("release", help="minor release, such as 1.37")
    parser.add_argument("program", type=Path, help="file to write")
    options = parser.parse_args()
    if shutil.which("go") is None:
        sys.exit(NO_GO.rstrip())
    build(options.release, options.program.resolve())
