"""Selects scenarios to record by the code they reach in the kubelet's managers.

Builds the adapter with Go's coverage instrumentation, plays the scenarios of many seeds on it, and
notes which statements each one reaches. Prints the seeds for `numaproof record --seeds`: first a
few that together reach everything that any scenario reaches, then the lowest of the others.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import building
from cover import as_ranges, fill_up, from_ranges, smallest_cover
from statements import reached_blocks

from numaproof.conformance.differential import recordings
from numaproof.conformance.execution.implementation import ImplementationFailure, handshake
from numaproof.conformance.execution.run import Target
from numaproof.conformance.execution.subprocesses import Subprocess
from numaproof.workdir.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_TIMEOUT = 30.0
_PROGRESS_EVERY = 100
"""How many scenarios to play between progress messages."""


def play(
    command: str, seeds: Iterable[int], read: Callable[[Path], str] = building.profile
) -> Iterator[tuple[int, frozenset[str]]]:
    """Yields what the scenario of each seed reaches, if it can be recorded.

    The program writes and clears its counters whenever it answers `hello`.

    Args:
        command: the instrumented adapter.
        seeds: the seeds of the scenarios.
        read: merges the counters in a folder into Go's text format.
    """
    with tempfile.TemporaryDirectory() as folder, scratch_folder() as scratch:
        counters = Path(folder)
        words = ("env", f"GOCOVERDIR={folder}", *shlex.split(command))
        program = Subprocess(words, _TIMEOUT)
        hello = handshake(program, "reach")
        target = Target(program, hello, hello.kubernetes[-1], hello.level)
        for seed in seeds:
            _clear(counters)
            try:
                kept = recordings.record_seed(target, seed, scratch)
            except ImplementationFailure:
                kept = None
            handshake(program, "reach")
            if kept is not None:
                yield seed, reached_blocks(read(counters))
        program.close()


def _clear(counters: Path) -> None:
    for file in counters.glob("covcounters.*"):
        file.unlink()


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    newest = os.environ.get("NUMAPROOF_KUBELET") or building.newest()
    parser.add_argument("--release", default=newest)
    parser.add_argument("--seeds", type=from_ranges, default="0:1500", help="seeds to choose from")
    parser.add_argument(
        "--least", type=int, default=400, help="total number of scenarios to choose (default: 400)"
    )
    parser.add_argument(
        "--program", type=Path, help="use this instrumented adapter instead of building one"
    )
    options = parser.parse_args()
    if shutil.which("go") is None:
        sys.stdout.write(building.NO_GO)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = options.program or Path(folder) / "kubelet"
        if options.program is None:
            building.build(options.release, program)
        found: dict[int, frozenset[str]] = {}
        for number, (seed, names) in enumerate(play(f"{program} -v=-1", options.seeds), 1):
            found[seed] = names
            if not number % _PROGRESS_EVERY:
                sys.stderr.write(f"{number} scenarios played\n")
    chosen = smallest_cover(found)
    kept = fill_up(chosen, found, options.least)
    sys.stderr.write(
        f"Kubernetes {options.release}: {len(found):,} scenarios reach"
        f" {len(frozenset().union(*found.values())):,} blocks of statements;"
        f" a set of {len(chosen)} reaches the same: {as_ranges(chosen)}\n"
    )
    sys.stdout.write(as_ranges(kept) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
