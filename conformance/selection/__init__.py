"""Which cases a run plays: patterns that users write, and the quick set."""
