"""Collects what numaproof needs to know about a node of a cluster, with the user's own kubectl."""
