"""Known failures: reading and writing their files, and judging runs by them."""
