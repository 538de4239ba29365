"""A fast search for hints and the merged hint; tests check that it agrees with the definitions."""
