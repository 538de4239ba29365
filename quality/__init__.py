"""Faulty references, and the search for the cases and invariants that catch them.

- `seeding`: how a bug is put into the reference, and taken out of it again;
- `bugs`: bugs modelled on public issues;
- `requirement_mutants`: bugs that each break one sentence of the documents;
- `derived`: mutants that are derived from the rules of the reference;
- `suite`: the cases and machines, in the order they are tried;
- `trials`: the four sources of runs that may catch a bug;
- `search`: the search, for one bug or for all, over some processes;
- `searchers`: what searches for a fault of each kind;
- `quick_set`: few case runs that still catch every seeded bug.

`tox run -e quality` runs it (docs/quality.md); it is not part of the wheel.
"""
