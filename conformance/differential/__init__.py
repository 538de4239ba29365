"""Two implementations in lockstep, and implementations held against recordings."""
