"""The Topology Manager: hints, how they are merged, and the policies that judge the result.

Read `hints`, then `merge`, then `policy` and `scope`: they are the specification.
"""
