"""Violators of requirements: cpu init."""
