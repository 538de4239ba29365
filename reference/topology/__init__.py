"""The Topology Manager: topology hints, how they are merged, and the policies.

Read `hints`, `merge`, `policy` and `scope`, in this order. They are the specification.
"""
