"""Generates nodes, pods and call sequences from Hypothesis's choices or from a seed."""
