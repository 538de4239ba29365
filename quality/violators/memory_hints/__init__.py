"""Violators of requirements: memory hints."""
