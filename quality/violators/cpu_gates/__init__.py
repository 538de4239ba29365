"""Violators of requirements: cpu gates."""
