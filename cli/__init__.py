"""The `numaproof` command: reads arguments, calls the parts, and sets the exit code."""
