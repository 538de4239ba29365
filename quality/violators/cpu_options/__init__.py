"""Violators of requirements: cpu options."""
