"""Violators of requirements: node state."""
