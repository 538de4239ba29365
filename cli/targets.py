"""The options that choose the program under test, and functions that open it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from numaproof.cli.choice import Choice, ReleaseChoice
from numaproof.protocol.events import BASELINE_CHOICES, BaselineChoice
from numaproof.protocol.messages import LEVELS, Level
from numaproof.protocol.releases import NEWEST, RELEASES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numaproof.conformance.execution.run import Target
    from numaproof.kubelet.binary import Kubelet


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """A positive duration such as ``0.5``, ``90s``, ``5m`` or ``1h``, in seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Returns the duration in seconds."""
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([smh]?)", str(value))
        if match is None or not float(match[1]):
            self.fail(
                f"{value!r} is not a duration; expected one such as 90s, 5m or 1h", param, ctx
            )
        return float(match[1]) * _UNITS[match[2]]


class SeedRangeParam(click.ParamType[range]):
    """Seeds ``A:B``, from A up to but excluding B; there may be billions."""

    name = "A:B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """Returns the seeds, in order."""
        if isinstance(value, range):
            return value
        first, _, stop = str(value).partition(":")
        try:
            seeds = range(int(first), int(stop))
        except ValueError:
            self.fail(f"{value!r} is not a range of seeds; expected one such as 0:1000", param, ctx)
        if seeds.start < 0:
            self.fail(f"{value!r} contains negative seeds; start at 0 or more", param, ctx)
        if not seeds:
            self.fail(f"{value!r} contains no seeds; put the lower bound first", param, ctx)
        return seeds


class SeedsParam(click.ParamType["Sequence[int]"]):
    """Seed ranges ``A:B`` and single seeds, separated by commas."""

    name = "A:B,C,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Sequence[int]:
        """Returns the seeds in the given order, without duplicates."""
        if not isinstance(value, str):
            return list(value)
        seeds: dict[int, None] = {}
        for part in value.split(","):
            alone = part.isdecimal()
            found = [int(part)] if alone else SeedRangeParam().convert(part, param, ctx)
            seeds |= dict.fromkeys(found)
        return list(seeds)


F = TypeVar("F", bound=Callable[..., Any])


def all_of(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Combines options into one decorator, in order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def release_choice(*names: str, help: str, **more: Any) -> Callable[[F], F]:  # noqa: A002 - as click
    """Returns an option for a Kubernetes release, named --kubernetes by default."""
    names = names or ("--kubernetes",)
    return click.option(*names, type=ReleaseChoice(RELEASES), help=help, **more)


def level_option(help: str, levels: Sequence[Level] = LEVELS) -> Callable[[F], F]:  # noqa: A002
    """Returns the option for a level."""
    return click.option("--level", type=Choice(levels), help=help)


def program_option(help: str, *names: str, **more: Any) -> Callable[[F], F]:  # noqa: A002
    """Returns an option for a program's command, named --implementation by default."""
    names = names or ("--implementation",)
    return click.option(*names, metavar='"CMD ..."', help=help, **more)


