"""Which cases a run plays."""
