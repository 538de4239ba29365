"""Violators of requirements: cpu start."""
