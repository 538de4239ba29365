"""The Memory Manager."""
