"""One run of the harness: the target opened, its events reported, the exit code."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from numaproof.cli.outputs import REPORTS, follow
from numaproof.cli.targets import open_target
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import NEWEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.events import AnyEvent


def command_line(extra_options: Iterable[str] = ()) -> str:
    """The command as the user typed it, with what it takes to do the same again `extra_options`."""
    from numaproof.inputs.shell_words import quote_words

    return quote_words(["numaproof", *sys.argv[1:], *extra_options])


def out_options(command: str, out: Path) -> tuple[str, ...]:
    """The options with which a printed command does not write to the folder of this report.

    Args:
        command: the name of the printed command.
        out: the folder of the report.
    """
    same = os.path.realpath(REPORTS / command) == os.path.realpath(out)
    return ("--out", f"{out}-again") if same else ()


def run_harness(
    make: Callable[[HarnessRun], Iterator[AnyEvent]],
    target: Mapping[str, Any],
    out: Path,
    *,
    as_json: bool,
    extra_options: Iterable[str] = (),
    calls: bool = False,
    findings: str = "",
    afterwards: Callable[[tuple[AnyEvent, ...]], None] | None = None,
    files: Mapping[str, str] | None = None,
    repeat: int = 1,
) -> int:
    """Runs a campaign and reports it; the exit code.

    Reports of an earlier run are removed first. The report of an implementation that does not
    answer `hello` says so and nothing else.

    Args:
        make: starts the run; called once the target is open.
        target: the values of `targets.target_options`.
        out: the folder of the reports.
        as_json: whether the summary is printed as JSON.
        extra_options: what the command needs besides what was typed to do the same again.
        calls: whether to show every call.
        findings: the id of the cases that the command writes to the folder; empty for none.
        afterwards: called with all events of the run.
        files: where cases were read from, by their ids; those that are not in it are bundled.
        repeat: how often each case is played.

    Raises:
        click.ClickException: the options do not fit the implementation, or each other.
    """
    from numaproof.cli.metadata import VERSION
    from numaproof.conformance.execution.harness_run import (
        FailedHandshake,
        HarnessRun,
        timeout_options,
    )
    from numaproof.conformance.execution.implementation import ImplementationFailure
    from numaproof.conformance.requirements import load_registry
    from numaproof.reports.files import clear_reports
    from numaproof.workdir.scratch import require_scratch

    began = time.monotonic()
    require_scratch()
    clear_reports(out)
    again = command_line((*extra_options, "--out", f"{out}-again"))
    report = partial(follow, out=out, as_json=as_json, findings=findings, afterwards=afterwards)
    registry = load_registry()
    try:
        with open_target(**target) as opened:
            harness_run = HarnessRun(
                opened,
                registry,
                command_line(extra_options),
                VERSION,
                files or {},
                (
                    *timeout_options(target["timeout"]),
                    *(("--repeat", str(repeat)) if repeat > 1 else ()),
                    *out_options("replay", out),
                ),
                again,
                began=began,
            )
            return report(make(harness_run), calls=calls)
    except ImplementationFailure as failure:
        failed = FailedHandshake(
            failure=failure,
            registry=registry,
            command=command_line(extra_options),
            reproduce=_hello_command(target, again),
            version=VERSION,
            kubernetes=target["kubernetes"] or NEWEST,
            level=target["level"] or LEVELS[-1],
            seconds=time.monotonic() - began,
        )
        return report(failed.events())


def _hello_command(target: Mapping[str, Any], again: str) -> str:
    """The command that shows how a program fails to answer `hello`; `again` if it has several."""
    from numaproof.conformance.execution.harness_run import timeout_options
    from numaproof.inputs.shell_words import quote_words

    program = target["implementation"]
    if not isinstance(program, str):
        return again
    return quote_words(("numaproof", "doctor", *timeout_options(target["timeout"]), program))
