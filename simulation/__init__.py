"""Answers to a user's questions about a node, by the reference."""
