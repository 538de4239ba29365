"""What Go's JSON, numbers and CPU lists look like, error texts included."""
