"""Violators of requirements: topology merging."""
