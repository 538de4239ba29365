"""Violators of requirements: CFS quota."""
