"""The seeded bugs, by the part of the node that they are in."""
