"""Violators of requirements: pod level resources."""
