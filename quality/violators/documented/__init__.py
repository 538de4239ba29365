"""Violators of requirements that single sentences of the documents led to."""
