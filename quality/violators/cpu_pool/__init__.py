"""Violators of requirements: cpu pool."""
