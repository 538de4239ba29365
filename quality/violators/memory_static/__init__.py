"""Violators of requirements: memory static."""
