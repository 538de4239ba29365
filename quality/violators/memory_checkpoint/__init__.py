"""Violators of requirements: memory checkpoint."""
