"""Violators of requirements: topology options."""
