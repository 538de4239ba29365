"""Plays many trials: ``tox run -e robustness -- --count 20000``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from robustness import kinds
from robustness.shrinking import shrunk
from robustness.workers import Worker

if TYPE_CHECKING:
    from robustness.playing import Ended
    from robustness.trials import Trial

_SHOWN = 2000


def main() -> int:
    """Plays the trials that the arguments ask for; 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="tox run -e robustness --", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="trials of each kind (200)")
    parser.add_argument("--total", type=int, help="trials of all kinds together, instead")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--kind", choices=kinds.KINDS, action="append", help="only this kind")
    parser.add_argument("--only", metavar="KIND:SEED", help="only this trial, shown in full")
    parser.add_argument("--no-shrink", action="store_true", help="show failures as they are")
    args = parser.parse_args()
    chosen = args.kind or list(kinds.KINDS)
    count = args.total // len(chosen) if args.total else args.count
    seeds = range(args.first, args.first + count)
    names = [args.only] if args.only else [f"{kind}:{seed}" for seed in seeds for kind in chosen]
    return _play(names, whole=bool(args.only), shrink=not args.no_shrink)


def _play(names: list[str], *, whole: bool, shrink: bool) -> int:
    causes: dict[str, list[str]] = {}
    codes: Counter[int] = Counter()
    began = time.monotonic()
    with Worker() as worker:
        for number, name in enumerate(names, 1):
            trial = kinds.trial(name)
            ended = worker.play(trial)
            codes[ended.code] += 1
            if whole:
                print(describe(trial, ended))
            if ended.problem:
                alike = causes.setdefault(ended.cause, [])
                alike.append(name)
                if len(alike) == 1:
                    least = shrunk(trial, ended.cause, worker.play) if shrink else trial
                    print(f"{name}: {describe(least, ended)}\n", flush=True)
            if number % 1000 == 0:
                print(f"{number} of {len(names)} trials", file=sys.stderr, flush=True)
    for cause, found in sorted(causes.items(), key=lambda one: -len(one[1])):
        print(f"{len(found):6} {cause} ({', '.join(found[:3])})")
    problems: Counter[str] = Counter()
    for cause, found in causes.items():
        problems[cause.partition(":")[0]] += len(found)
    seconds = time.monotonic() - began
    print(f"{len(names)} trials in {seconds:.0f} s; exit codes {dict(sorted(codes.items()))}")
    print(f"failures: {dict(problems) or 'none'}")
    return int(bool(causes))


def describe(trial: Trial, ended: Ended) -> str:
    """A trial and how it ended, with the command that plays it again."""
    shown = [f"{ended.cause or f'exit code {ended.code}'}"]
    shown.append(f"$ numaproof {' '.join(ascii(one)[1:-1] for one in trial.args)}"[:_SHOWN])
    for name, file in list(trial.files.items())[:3]:
        content = file.bytes() if hasattr(file, "bytes") else repr(file).encode()
        text = ascii(content.decode(errors="backslashreplace"))[1:-1].replace("\\n", "\n")
        shown.append(f"--- {name!a}\n{text[:_SHOWN]}")
    shown += [
        "--- told",
        ended.told[:_SHOWN],
        f"again: tox run -e robustness -- --only {trial.name}",
    ]
    return "\n".join(shown)


if __name__ == "__main__":
    sys.exit(main())
