"""Conformance and fuzz testing for the Kubernetes node resource managers."""
