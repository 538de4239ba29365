"""What was collected about a single node: archives of `kubectl numaproof`, and other reports."""
