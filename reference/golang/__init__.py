"""Go's JSON, numbers and durations, including its error messages."""
