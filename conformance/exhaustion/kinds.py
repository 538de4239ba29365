"""The names of what can be enumerated, and of the bounds."""

ASSIGNMENTS, MERGES, LIVES = "assignments", "merges", "lives"
KINDS = (ASSIGNMENTS, MERGES, LIVES)
"""What can be enumerated."""

BOUND_NAMES = ("small", "medium", "large")
"""The bounds that commands offer, in ascending order."""
