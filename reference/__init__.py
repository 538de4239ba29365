"""The reference implementation of the kubelet's resource managers.

It reads as the specification: decisions are pure functions of immutable values, what differs
between Kubernetes releases is data in `kubernetes.releases`, and files are touched by discovery
and by checkpoints alone. `numaproof.reference.implementation.Reference` is the way in.
"""
