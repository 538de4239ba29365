"""Comparing two implementations, and implementations with recordings."""
