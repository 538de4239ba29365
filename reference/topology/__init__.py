"""The Topology Manager: hints, how they are merged, and the policies that judge the result."""
