"""Judging answers: expectations, the reference, invariants and known defects."""
