"""The reference implementation of the kubelet's resource managers.

The code reads as a specification: decisions are functions of immutable values, and differences
between kubelet releases are in `numaproof.reference.deviations`. Only discovery and checkpoints
touch files. Start at `numaproof.reference.implementation.Reference`.
"""
