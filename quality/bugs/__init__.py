"""The seeded bugs, by the part of the node that has them."""
