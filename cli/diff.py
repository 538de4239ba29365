"""`numaproof diff`: compares the answers of two implementations."""

from __future__ import annotations

import random
import shlex
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from numaproof.cli import targets
from numaproof.cli.choice import Choice, IntRange
from numaproof.cli.harness import host_of, out_options, run_harness
from numaproof.cli.machine_names import machines_option, named_machines
from numaproof.cli.outputs import FINDINGS, out_option
from numaproof.conformance.differential.diff_options import FILE, LIFE, START, TREE, TRIES, UPGRADE
from numaproof.protocol.messages import LEVELS
from numaproof.protocol.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numaproof.conformance.cases.schema import Case
    from numaproof.conformance.differential.diff import NamedScenario
    from numaproof.conformance.differential.diff_options import DiffOptions
    from numaproof.conformance.differential.lockstep import Pair
    from numaproof.conformance.execution.capabilities import Capabilities
    from numaproof.conformance.execution.harness_run import HarnessRun
    from numaproof.conformance.execution.run import Target
    from numaproof.protocol.events import AnyEvent
    from numaproof.protocol.messages import Hello

_CASES = (".yaml", ".yml")
_DEFAULT_EXAMPLES = 200
_MOST = (1 << 32) - 1


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@targets.program_option(
    "Program on the left (default: the reference). Repeatable: one per release.",
    "--left",
    multiple=True,
)
@targets.program_option(
    "Program on the right, under test. Repeatable: one per release.",
    "--right",
    multiple=True,
)
@targets.kubelet_options(kubelet="left", right_kubelet="right")
@click.option(
    "--seeds", type=targets.SeedsParam(), help="Seeds for the scenarios, such as 0:1000 or 3,7:9."
)
@click.option(
    "--kind",
    type=Choice((LIFE, START, FILE, TREE, UPGRADE)),
    default=LIFE,
    help="What to generate. life: nodes that admit and remove pods and restart. start: single"
    " starts with unusual input. file: starts from a damaged checkpoint. tree: discovery of"
    " generated machines. upgrade: nodes that switch to another release (default: life).",
)
@targets.release_choice(
    "--from", "before", multiple=True, help="Upgrade only from this release. Repeatable."
)
@targets.release_choice(
    "--to", "after", multiple=True, help="Upgrade only to this release. Repeatable."
)
@click.option(
    "--examples",
    type=IntRange(1),
    help=f"Number of random scenarios (default: {_DEFAULT_EXAMPLES}).",
)
@click.option("--seed", type=IntRange(0), help="Seed for the random scenarios (default: random).")
@machines_option("Play the cases in FILES only on this machine. Repeatable.")
@click.option(
    "--timeout",
    type=targets.Duration(),
    default="30s",
    help="Time limit for each call to a program (default: 30s).",
)
@targets.release_choice(help="Kubernetes release to compare (default: the newest that both claim).")
@targets.level_option(
    "How closely to compare answers (default: the highest level that both claim).", LEVELS[1:]
)
@targets.baseline_option
@click.option("--keep-going", is_flag=True, help="Continue after the first difference.")
@click.option(
    "--tries",
    type=IntRange(1),
    default=TRIES,
    help=f"How many times to replay a differing scenario to rule out chance (default: {TRIES}).",
)
@out_option("diff")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def diff(
    *,
    files: tuple[Path, ...],
    left: tuple[str, ...],
    right: tuple[str, ...],
    seeds: Sequence[int] | None,
    kind: str,
    before: tuple[str, ...],
    after: tuple[str, ...],
    examples: int | None,
    seed: int | None,
    machine_names: Iterable[str],
    tries: int,
    out: Path,
    keep_going: bool,
    as_json: bool,
    **target: Any,
) -> int:
    """Compare two implementations call by call.

    Both get the same calls, from generated scenarios or from FILES: case files (YAML), or
    directories and tar archives with trees to discover. The first difference is shrunk for up to
    60 s, shown side by side and written to OUT/findings as a case file for `numaproof replay`.

    \b
    Examples:
      numaproof diff --right "./kubelet-1.36 -v=-1" --seeds 0:1000
      numaproof diff --right "./my-driver" --kind start --examples 500
      numaproof diff --left "./kubelet-1.35" --right "./my-driver" --level placement
      numaproof diff --right "./my-driver" my-cases.yaml --machine laptop-4c8t
      numaproof diff --kind upgrade --right "./kubelet-1.35 -v=-1" \\
        --right "./kubelet-1.36 -v=-1" --seeds 0:48
      numaproof diff --right "./kubelet-1.36 -v=-1" trees/*.tar.xz
    """
    from numaproof.conformance.cases import loading
    from numaproof.conformance.cases.loading import locate_errors
    from numaproof.conformance.differential.diff_options import DiffOptions
    from numaproof.conformance.execution.harness_run import timeout_options
    from numaproof.conformance.fuzzing.shrinking import DIFFERENCE

    if not right:
        raise click.UsageError("nothing to compare: add --right or --right-kubelet")
    if left and target["baseline"]:
        raise click.UsageError("--baseline needs the reference on the left; remove --left")
    sides = _Sides(left, right, target)
    chosen, added = _seeds(files, seeds, examples, seed)
    written = [file for file in files if file.suffix in _CASES]
    cases = tuple(chain.from_iterable(map(loading.read_file, written)))
    trees = tuple(file for file in files if file not in written)
    findings = out / FINDINGS
    again = (*sides.options(), *timeout_options(target["timeout"]), *out_options("diff", out))
    course = DiffOptions(findings, keep_going, tries, again)
    if (before or after) and kind != UPGRADE:
        raise click.UsageError("--from and --to need --kind upgrade; add it or remove them")
    what = _Scenarios(cases, trees, tuple(machine_names), chosen, kind, (before, after))

    def start(harness_run: HarnessRun) -> Iterator[AnyEvent]:
        return _events(sides, what, harness_run, course)

    # Don't delete findings if any of them are among FILES.
    compared_again = any(file.resolve().parent == findings.resolve() for file in files)
    with locate_errors(written):
        return run_harness(
            start,
            {"implementation": right, **target},
            out,
            as_json=as_json,
            extra_options=added,
            findings="" if compared_again else DIFFERENCE,
        )


