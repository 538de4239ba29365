"""Selecting cases: `--select` and `--quick`."""
