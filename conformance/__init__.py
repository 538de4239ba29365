"""The conformance suite, in rooms that each import only from those before it.

- `cases`: the tables of ``suite/`` read into cases, expressions and machine properties;
- `requirements`: what the documents ask for sentence by sentence, and which cases show it;
- `judging`: expectations, the oracle, invariants and known defects;
- `known_failures`: the file of failures that are accepted, and how a run is judged by it;
- `claims`: what a call needs of an implementation, and whether its claims exist and are true;
- `trees`: the trees of machines, in pyfakefs and in directories;
- `execution`: an implementation, a session with it, the player of a case and the runner;
- `doctor`: a dialogue with a program, and what is wrong with each line that it writes;
- `fuzzing`: generated nodes and call sequences, shrinking, coverage and determinism;
- `differential`: two sides in lockstep, and recordings of a kubelet;
- `selection`: patterns that select cases, and the quick set;
- `check`: cases on machines, one after the other or on all cores: the run of `numaproof check`;
- `opening`: the reference or programs, opened as what is under test;
- `library`: `check` for programs that use this project as a library;
- `promotion`: a finding becomes a case of the suite;
"""
