"""Comparing two implementations, or an implementation with recordings."""
