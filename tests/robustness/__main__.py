"""Plays many trials: ``tox run -e robustness -- --count 20000``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from robustness import playing
from robustness.attack import attack, told
from robustness.kinds import KINDS

BATCH = 200
"""Trials of one seed: what a name, ``KIND:SEED``, stands for."""


def main() -> int:
    """Plays the trials that the arguments ask for; 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="tox run -e robustness --", description=__doc__)
    parser.add_argument("--count", type=int, default=BATCH, help=f"trials of each kind ({BATCH})")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind")
    parser.add_argument(
        "--only", metavar="KIND:SEED", help=f"only these trials: up to {BATCH} of one seed"
    )
    parser.add_argument("--no-shrink", action="store_true", help="show failures as they are")
    args = parser.parse_args()
    if args.only:
        kind, _, number = args.only.partition(":")
        batches = [(kind, int(number), min(args.count, BATCH))]
    else:
        sizes = [min(BATCH, args.count - first) for first in range(0, args.count, BATCH)]
        chosen = args.kind or KINDS
        batches = [(kind, n, size) for n, size in enumerate(sizes, args.first) for kind in chosen]
    return _play(batches, shrink=not args.no_shrink)


def _play(batches: list[tuple[str, int, int]], *, shrink: bool) -> int:
    codes: Counter[int | None] = Counter()
    failed = []
    began = time.monotonic()
    with playing.prepared() as scratch:
        for kind, seed, count in batches:
            try:
                codes += attack(kind, scratch, seed=seed, count=count, shrink=shrink)
            except (playing.BrokenError, ExceptionGroup) as error:
                failed.append(f"{kind}:{seed}")
                print(f"{kind}:{seed}: {told(error)}\n", flush=True)
            print(f"{kind}:{seed} {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{sum(codes.values())} trials; exit codes {dict(sorted(codes.items()))}")
    print(f"failures: {' '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
