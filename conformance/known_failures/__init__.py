"""Known failures: a file that names them, how it judges a run, and how it is written."""
