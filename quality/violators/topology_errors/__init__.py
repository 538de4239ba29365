"""Violators of requirements: topology errors."""
