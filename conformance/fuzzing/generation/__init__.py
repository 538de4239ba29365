"""Generates nodes, pods and call sequences from choices by Hypothesis or from a seed."""
