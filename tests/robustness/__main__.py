"""Plays many trials: ``tox run -e robustness -- --count 20000``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from robustness import playing
from robustness.attack import attack, error_text
from robustness.kinds import KINDS

BATCH = 200
"""How many trials have the same seed, named ``KIND:SEED``."""


def main() -> int:
    """Plays the requested trials; returns 1 if any fails."""
    parser = argparse.ArgumentParser(prog="tox run -e robustness --", description=__doc__)
    parser.add_argument("--count", type=int, default=BATCH, help=f"trials of each kind ({BATCH})")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--only", metavar="KIND[:SEED]", default="", help="only this kind or seed")
    args = parser.parse_args()
    only, _, seed = args.only.partition(":")
    first = int(seed or args.first)
    sizes = [min(BATCH, args.count - begun) for begun in range(0, args.count, BATCH)]
    codes: Counter[int | None] = Counter()
    failed = []
    with playing.trial_folder() as scratch:
        for number, size in enumerate(sizes[:1] if seed else sizes, first):
            for kind in [only] if only else KINDS:
                try:
                    codes += attack(kind, scratch, seed=number, count=size)
                except (playing.BrokenError, ExceptionGroup) as error:
                    failed.append(f"{kind}:{number}")
                    print(f"{kind}:{number}: {error_text(error)}\n", flush=True)
    print(f"{sum(codes.values())} trials; exit codes {dict(sorted(codes.items()))}")
    print(f"failures: {' '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
