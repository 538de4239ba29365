"""Requirement mutants: bugs that each break one requirement, listed by its id."""
