"""Attacks the command with mutated inputs of every kind; `__main__` is the way in by hand."""
