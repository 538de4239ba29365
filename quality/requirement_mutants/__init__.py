"""Violators: bugs that each break one sentence of the registry, and are named by it."""
