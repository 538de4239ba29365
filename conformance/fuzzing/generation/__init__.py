"""Generates nodes, pods and call sequences from choices that Hypothesis or a seed makes."""
