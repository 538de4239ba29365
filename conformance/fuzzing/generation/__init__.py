"""Nodes, pods and call sequences made up from choices, the same for Hypothesis and for a seed."""
