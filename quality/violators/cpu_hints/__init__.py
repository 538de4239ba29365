"""Violators of requirements: cpu hints."""
