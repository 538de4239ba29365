"""Mutation testing of the reference: a seeded sample of small changes, which the checks must catch.

Cosmic Ray makes the changes, in copies of the installed package. A change is killed where a case, a
bundled recording or a test of the reference fails, and survives if all pass. A session is kept, and
the same command resumes it as long as the tree is unchanged. The exit code is 0 if enough mutations
are killed and every survivor has an explanation in `survivors.yaml`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import processes
import running
import sampling
import tree as trees
from cosmic_ray.work_db import use_db
from processes import JudgeError
from reach import Reach
from report import MutationReport
from results import ExplanationError, mutant, read_explanations, stale
from tree import TESTED, SourceTreeError

HERE = Path(__file__).resolve().parent

SIZE = 200
"""Mutations of a sample: so many that two cores try them in well under an hour."""

_DECISIVE = ("checks.py", "excluded.py", "judge.py", "reach.py", "sampling.py")
"""What of this program decides how a mutation ends, or which are made."""


def prepare(session: Path, pattern: str) -> tuple[trees.SourceTree, str]:
    """Lays the tree out; whatever a session has of another tree is thrown away.

    Returns:
        The tree and its digest.

    Raises:
        SourceTreeError, JudgeError: it can't be laid out, or its checks fail.
    """
    tree = trees.lay_out(HERE.parent, session / "tree")
    digest = tree.digest(pattern, *((HERE / name).read_text("utf-8") for name in _DECISIVE))
    kept = session / "digest"
    if not kept.exists() or kept.read_text("utf-8") != digest:
        if kept.exists():
            _say("The tree or its checks have changed since the session began; starting over.")
        for file in ("digest", "reach.json", "session.sqlite"):
            (session / file).unlink(missing_ok=True)
        _say("Looking at what every check costs and reaches, which takes a few minutes.")
        processes.survey(tree, pattern, session / "reach.json")
        kept.write_text(digest, encoding="utf-8")
    return tree, digest


def measure(session: Path, options: argparse.Namespace) -> MutationReport:
    """Tries what is left of a sample and reports on it."""
    tree, digest = prepare(session, options.checks)
    modules = [
        module
        for module in tree.modules()
        if module.relative_to(tree.folder / TESTED).match(options.module)
    ]
    population = sampling.population(tree, modules)
    sample = population.sample(options.seed, options.sample)
    name = HERE / "survivors.yaml"
    explanations = read_explanations(name.read_text(encoding="utf-8"), name.name)
    with use_db(session / "session.sqlite") as work:
        known = {item.job_id: item for item in work.work_items}
        if any(known.get(item.job_id, item) != item for item in sample):
            _say("The session is of another sample; starting over.")
            work.clear()
            known = {}
        work.add_work_items(item for item in sample if item.job_id not in known)
        running.run(work, sample, tree, Reach.read(session / "reach.json"), options.jobs)
        results = dict(work.results)
    sources = {
        str(file.relative_to(tree.folder / TESTED)): file.read_text(encoding="utf-8")
        for file in tree.modules()
    }
    return MutationReport(
        options.seed,
        len(sample),
        population,
        digest,
        [mutant(item, results[item.job_id]) for item in sample if item.job_id in results],
        explanations,
        stale(explanations, sources),
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=SIZE, help=f"mutations to try [{SIZE}]")
    parser.add_argument("--seed", type=int, default=0, help="of the sample [0]")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time [2]")
    parser.add_argument("--module", default="*.py", help="only modules of this name (GLOB)")
    parser.add_argument("--checks", default="*", help="only checks of this name (GLOB)")
    parser.add_argument("--session", type=Path, default=Path("numaproof-report/mutation/session"))
    parser.add_argument("--out", type=Path, default=Path("numaproof-report/mutation"))
    parser.add_argument("--anew", action="store_true", help="do not go on with a session")
    options = parser.parse_args()
    session = options.session.resolve()
    if options.anew:
        shutil.rmtree(session, ignore_errors=True)
    session.mkdir(parents=True, exist_ok=True)
    try:
        report = measure(session, options)
    except (SourceTreeError, JudgeError, ExplanationError) as error:
        _say(f"Error: {error}")
        return 2
    except KeyboardInterrupt:
        _say("Interrupted; run the same command to resume.")
        return 130
    report.write(options.out)
    _say(report.summary(), *report.problems, f"The report is {options.out / 'mutation.md'}.")
    return 1 if report.problems else 0


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
