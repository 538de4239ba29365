"""Violators of requirements: the command line."""
