"""A process that checks references: it forks a child for each, which plays checks until one fails.

    python judge.py survey GLOB FILE   every check on the unmutated reference, with what it reaches
    python judge.py serve              reads lines ``PLAN OUTPUT``; answers each with an exit code

It runs in a tree, with the package on its path that is to be mutated. What does not depend on the
reference is loaded once, before the first fork; a child loads the rest, as it is on disk then. A
plan has a line for each check: its limit in seconds of processor time, and its name. A child
writes the name of each check that it begins, and ``FAILED`` and a name where one failed; its exit
code is 1 then. A check beyond its limit ends the child by a signal, which no endless loop puts off.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis  # noqa: F401 - loaded once, for all children
import pytest  # noqa: F401

from numaproof.conformance.cases import loading
from numaproof.conformance.requirements import load_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MEMORY = 4 << 30
"""Bytes that a mutation may make the reference take."""

_LOADING = 60.0
"""Seconds that importing the package may take, and finding the tests."""


def loaded() -> tuple[Any, Any]:
    """The cases by id and the requirements: all that needs no reference."""
    made = {case.id: case for case in loading.bundled_cases()}, load_registry()
    assert not any(name.startswith("numaproof.reference") for name in sys.modules)
    return made


def attempt(plan: list[tuple[float, str]], scratch: Path, cases: Any, registry: Any) -> str | None:
    """The first check of a plan that fails; None where all pass. Tests come when all else has."""
    _begin("import", _LOADING)
    import checks  # noqa: PLC0415 - a mutated package may fail to be imported, within the limits

    suite = checks.MutationSuite(cases, registry, scratch)
    tests = {}
    for seconds, name in plan:
        if name.startswith("test "):
            tests[name] = seconds
            continue
        _begin(name, seconds)
        if not suite.passes(name):
            return name
    if not tests:
        return None
    _begin("collection", _LOADING)
    with redirect_stdout(sys.stderr):
        return checks.run_tests(Path.cwd(), list(tests), lambda name: _begin(name, tests[name]))


def survey(pattern: str, scratch: Path) -> dict[str, Any]:
    """What every check costs and which lines of the reference it reaches.

    Returns:
        ``costs`` in seconds by name, in the order of running; ``reached``: for each module, below
        the reference's folder, and each of its lines that runs after import the numbers of the
        checks in that order.

    Raises:
        SystemExit: a check fails, so that there is nothing to measure mutations by.
    """
    import coverage  # noqa: PLC0415 - not where mutations are tried

    given = loaded()
    packages = ["numaproof.reference"]
    tracer = coverage.Coverage(data_file=None, config_file=False, source_pkgs=packages)
    tracer.start()
    import checks  # noqa: PLC0415 - what importing alone reaches is to be told from the rest

    suite, costs = checks.MutationSuite(*given, scratch), {}
    running, began = "", 0.0

    def turn(name: str) -> None:
        nonlocal running, began
        now = time.process_time()
        costs[running] = now - began
        _forget()
        tracer.switch_context(name)
        running, began = name, now
        _tell(name)

    for machine in suite.machines.values():
        turn(f"machine {machine.name}")
        _ = machine.facts
    turn("")
    for name in [name for name in suite.names() if fnmatchcase(name, pattern)]:
        turn(name)
        if not suite.passes(name):
            sys.exit(f"without any mutation this fails: {name}")
    turn("")
    with redirect_stdout(sys.stderr):
        failed = checks.run_tests(Path.cwd(), None, turn, pattern)
    turn("")
    tracer.stop()
    if failed:
        sys.exit(f"without any mutation this fails: {failed}")
    costs = {name: cost for name, cost in costs.items() if name and not name.startswith("machine ")}
    return {"costs": costs, "reached": _reached(tracer, list(costs))}


def _forget() -> None:
    """Empties the caches of the reference, lest a check reaches less for one before it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("numaproof.reference"):
            for value in vars(module).values():
                clear: Callable[[], None] | None = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()


def _reached(tracer: Any, names: list[str]) -> dict[str, dict[int, list[int]]]:
    """The numbers of the checks that reach each line; a machine's discovery is for all on it."""
    users: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        users.setdefault(name, []).append(number)
        if name.startswith("case "):
            users.setdefault(f"machine {name.split(' ')[3]}", []).append(number)
    data = tracer.get_data()
    return {
        file.partition("/numaproof/reference/")[2]: {
            line: sorted({number for name in contexts for number in users.get(name, ())})
            for line, contexts in data.contexts_by_lineno(file).items()
            if any(contexts)
        }
        for file in data.measured_files()
    }


def serve() -> None:
    """Forks a child for each line on standard input."""
    cases, registry = loaded()
    for line in sys.stdin:
        plan, output = line.split()
        child = os.fork()
        if not child:
            _child(Path(plan), Path(output), cases, registry)
        _, status = os.waitpid(child, 0)
        _tell(str(os.waitstatus_to_exitcode(status)))


def _child(plan: Path, output: Path, cases: Any, registry: Any) -> None:
    """Plays a plan and ends the process."""
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, sys.stdout.fileno())
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    code = 2
    try:
        with tempfile.TemporaryDirectory(prefix="mutant-", dir=output.parent) as folder:
            lines = plan.read_text(encoding="utf-8").splitlines()
            failed = attempt(read_plan(lines), Path(folder), cases, registry)
        if failed:
            _tell(f"FAILED {failed}")
        code = 1 if failed else 0
    except BaseException as error:  # noqa: BLE001 - whatever a mutation makes of an import
        _tell(f"FAILED {type(error).__name__}: {error}".replace("\n", " "))
    finally:
        os._exit(code)


def _begin(name: str, seconds: float) -> None:
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    _tell(name)


def _tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def read_plan(lines: Iterable[str]) -> list[tuple[float, str]]:
    """The limits and names of a plan's checks."""
    parts = (line.partition(" ") for line in lines)
    return [(float(seconds), name) for seconds, _, name in parts]


def main(arguments: list[str]) -> int:
    """The command."""
    if arguments == ["serve"]:
        serve()
        return 0
    _, pattern, file = arguments
    with tempfile.TemporaryDirectory(prefix="numaproof-mutation-") as folder:
        found = survey(pattern, Path(folder))
    Path(file).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
