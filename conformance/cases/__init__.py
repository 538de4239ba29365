"""Cases: their schema, how they are loaded from tables, and how they are written."""
