"""Violators of requirements: cpu spreading."""
