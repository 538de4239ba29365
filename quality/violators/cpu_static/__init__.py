"""Violators of requirements: cpu static."""
