"""The trees of machines: in pyfakefs for the reference, in directories for programs."""
