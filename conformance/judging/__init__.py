"""Judging answers: expectations, the oracle, invariants and the known defects."""
