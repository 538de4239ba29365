"""Violators of requirements: cpu checkpoint."""
