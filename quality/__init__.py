"""Faulty references, and the search for the cases and invariants that catch them.

- `seeding`: puts a bug into the reference and removes it again;
- `bugs`: bugs modelled on public issues;
- `requirement_mutants`: bugs that each break one requirement;
- `rule_mutants`: mutants derived from the reference's rules;
- `suite`: the cases and machines, in the order in which they are tried;
- `trials`: the sources of runs that may catch a bug;
- `search`: the search, for one bug or for all in parallel;
- `searchers`: the search functions for each kind of fault;
- `quick_set`: a small set of case runs that catches every seeded bug.

Run it with `tox run -e quality` (docs/quality.md). It is not part of the wheel.
"""