@dataclass(frozen=True)
class _Sides:
    """Both programs, and the values of `targets.target_options`."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    target: dict[str, Any]

    def options(self) -> tuple[str, ...]:
        """Returns the options that open both sides again."""
        asked = (("--kubernetes", "kubernetes"), ("--level", "level"), ("--baseline", "baseline"))
        named = (
            *_program_options("--left", "--kubelet", self.left),
            *_program_options("--right", "--right-kubelet", self.right),
            *((option, self.target[name]) for option, name in asked),
        )
        given = dict.fromkeys((name, value) for name, value in named if value)
        return tuple(word for both in given for word in both)

    @contextmanager
    def pair(self, right: Target) -> Iterator[tuple[Pair, Target]]:
        """Opens the left side and pairs it with the right side; also yields the left side.

        Raises:
            click.UsageError: the sides have nothing to compare.
        """
        from numaproof.conformance.differential.diff import (
            shared_capabilities,
            shared_optional_fields,
        )
        from numaproof.conformance.differential.lockstep import Pair
        from numaproof.conformance.execution.run import reference

        own = {"kubernetes": None, "baseline": right.baseline}
        with targets.open_target(self.left, **self.target | own) as left:
            release = self._release(left.hello, right)
            level = min(left.level, right.level, key=LEVELS.index)
            if level == LEVELS[0]:
                raise click.UsageError(
                    "one side claims only level invariants, where answers are not compared;"
                    " check that side with `numaproof check`"
                )
            capabilities = shared_capabilities(left.hello, right.hello, release)
            sides = reference if right.baseline == "either" and not self.left else None
            tell = shared_optional_fields(capabilities)
            programs = left.implementation, right.implementation
            yield Pair(*programs, capabilities, level, sides, tell), left

    def _release(self, left: Hello, right: Target) -> str:
        """The requested release, or else the newest that both sides claim."""
        wanted = self.target["kubernetes"]
        both = [one for one in RELEASES if one in left.kubernetes and one in right.hello.kubernetes]
        if wanted in both or (both and not wanted):
            return wanted or (right.kubernetes if right.kubernetes in both else both[-1])
        claims = " and ".join(
            f"{one.name} {one.version} claims {', '.join(one.kubernetes)}"
            for one in (left, right.hello)
        )
        from numaproof.conformance.execution import kubelet_command

        fix = "compare programs of the same release"
        if all(map(kubelet_command.options, map(shlex.split, (*self.left, *self.right)))):
            fix = f"to check both as one release, add --kubernetes {right.kubernetes}"
        raise click.UsageError(f"no common release: {claims}; {fix}")


def _program_options(
    program: str, kubelet: str, commands: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yields the options for one side's programs, which may be kubelets."""
    from numaproof.conformance.execution import kubelet_command

    for command in commands:
        words = kubelet_command.options(shlex.split(command))
        yield (kubelet, words[1]) if words else (program, command)
        yield from zip(words[2::2], words[3::2], strict=True)


