"""Fuzzing: generated nodes and call sequences, found failures made small, and coverage."""
