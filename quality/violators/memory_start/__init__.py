"""Violators of requirements: memory start."""
