"""Claims: what calls need, whether claims are valid, and whether they are true."""
