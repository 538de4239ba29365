"""Fuzzing: generates nodes and call sequences, shrinks failures, and measures coverage."""
