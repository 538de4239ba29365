"""Answers node operators' questions by asking the reference."""
