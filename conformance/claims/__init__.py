"""Claims: which ones calls need, and whether an implementation's claims are valid and true."""
