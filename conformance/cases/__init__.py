"""Cases: their schema, and reading, checking and writing case files."""
