"""The conformance suite. Each package imports only from those listed above it.

- `cases`: reading case files, expressions and machine properties.
- `requirements`: the documented requirements and their cases.
- `judging`: expectations, the reference, invariants and known defects.
- `known_failures`: files of accepted failures.
- `claims`: which claims each call needs, and reviewing an implementation's claims.
- `trees`: machines' trees, in memory and in directories.
- `execution`: implementations, sessions and playing cases.
- `doctor`: checks of every line that a program writes.
- `fuzzing`: generated scenarios, shrinking, coverage and determinism.
- `differential`: comparing two implementations, and recordings.
- `exhaustion`: every small machine, question and life.
- `selection`: `--select` and `--quick`.
- `check`: playing many cases.
- `opening`: starting the implementation under test.
- `library`: `check` for programs that use numaproof as a library.
- `promotion`: turning findings into cases.
- `go_tests`: turning cases into Go tests for the kubelet's own packages.
"""