@dataclass(frozen=True)
class _Scenarios:
    """The requested scenarios: from cases, trees or seeds.

    `limits` holds the releases to upgrade from and to; empty for all.
    """

    cases: tuple[Case, ...]
    trees: tuple[Path, ...]
    machines: tuple[str, ...]
    seeds: Sequence[int]
    kind: str
    limits: tuple[tuple[str, ...], tuple[str, ...]]

    def generate_scenarios(self, capabilities: Capabilities) -> tuple[Iterable[NamedScenario], int]:
        """Returns the scenarios for the seeds, and how many there are."""
        from numaproof.conformance.differential.diff import (
            generated_trees,
            seeded_scenarios,
            upgrades,
        )

        if self.kind == TREE:
            return generated_trees(self.seeds), len(self.seeds)
        if self.kind != UPGRADE:
            return seeded_scenarios(self.seeds, capabilities, self.kind), len(self.seeds)
        claimed = [one for one in RELEASES if one in capabilities.hello.kubernetes]
        before, after = (
            [one for one in claimed if one in (limit or claimed)] for limit in self.limits
        )
        steps = list(product(before, after))
        if not steps:
            both = ", ".join(claimed) or "no release"
            raise click.UsageError(
                f"no upgrade to compare: both sides claim {both}; change --from and --to"
            )
        return upgrades(self.seeds, capabilities, steps), len(steps) * len(self.seeds)


def _events(
    sides: _Sides, what: _Scenarios, harness_run: HarnessRun, course: DiffOptions
) -> Iterator[AnyEvent]:
    from numaproof.conformance.differential.diff import case_scenarios, differences, tree_scenarios
    from numaproof.workdir.scratch import scratch_folder

    with sides.pair(harness_run.target) as (pair, left), scratch_folder() as trees:
        # Report the release and the level at which answers are compared.
        target = replace(
            harness_run.target, level=pair.level, kubernetes=pair.capabilities.kubernetes
        )
        told = replace(
            harness_run,
            target=target,
            left=left.hello,
            host=harness_run.host or host_of(left.command),
        )
        if what.cases or what.trees:
            machines = named_machines(what.machines, trees)
            of_cases = list(case_scenarios(what.cases, machines, pair.capabilities.kubernetes))
            total = len(of_cases) + len(what.trees)
            scenarios: Iterable[NamedScenario] = chain(of_cases, tree_scenarios(what.trees))
            if not total:
                raise click.UsageError(
                    "none of these cases applies to these machines and this release; choose"
                    " another --machine or --kubernetes"
                )
        else:
            scenarios, total = what.generate_scenarios(pair.capabilities)
        yield from differences(pair, scenarios, total, told, course)


def _seeds(
    files: Sequence[Path], seeds: Sequence[int] | None, examples: int | None, seed: int | None
) -> tuple[Sequence[int], tuple[str, ...]]:
    """Returns the seeds for the scenarios, and the options that reproduce them.

    Raises:
        click.UsageError: the options contradict each other.
    """
    from numaproof.conformance.fuzzing.generation.choices import Seeded

    numbers = examples is not None or seed is not None
    if (bool(files) + (seeds is not None) + numbers) > 1:
        raise click.UsageError("give only one of FILES, --seeds, or --examples with --seed")
    if files:
        return (), ()
    if seeds is not None:
        return seeds, ()
    first = random.SystemRandom().getrandbits(32) if seed is None else seed
    choices = Seeded(first)
    count = _DEFAULT_EXAMPLES if examples is None else examples
    drawn = [choices.integer(0, _MOST) for _ in range(count)]
    return drawn, (() if seed is not None else ("--seed", str(first)))
