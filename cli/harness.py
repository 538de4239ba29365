"""Runs the harness for a command: opens the target and reports its events."""

from __future__ import annotations

import os
import shlex
import sys
import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from numaproof.cli.outputs import REPORTS, follow
from numaproof.cli.targets import open_target
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import NEWEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.protocol.events import AnyEvent


def command_line(extra_options: Iterable[str] = ()) -> str:
    """Returns the command as typed, plus the options needed to repeat the same run."""
    from numaproof.inputs.shell_words import quote_words

    return quote_words(["numaproof", *sys.argv[1:], *extra_options])


def out_options(command: str, out: Path) -> tuple[str, ...]:
    """Returns options that keep a suggested command from overwriting this report.

    Args:
        command: the suggested command's name.
        out: this report's folder.
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
    """Runs the harness, reports the run and returns the exit code.

    Reports of an earlier run are replaced as soon as this one begins, not if its options are wrong.
    If the program does not answer `hello`, the report contains only that failure.

    Args:
        make: starts the run; called after the target is open.
        target: the values of `targets.target_options`.
        out: the folder for the reports.
        as_json: whether to print the summary as JSON.
        extra_options: options to add to the typed command so that it repeats the same run.
        calls: whether to show every call.
        findings: the id prefix of the case files that the command writes; empty for none.
        afterwards: called with all events of the run.
        files: the files that cases come from, by case id; all other cases are bundled.
        repeat: how many times to play each case.

    Raises:
        click.ClickException: the options do not fit the implementation or each other.
    """
    from numaproof.cli.metadata import VERSION
    from numaproof.cli.origin import origin_of
    from numaproof.conformance.execution.harness_run import (
        FailedHandshake,
        HarnessRun,
        timeout_options,
    )
    from numaproof.conformance.execution.implementation import ImplementationFailure
    from numaproof.conformance.requirements import load_registry
    from numaproof.workdir.scratch import require_scratch

    began = time.monotonic()
    origin = origin_of(os.environ)
    require_scratch()
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
                host=host_of(opened.command),
                origin=origin,
            )
            events = make(harness_run)
            first = next(events)
            return report(chain((first,), events), calls=calls)
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
            origin=origin,
        )
        return report(failed.events())


def host_of(command: Sequence[str]) -> str:
    """Describes the host if the program is a kubelet, which depends on it."""
    from numaproof.conformance.execution import kubelet_command

    if not kubelet_command.options(command):
        return ""
    from numaproof.kubelet.host import description

    return description()


def _hello_command(target: Mapping[str, Any], again: str) -> str:
    """Returns a command that reproduces a failed `hello`; `again` if there are several programs."""
    from numaproof.conformance.execution import kubelet_command
    from numaproof.conformance.execution.harness_run import timeout_options
    from numaproof.inputs.shell_words import quote_words

    program = target["implementation"]
    if not isinstance(program, str):
        return again
    words = kubelet_command.options(shlex.split(program)) or (program,)
    return quote_words(("numaproof", "doctor", *timeout_options(target["timeout"]), *words))
