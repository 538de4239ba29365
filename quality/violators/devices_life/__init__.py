"""Violators of requirements: devices life."""
