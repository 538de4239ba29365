"""The conformance suite: requirements, cases, execution, judging, fuzzing and seeded bugs."""
