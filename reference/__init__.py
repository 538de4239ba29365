"""The reference implementation of the kubelet's resource managers.

It reads as the specification: decisions are functions of immutable values, and what a kubelet
release does differently is in `numaproof.reference.deviations`. A node's files are touched by
discovery and by checkpoints alone. `numaproof.reference.implementation.Reference` is the way in.
"""
