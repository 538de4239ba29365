"""Violators of requirements: topology scopes."""
