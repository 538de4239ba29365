"""Attacks the command with mutated inputs of every kind. Run `__main__` by hand."""
