"""What implementations claim: what a call needs, whether a claim exists, and whether it is true."""
