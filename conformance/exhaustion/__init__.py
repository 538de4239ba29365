"""Enumerating every small case: machines, assignments, merges and sequences of calls."""
