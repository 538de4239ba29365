"""Violators of requirements: discovery."""
