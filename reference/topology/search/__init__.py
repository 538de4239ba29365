"""The fast way to the hints and to the best merged one; tests hold it equal to the definitions."""
