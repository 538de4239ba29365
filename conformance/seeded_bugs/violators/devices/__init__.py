"""Violators of requirements: devices."""
