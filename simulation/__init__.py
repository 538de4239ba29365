"""Answers a user's questions about a node by asking the reference."""