def kubelet_options(**programs: str) -> Callable[[F], F]:
    """Returns options for kubelet binaries, which replace programs.

    Args:
        programs: by parameter of an option for a kubelet: the parameter of the program that it
            replaces.
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def choose(**values: Any) -> Any:
            from numaproof.conformance.execution import kubelet_command

            arguments = values.pop("kubelet_arguments")
            paths = {kubelet: values.pop(kubelet) for kubelet in programs}
            if arguments and not any(paths.values()):
                raise click.UsageError(
                    "--kubelet-arg needs --kubelet; add it or remove the argument"
                )
            release = _only_release(values) if any(paths.values()) else None
            chosen = {}
            for kubelet, path in paths.items():
                option, program = f"--{_option_name(kubelet)}", programs[kubelet]
                if path is None:
                    continue
                if values[program]:
                    options = f"--{_option_name(program)} and {option}"
                    raise click.UsageError(f"{options} exclude each other; remove one")
                chosen[option] = find_kubelet(path, release, option)
                command_line = shlex.join(kubelet_command.command(path, arguments, release))
                given = values[program]
                values[program] = (command_line,) if isinstance(given, tuple) else command_line
            for option, binary in chosen.items():
                _try_start(option, binary, arguments, values["timeout"])
            return command(**values)

        path = click.Path(exists=True, dir_okay=False)
        wrapped = choose
        for kubelet, program in reversed(programs.items()):
            help_text = f"Kubelet binary, instead of --{_option_name(program)}."
            wrapped = click.option(f"--{_option_name(kubelet)}", type=path, help=help_text)(wrapped)
        return cast("F", kubelet_argument_option(wrapped))

    return decorate


def _require_arguments(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """Checks that arguments leave the kubelet on the node on which it is tested."""
    if value:
        from numaproof.kubelet import settings

        if problem := settings.conflict(value):
            raise click.BadParameter(problem, ctx, param)
    return value


kubelet_argument_option = click.option(
    "--kubelet-arg",
    "kubelet_arguments",
    callback=_require_arguments,
    metavar="FLAG",
    multiple=True,
    help="Flag to add to the kubelet's command line. Repeatable.",
)


def _option_name(parameter: str) -> str:
    return parameter.replace("_", "-")


def _only_release(options: Mapping[str, Any]) -> str | None:
    """The release that the options name, if they name one.

    Raises:
        click.UsageError: they name several, as only those of a campaign can.
    """
    named = {*options.get("releases", ()), options.get("kubernetes")} - {None}
    if len(named) > 1:
        raise click.UsageError("a kubelet is checked as one release; give --kubernetes only once")
    return next(iter(named), None)


def find_kubelet(path: str, release: str | None, option: str) -> Kubelet:
    """Identifies a kubelet, and notes if it is checked as another release than its own.

    Raises:
        click.ClickException: it can't run here.
    """
    from numaproof.kubelet import host
    from numaproof.kubelet.binary import BinaryError, identify

    for problem in host.problems():
        raise click.ClickException(f"{option}: {problem}")
    try:
        kubelet = identify(Path(path).resolve(), release)
    except BinaryError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    if not kubelet.has_own_release:
        click.echo(
            f"numaproof: {path} is Kubernetes {kubelet.version}; its answers are compared with"
            f" those of {kubelet.release}",
            err=True,
        )
    return kubelet


def _try_start(option: str, kubelet: Kubelet, arguments: Sequence[str], timeout: float) -> None:
    """Starts a kubelet once, so that one that can't run here is one error, not one for each case.

    Raises:
        click.ClickException: it did not start.
    """
    from numaproof.cli.metadata import VERSION
    from numaproof.kubelet.trial import Trial, TrialError
    from numaproof.workdir.scratch import scratch_folder

    try:
        with scratch_folder() as scratch:
            Trial(kubelet, arguments, timeout, f"numaproof {VERSION}").start(scratch)
    except TrialError as error:
        said = (error.log.strip().splitlines() or [""])[-1]
        more = f": {said}" if said and said not in str(error) else ""
        raise click.ClickException(
            f"{option}: {kubelet.path}: {error}{more}; {error.fix}"
        ) from None


timeout_option = click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    help="Time limit for each call to the program (default: 30s).",
)


release_option = release_choice(default=NEWEST, help=f"Kubernetes release (default: {NEWEST}).")
baseline_option = click.option(
    "--baseline",
    "baseline",
    type=Choice(BASELINE_CHOICES),
    help="Which behaviour to expect where the kubelet contradicts its documentation (default:"
    " `kubelet` for level kubelet and for the reference; otherwise `either`).",
)
own_baseline_option = click.option(
    "--baseline",
    type=Choice(("documented", "kubelet")),
    default="kubelet",
    help="Which behaviour to show where the kubelet contradicts its documentation (default:"
    " `kubelet`).",
)


target_options = all_of(
    program_option("Program that speaks the protocol (default: the reference)."),
    kubelet_options(kubelet="implementation"),
    timeout_option,
    release_choice(
        help="Kubernetes release to test against (default: the newest that the program claims)."
    ),
    level_option("How closely to compare answers (default: the level that the program claims)."),
    baseline_option,
)
"""The options that `open_target` takes."""


@contextmanager
def open_target(
    implementation: str | Sequence[str] | None,
    timeout: float,
    kubernetes: str | None = None,
    level: Level | None = None,
    baseline: BaselineChoice | None = None,
    *,
    patient: bool = False,
) -> Iterator[Target]:
    """Opens the target named by the options; see `numaproof.conformance.opening`.

    Raises:
        click.ClickException: the options do not fit the implementation or each other.
        ImplementationFailure: the program did not answer `hello`.
    """
    from numaproof.cli.metadata import VERSION
    from numaproof.conformance import opening
    from numaproof.conformance.execution.implementation import CannotStartError

    harness = f"numaproof {VERSION}"
    options = opening.TargetOptions(implementation, timeout, kubernetes, level, baseline)
    try:
        with opening.open_target(options, harness, patient=patient) as target:
            yield target
    except CannotStartError as error:
        given = [implementation] if isinstance(implementation, str) else implementation or ()
        programs = [word for command in given for word in shlex.split(command)[:1]]
        failed = next((word for word in programs if repr(word) in str(error)), "")
        raise click.UsageError(f"{error}; {start_hint(failed)}") from None
    except opening.TargetError as error:
        if not error.choice:
            raise click.UsageError(str(error)) from None
        raise click.BadParameter(str(error), param_hint=f"--{error.choice}") from None


def start_hint(program: str) -> str:
    """Suggests how to fix a program that can't be started."""
    path = Path(program or "(unknown)")
    if path.is_dir():
        return "expected a program, not a directory"
    if path.exists() and "/" not in program:
        return f"for a file in this directory, write ./{program}"
    if path.exists() and not os.access(program, os.X_OK):
        return f"make it executable: chmod +x {program}"
    if path.exists():
        return "a script needs a first line such as #!/usr/bin/env python3"
    return "check the path" if "/" in program else "install it, or give its path"


@contextmanager
def report_failure(*, log: bool = False) -> Iterator[None]:
    """Turns a failure of the program into an error, for commands without a report.

    With `log`, the error includes the program's standard error.

    Raises:
        click.ClickException: the program failed.
    """
    from numaproof.conformance.execution.implementation import ImplementationFailure

    try:
        yield
    except ImplementationFailure as failure:
        more = f"\n{failure.stderr}" if log and failure.stderr else ""
        what = f"the implementation did not answer hello: {failure}{more}"
        raise click.ClickException(what) from None
